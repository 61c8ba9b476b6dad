"""Study ``tetrisched-estimate-error``: TetriSched against the capacity stack as estimates err."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _tetrisched as tetrisched
from foresail.experiments.studies._trial_grid import cases_of, named
from foresail.experiments.study import Mean, PublishedClaim, Study
from foresail.model.registry import register

_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}


@dataclass(frozen=True, slots=True)
class EstimateErrorParameters(tetrisched.TetriSchedStudyParameters):
    """Parameters of ``tetrisched-estimate-error``.

    Parameters
    ----------
    workloads
        Generators: of figures 6, 7 and 8.
    error_percents
        By how much jobs misstate their runtime.
    """

    QUICK: ClassVar[dict[str, str]] = {**tetrisched.QUICK, "error_percents": "[-50,0,50]"}
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 20.0

    workloads: tuple[str, ...] = tuple(_FIGURES)
    error_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorParameters)
def estimate_error(parameters: EstimateErrorParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    cases = [
        case
        for generator in parameters.workloads
        for error in parameters.error_percents
        for case in cases_of(
            parameters,
            tetrisched.setting(parameters, generator, error, error),
            {**named(tetrisched.GLOBAL), **tetrisched.STACKS},
        )
    ]
    return Study(
        title="How wrong may estimates be?",
        source=f"{tetrisched.SOURCE}, figures 6, 7 and 8",
        axis=tetrisched.ERROR_AXIS,
        measures=tetrisched.MEASURES,
        drawn=tetrisched.DRAWN,
        cases=tuple(cases),
        claims=tuple(
            claim
            for generator in parameters.workloads
            for claim in _claims(generator, parameters.error_percents)
        ),
        notes=tetrisched.notes_of(parameters),
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
        return Mean(tetrisched.LATENCY.name, system, group, (x,))

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
