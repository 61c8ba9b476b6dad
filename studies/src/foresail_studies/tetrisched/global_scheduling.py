"""Study ``tetrisched-global``: what it gives to place all waiting jobs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial_grid as grid
from foresail_studies.study import Study, published
from foresail_studies.tetrisched import _shared as tetrisched

_SYSTEMS: Final = (tetrisched.GLOBAL, tetrisched.ONE_BY_ONE, tetrisched.OURS)
_PUBLISHED_GAP_AT: Final = 50.0


@dataclass(frozen=True, slots=True)
class GlobalParameters(tetrisched.EstimateErrorsParameters):
    """Parameters of ``tetrisched-global``."""

    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 15.0


@register("study", "tetrisched-global", parameters=GlobalParameters)
def placing_globally(parameters: GlobalParameters) -> Study:
    """Measure the gain of placing all waiting jobs together (figure 10)."""
    met = tetrisched.met
    return tetrisched.study_of_errors(
        parameters,
        title="What does it give to place all waiting jobs together?",
        figures="figure 10",
        generators=("gs_het",),
        systems=_SYSTEMS,
        claims=published(
            {
                "Placing all together meets more deadlines than one by one.": met(
                    tetrisched.ONE_BY_ONE
                ).against(tetrisched.GLOBAL),
                "The gap is up to 36 points, at an over-estimate of 50 %.": met(
                    tetrisched.ONE_BY_ONE, _PUBLISHED_GAP_AT
                ).against(tetrisched.GLOBAL, margin=-0.36),
                "One by one still meets more deadlines than Rayon/CS.": met("rayon-cs").against(
                    tetrisched.ONE_BY_ONE
                ),
                "Best-effort jobs are done sooner one by one than under Rayon/CS.": grid.LATENCY.of(
                    tetrisched.ONE_BY_ONE
                ).against("rayon-cs"),
            }
        ),
    )
