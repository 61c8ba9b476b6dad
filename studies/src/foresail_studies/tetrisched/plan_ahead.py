"""Study ``tetrisched-plan-ahead``: how far to plan, what that gives, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial_grid as grid
from foresail_studies.study import Bound, GridPoint, Mean, Study, published
from foresail_studies.tetrisched import _shared as tetrisched
from foresail_studies.trial_grid import cases_of

_SLOT_SECONDS: Final = 4.0
_SATURATED: Final = 96.0


@dataclass(frozen=True, slots=True)
class PlanAheadStudyParameters(tetrisched.TetriSchedStudyParameters):
    """Parameters of ``tetrisched-plan-ahead`` and ``tetrisched-scalability``."""

    QUICK: ClassVar[dict[str, str]] = {**tetrisched.QUICK, "window_seconds": "[0,48,96,144]"}
    QUICK_MINUTES: ClassVar[float] = 3.0
    FULL_MINUTES: ClassVar[float] = 15.0

    window_seconds: tuple[float, ...] = (0.0, 24.0, 48.0, 72.0, 96.0, 120.0, 144.0)
    """How long after now the last start that is considered is, in whole slots of 4 s."""


@register("study", "tetrisched-plan-ahead", parameters=PlanAheadStudyParameters)
def plan_ahead(parameters: PlanAheadStudyParameters) -> Study:
    """Compare plan-ahead windows: deadlines met and best-effort latency (figure 11)."""
    most = max(parameters.window_seconds)
    met = tetrisched.met
    return Study(
        title="How far should a plan reach?",
        source=f"{tetrisched.SOURCE}, figure 11",
        axis="plan-ahead (s)",
        measures=tetrisched.MEASURES,
        drawn=tetrisched.DRAWN,
        cases=_cases(parameters),
        claims=published(
            {
                "Without planning ahead fewer deadlines are met than with 96 s of it.": Bound(
                    met(tetrisched.GLOBAL, 0.0), met(tetrisched.GLOBAL, _SATURATED)
                ),
                "Beyond about 100 s nothing is gained (taken as: less than 2 points).": Bound(
                    met(tetrisched.GLOBAL, most), met(tetrisched.GLOBAL, _SATURATED), margin=0.02
                ),
                "With 96 s placing all together meets more deadlines than one by one.": met(
                    tetrisched.ONE_BY_ONE, _SATURATED
                ).against(tetrisched.GLOBAL),
            }
        ),
        notes=tetrisched.notes_of(parameters),
    )


@register("study", "tetrisched-scalability", parameters=PlanAheadStudyParameters)
def scalability(parameters: PlanAheadStudyParameters) -> Study:
    """Measure the duration of planning cycles (figure 12)."""
    most = max(parameters.window_seconds)

    def cost(system: str, *x: float) -> Mean:
        return Mean(grid.CYCLE.name, system, x=x)

    return Study(
        title="What does planning ahead cost?",
        source=f"{tetrisched.SOURCE}, figure 12",
        axis="plan-ahead (s)",
        measures=(grid.CYCLE, grid.SLOW_CYCLE, tetrisched.ALL, grid.LATENCY),
        drawn=(grid.CYCLE.name, grid.SLOW_CYCLE.name),
        cases=_cases(parameters),
        claims=published(
            {
                "A longer window makes cycles of global placing longer.": Bound(
                    cost(tetrisched.GLOBAL, 0.0), cost(tetrisched.GLOBAL, most)
                ),
                "Placing one by one has shorter cycles than placing all together.": cost(
                    tetrisched.ONE_BY_ONE
                ).against(tetrisched.GLOBAL),
                "For placing one by one a longer window can make cycles shorter, since fewer "
                "jobs wait.": Bound(
                    cost(tetrisched.ONE_BY_ONE, most), cost(tetrisched.ONE_BY_ONE, 0.0)
                ),
                "Cycles of global placing stay below the "
                "cycle's length of 4 s (99 % of them).": Bound(
                    grid.SLOW_CYCLE.of(tetrisched.GLOBAL, most), 1000.0 * parameters.cycle_seconds
                ),
            }
        ),
        notes=(
            *tetrisched.notes_of(parameters),
            "The published setup is not named; these are the runs of figure 11. Latencies are "
            "those of the machine that ran the study, with as many runs at once as processors.",
        ),
    )


def _cases(parameters: PlanAheadStudyParameters) -> tuple[GridPoint, ...]:
    return tuple(
        case
        for window in parameters.window_seconds
        for case in cases_of(
            parameters, [tetrisched.setting(parameters, "gs_het", window)], _policies(window)
        )
    )


def _policies(window_seconds: float) -> dict[str, str]:
    slots = round(window_seconds / _SLOT_SECONDS) + 1
    return {
        tetrisched.GLOBAL: tetrisched.planning_ahead(f"window_slots={slots}"),
        tetrisched.ONE_BY_ONE: tetrisched.planning_ahead(f"placing=in_order,window_slots={slots}"),
    }
