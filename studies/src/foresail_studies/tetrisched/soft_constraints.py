"""Study ``tetrisched-soft-constraints``: what it gives to know where jobs run best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Study, published
from foresail_studies.tetrisched import _shared as tetrisched

_SYSTEMS: Final = (tetrisched.GLOBAL, tetrisched.NO_SOFT_CONSTRAINTS, tetrisched.OURS)


@dataclass(frozen=True, slots=True)
class SoftConstraintsParameters(tetrisched.EstimateErrorsParameters):
    """Parameters of ``tetrisched-soft-constraints``."""

    QUICK_MINUTES: ClassVar[float] = 3.0
    FULL_MINUTES: ClassVar[float] = 30.0


@register("study", "tetrisched-soft-constraints", parameters=SoftConstraintsParameters)
def soft_constraints(parameters: SoftConstraintsParameters) -> Study:
    """Measure the gain of knowing where jobs run best (figure 9)."""
    least, most = min(parameters.error_percents), max(parameters.error_percents)
    met = tetrisched.met
    return tetrisched.study_of_errors(
        parameters,
        title="What does it give to know where jobs run best?",
        figures="figure 9",
        generators=("gs_het",),
        systems=_SYSTEMS,
        claims=published(
            {
                "With soft constraints two to three times as many deadlines are met (taken as: "
                "twice).": met(tetrisched.NO_SOFT_CONSTRAINTS).against(
                    tetrisched.GLOBAL, factor=0.5
                ),
                "With soft constraints more deadlines are met than without.": met(
                    tetrisched.NO_SOFT_CONSTRAINTS
                ).against(tetrisched.GLOBAL),
                **{
                    f"TetriSched meets more deadlines than Rayon/CS ({stack}).": met(stack).against(
                        tetrisched.GLOBAL
                    )
                    for stack in tetrisched.STACKS
                },
                "As over-estimates grow, TetriSched without soft constraints falls "
                "below Rayon/CS.": met(tetrisched.NO_SOFT_CONSTRAINTS, most).against("rayon-cs"),
                **{
                    f"TetriSched meets up to 3.5 times as many deadlines as Rayon/CS (abstract; "
                    f"taken as: at the largest under-estimate; "
                    f"{stack}).": met(stack, least).against(tetrisched.GLOBAL, factor=1.0 / 3.5)
                    for stack in tetrisched.STACKS
                },
            }
        ),
    )
