"""Studies of TetriSched as estimates err: against Rayon, placing together, soft constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.study import Bound, Mean, Study, published
from foresail_studies.tetrisched._shared import (
    ACCEPTED,
    GLOBAL,
    NO_SOFT_CONSTRAINTS,
    ONE_BY_ONE,
    OURS,
    STACKS,
    EstimateErrorsParameters,
    met,
    study_of_errors,
)

_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}


@dataclass(frozen=True, slots=True)
class EstimateErrorParameters(EstimateErrorsParameters, minutes=(4, 20)):
    """Parameters of ``tetrisched-estimate-error``."""

    workloads: tuple[str, ...] = tuple(_FIGURES)
    """Generators: of figures 6, 7 and 8."""


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorParameters)
def estimate_error(parameters: EstimateErrorParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    return study_of_errors(
        parameters,
        title="How wrong may estimates be?",
        figures="figures 6, 7 and 8",
        generators=parameters.workloads,
        systems=(GLOBAL,),
        claims=published(
            *(_claims(each, parameters.error_percents) for each in parameters.workloads)
        ),
    )


def _claims(generator: str, errors: tuple[float, ...]) -> dict[str, Bound]:
    group, least, most = generator.upper(), min(errors), max(errors)
    figure = f"{group}, figure {_FIGURES[generator]}" if generator in _FIGURES else group
    common = {
        f"TetriSched keeps more than 95 % of accepted deadlines even where estimates are half of "
        f"the runtime ({figure}).": Bound(0.95, met(GLOBAL, least, group=group, of=ACCEPTED)),
        **{
            f"TetriSched meets more deadlines than Rayon/CS at an error of {error:g} % "
            f"({figure}).": met("rayon-cs", error, group=group).against(GLOBAL)
            for error in errors
        },
        f"TetriSched meets more deadlines than Rayon/CS, which promises nodes as early as "
        f"possible, over all "
        f"errors ({figure}).": met("rayon-cs, earliest", group=group).against(GLOBAL),
        **{
            f"Under-estimates cost Rayon/CS accepted deadlines ({stack}; {figure}).": Bound(
                met(stack, least, group=group, of=ACCEPTED),
                met(stack, 0.0, group=group, of=ACCEPTED),
            )
            for stack in STACKS
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
        f"published: up to 80 % sooner).": latency(GLOBAL, most).against("rayon-cs"),
    }


_GLOBAL_SCHEDULING_SYSTEMS: Final = (GLOBAL, ONE_BY_ONE, OURS)
_PUBLISHED_GAP_AT: Final = 50.0


@dataclass(frozen=True, slots=True)
class GlobalParameters(EstimateErrorsParameters, minutes=(2, 15)):
    """Parameters of ``tetrisched-global``."""


@register("study", "tetrisched-global", parameters=GlobalParameters)
def placing_globally(parameters: GlobalParameters) -> Study:
    """Measure the gain of placing all waiting jobs together (figure 10)."""
    return study_of_errors(
        parameters,
        title="What does it give to place all waiting jobs together?",
        figures="figure 10",
        generators=("gs_het",),
        systems=_GLOBAL_SCHEDULING_SYSTEMS,
        claims=published(
            {
                "Placing all together meets more deadlines than one by one.": met(
                    ONE_BY_ONE
                ).against(GLOBAL),
                "The gap is up to 36 points, at an over-estimate of 50 %.": met(
                    ONE_BY_ONE, _PUBLISHED_GAP_AT
                ).against(GLOBAL, margin=-0.36),
                "One by one still meets more deadlines than Rayon/CS.": met("rayon-cs").against(
                    ONE_BY_ONE
                ),
                "Best-effort jobs are done sooner one by one than under Rayon/CS.": grid.LATENCY.of(
                    ONE_BY_ONE
                ).against("rayon-cs"),
            }
        ),
    )


_SOFT_CONSTRAINTS_SYSTEMS: Final = (GLOBAL, NO_SOFT_CONSTRAINTS, OURS)


@dataclass(frozen=True, slots=True)
class SoftConstraintsParameters(EstimateErrorsParameters, minutes=(3, 30)):
    """Parameters of ``tetrisched-soft-constraints``."""


@register("study", "tetrisched-soft-constraints", parameters=SoftConstraintsParameters)
def soft_constraints(parameters: SoftConstraintsParameters) -> Study:
    """Measure the gain of knowing where jobs run best (figure 9)."""
    least, most = min(parameters.error_percents), max(parameters.error_percents)
    return study_of_errors(
        parameters,
        title="What does it give to know where jobs run best?",
        figures="figure 9",
        generators=("gs_het",),
        systems=_SOFT_CONSTRAINTS_SYSTEMS,
        claims=published(
            {
                "With soft constraints two to three times as many deadlines are met (taken as: "
                "twice).": met(NO_SOFT_CONSTRAINTS).against(GLOBAL, factor=0.5),
                "With soft constraints more deadlines are met than without.": met(
                    NO_SOFT_CONSTRAINTS
                ).against(GLOBAL),
                **{
                    f"TetriSched meets more deadlines than Rayon/CS ({stack}).": met(stack).against(
                        GLOBAL
                    )
                    for stack in STACKS
                },
                "As over-estimates grow, TetriSched without soft constraints falls "
                "below Rayon/CS.": met(NO_SOFT_CONSTRAINTS, most).against("rayon-cs"),
                **{
                    f"TetriSched meets up to 3.5 times as many deadlines as Rayon/CS (abstract; "
                    f"taken as: at the largest under-estimate; "
                    f"{stack}).": met(stack, least).against(GLOBAL, factor=1.0 / 3.5)
                    for stack in STACKS
                },
            }
        ),
    )
