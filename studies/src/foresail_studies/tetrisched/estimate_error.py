"""Study ``tetrisched-estimate-error``: TetriSched against the capacity stack as estimates err."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial_grid as grid
from foresail_studies.study import Bound, Mean, Study, published
from foresail_studies.tetrisched import _shared as tetrisched

_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}


@dataclass(frozen=True, slots=True)
class EstimateErrorParameters(tetrisched.EstimateErrorsParameters):
    """Parameters of ``tetrisched-estimate-error``."""

    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 20.0

    workloads: tuple[str, ...] = tuple(_FIGURES)
    """Generators: of figures 6, 7 and 8."""


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorParameters)
def estimate_error(parameters: EstimateErrorParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    return tetrisched.study_of_errors(
        parameters,
        title="How wrong may estimates be?",
        figures="figures 6, 7 and 8",
        generators=parameters.workloads,
        systems=(tetrisched.GLOBAL,),
        claims=published(
            *(_claims(each, parameters.error_percents) for each in parameters.workloads)
        ),
    )


def _claims(generator: str, errors: tuple[float, ...]) -> dict[str, Bound]:
    group, least, most = generator.upper(), min(errors), max(errors)
    figure = f"{group}, figure {_FIGURES[generator]}" if generator in _FIGURES else group
    met = tetrisched.met
    common = {
        f"TetriSched keeps more than 95 % of accepted deadlines even where estimates are half of "
        f"the runtime ({figure}).": Bound(
            0.95, met(tetrisched.GLOBAL, least, group=group, of=tetrisched.ACCEPTED)
        ),
        **{
            f"TetriSched meets more deadlines than Rayon/CS at an error of {error:g} % "
            f"({figure}).": met("rayon-cs", error, group=group).against(tetrisched.GLOBAL)
            for error in errors
        },
        f"TetriSched meets more deadlines than Rayon/CS, which promises nodes as early as "
        f"possible, over all "
        f"errors ({figure}).": met("rayon-cs, earliest", group=group).against(tetrisched.GLOBAL),
        **{
            f"Under-estimates cost Rayon/CS accepted deadlines ({stack}; {figure}).": Bound(
                met(stack, least, group=group, of=tetrisched.ACCEPTED),
                met(stack, 0.0, group=group, of=tetrisched.ACCEPTED),
            )
            for stack in tetrisched.STACKS
        },
    }
    if generator == "gr_slo":
        return common

    def latency(system: str, x: float) -> Mean:
        return Mean(grid.LATENCY.name, system, group, (x,))

    return {
        **common,
        f"Over-estimates cost Rayon/CS best-effort latency ({figure}).": Bound(
            latency("rayon-cs", 0.0), latency("rayon-cs", most)
        ),
        f"At the largest over-estimate best-effort jobs of TetriSched are done sooner ({figure}; "
        f"published: up to 80 % sooner).": latency(tetrisched.GLOBAL, most).against("rayon-cs"),
    }
