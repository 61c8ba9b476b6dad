"""Study ``tetrisched-estimate-error``: TetriSched against the capacity stack as estimates err."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _tetrisched as tetrisched
from foresail.experiments.studies import _trial_grid as grid
from foresail.experiments.study import Mean, PublishedClaim, Study
from foresail.model.registry import register

_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}


@dataclass(frozen=True, slots=True)
class EstimateErrorParameters(tetrisched.EstimateErrorsParameters):
    """Parameters of ``tetrisched-estimate-error``.

    Parameters
    ----------
    workloads
        Generators: of figures 6, 7 and 8.
    """

    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 20.0

    workloads: tuple[str, ...] = tuple(_FIGURES)


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorParameters)
def estimate_error(parameters: EstimateErrorParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    return tetrisched.study_of_errors(
        parameters,
        title="How wrong may estimates be?",
        figures="figures 6, 7 and 8",
        generators=parameters.workloads,
        systems=(tetrisched.GLOBAL,),
        claims=(
            claim
            for generator in parameters.workloads
            for claim in _claims(generator, parameters.error_percents)
        ),
    )


def _claims(generator: str, errors: tuple[float, ...]) -> tuple[PublishedClaim, ...]:
    group, least, most = generator.upper(), min(errors), max(errors)
    figure = f"{group}, figure {_FIGURES[generator]}" if generator in _FIGURES else group
    met = tetrisched.met
    common = (
        PublishedClaim(
            f"TetriSched keeps more than 95 % of accepted deadlines even where estimates are half "
            f"of the runtime ({figure}).",
            0.95,
            met(tetrisched.GLOBAL, least, group=group, of=tetrisched.ACCEPTED),
        ),
        *(
            PublishedClaim(
                f"TetriSched meets more deadlines than Rayon/CS at an error of {error:g} % "
                f"({figure}).",
                *met("rayon-cs", error, group=group).against(tetrisched.GLOBAL),
            )
            for error in errors
        ),
        PublishedClaim(
            f"TetriSched meets more deadlines than Rayon/CS, which promises nodes as early as "
            f"possible, over all errors ({figure}).",
            *met("rayon-cs, earliest", group=group).against(tetrisched.GLOBAL),
        ),
        *(
            PublishedClaim(
                f"Under-estimates cost Rayon/CS accepted deadlines ({stack}; {figure}).",
                met(stack, least, group=group, of=tetrisched.ACCEPTED),
                met(stack, 0.0, group=group, of=tetrisched.ACCEPTED),
            )
            for stack in tetrisched.STACKS
        ),
    )
    if generator == "gr_slo":
        return common

    def latency(system: str, x: float) -> Mean:
        return Mean(grid.LATENCY.name, system, group, (x,))

    return (
        *common,
        PublishedClaim(
            f"Over-estimates cost Rayon/CS best-effort latency ({figure}).",
            latency("rayon-cs", 0.0),
            latency("rayon-cs", most),
        ),
        PublishedClaim(
            f"At the largest over-estimate best-effort jobs of TetriSched are done sooner "
            f"({figure}; published: up to 80 % sooner).",
            *latency(tetrisched.GLOBAL, most).against("rayon-cs"),
        ),
    )
