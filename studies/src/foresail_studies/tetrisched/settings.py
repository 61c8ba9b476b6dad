"""Studies of TetriSched by setting: what is left open, plan-ahead windows, and their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.study import Bound, GridPoint, Mean, Study, published
from foresail_studies.tetrisched._shared import (
    ALL,
    DRAWN,
    GLOBAL,
    MEASURES,
    NO_SOFT_CONSTRAINTS,
    ONE_BY_ONE,
    OURS,
    SOURCE,
    STACKS,
    TetriSchedStudyParameters,
    met,
    notes_of,
    planning_ahead,
    setting,
)
from foresail_studies.trial import TrialSetting, cases_of, named

_SLACK: Final = "deadline slack (%)"
_SLOWDOWN: Final = "times longer on other nodes"
_LOAD: Final = "offered load"


@dataclass(frozen=True, slots=True)
class TetriSchedAssumptionsParameters(
    TetriSchedStudyParameters,
    quick="seeds=3 slacks=[20,60,140,275] slowdowns=[1.5,2] loads=[0.7,1.4]",
    minutes=(4, 120),
):
    """Parameters of ``tetrisched-assumptions``; each list is tried with the others at defaults."""

    slacks: tuple[float, ...] = (20.0, 60.0, 140.0, 275.0)
    """Slacks of the deadlines in per cent, each for all jobs of a run."""
    slowdowns: tuple[float, ...] = (1.0, 1.5, 2.0)
    """Values of ``slowdown``."""
    loads: tuple[float, ...] = (0.7, 1.0, 1.4)
    """Values of ``load``."""


@register("study", "tetrisched-assumptions", parameters=TetriSchedAssumptionsParameters)
def assumptions(parameters: TetriSchedAssumptionsParameters) -> Study:
    """Find where TetriSched's claims hold: slack, slowdown and load (figures 9 and 10)."""
    settings = _settings(parameters)
    systems = named(GLOBAL, NO_SOFT_CONSTRAINTS, ONE_BY_ONE, OURS)
    return Study(
        title="Where do TetriSched's claims hold?",
        source=f"{SOURCE}, figures 9 and 10",
        axis="assumed",
        measures=MEASURES,
        drawn=DRAWN,
        cases=tuple(cases_of(parameters, settings, {**systems, **STACKS})),
        claims=published(*(_claims(each.group, each.x) for each in settings)),
        notes=(
            *notes_of(parameters),
            "A slack of 275 % stands for the 250 and 300 % that 3Sigma's publication tells of.",
        ),
    )


def _settings(parameters: TetriSchedAssumptionsParameters) -> list[TrialSetting]:
    tried = [
        *((_SLACK, x, replace(parameters, slack_percents=(x,))) for x in parameters.slacks),
        *((_SLOWDOWN, x, replace(parameters, slowdown=x)) for x in parameters.slowdowns),
        *((_LOAD, x, replace(parameters, load=x)) for x in parameters.loads),
    ]
    return [replace(setting(changed, "gs_het", x), group=group) for group, x, changed in tried]


def _claims(group: str, x: float | None) -> dict[str, Bound]:
    assert x is not None
    where = f"{group}: {x:g}"
    best = met(GLOBAL, x, group=group)
    return {
        f"With soft constraints twice as many deadlines are met ({where}).": Bound(
            met(NO_SOFT_CONSTRAINTS, x, group=group), best, factor=0.5
        ),
        f"With soft constraints more deadlines are met ({where}).": Bound(
            met(NO_SOFT_CONSTRAINTS, x, group=group), best
        ),
        f"Placing all together meets more deadlines than one by one ({where}).": Bound(
            met(ONE_BY_ONE, x, group=group), best
        ),
        **{
            f"TetriSched meets more deadlines than Rayon/CS ({stack}; {where}).": Bound(
                met(stack, x, group=group), best
            )
            for stack in STACKS
        },
    }


_SLOT_SECONDS: Final = 4.0
_SATURATED: Final = 96.0


@dataclass(frozen=True, slots=True)
class PlanAheadStudyParameters(
    TetriSchedStudyParameters, quick="window_seconds=[0,48,96,144]", minutes=(3, 15)
):
    """Parameters of ``tetrisched-plan-ahead`` and ``tetrisched-scalability``."""

    window_seconds: tuple[float, ...] = (0.0, 24.0, 48.0, 72.0, 96.0, 120.0, 144.0)
    """How long after now the last start that is considered is, in whole slots of 4 s."""


@register("study", "tetrisched-plan-ahead", parameters=PlanAheadStudyParameters)
def plan_ahead(parameters: PlanAheadStudyParameters) -> Study:
    """Compare plan-ahead windows: deadlines met and best-effort latency (figure 11)."""
    most = max(parameters.window_seconds)
    return Study(
        title="How far should a plan reach?",
        source=f"{SOURCE}, figure 11",
        axis="plan-ahead (s)",
        measures=MEASURES,
        drawn=DRAWN,
        cases=_cases(parameters),
        claims=published(
            {
                "Without planning ahead fewer deadlines are met than with 96 s of it.": Bound(
                    met(GLOBAL, 0.0), met(GLOBAL, _SATURATED)
                ),
                "Beyond about 100 s nothing is gained (taken as: less than 2 points).": Bound(
                    met(GLOBAL, most), met(GLOBAL, _SATURATED), margin=0.02
                ),
                "With 96 s placing all together meets more deadlines than one by one.": met(
                    ONE_BY_ONE, _SATURATED
                ).against(GLOBAL),
            }
        ),
        notes=notes_of(parameters),
    )


@register("study", "tetrisched-scalability", parameters=PlanAheadStudyParameters)
def scalability(parameters: PlanAheadStudyParameters) -> Study:
    """Measure the duration of planning cycles (figure 12)."""
    most = max(parameters.window_seconds)

    def cost(system: str, *x: float) -> Mean:
        return Mean(grid.CYCLE.name, system, x=x)

    return Study(
        title="What does planning ahead cost?",
        source=f"{SOURCE}, figure 12",
        axis="plan-ahead (s)",
        measures=(grid.CYCLE, grid.SLOW_CYCLE, ALL, grid.LATENCY),
        drawn=(grid.CYCLE.name, grid.SLOW_CYCLE.name),
        cases=_cases(parameters),
        claims=published(
            {
                "A longer window makes cycles of global placing longer.": Bound(
                    cost(GLOBAL, 0.0), cost(GLOBAL, most)
                ),
                "Placing one by one has shorter cycles than placing all together.": cost(
                    ONE_BY_ONE
                ).against(GLOBAL),
                "For placing one by one a longer window can make cycles shorter, since fewer "
                "jobs wait.": Bound(cost(ONE_BY_ONE, most), cost(ONE_BY_ONE, 0.0)),
                "Cycles of global placing stay below the "
                "cycle's length of 4 s (99 % of them).": Bound(
                    grid.SLOW_CYCLE.of(GLOBAL, most), 1000.0 * parameters.cycle_seconds
                ),
            }
        ),
        notes=(
            *notes_of(parameters),
            "The published setup is not named; these are the runs of figure 11. Latencies are "
            "those of the machine that ran the study, with as many runs at once as processors.",
        ),
    )


def _cases(parameters: PlanAheadStudyParameters) -> tuple[GridPoint, ...]:
    return tuple(
        case
        for window in parameters.window_seconds
        for case in cases_of(parameters, [setting(parameters, "gs_het", window)], _policies(window))
    )


def _policies(window_seconds: float) -> dict[str, str]:
    slots = round(window_seconds / _SLOT_SECONDS) + 1
    return {
        GLOBAL: planning_ahead(f"window_slots={slots}"),
        ONE_BY_ONE: planning_ahead(f"placing=in_order,window_slots={slots}"),
    }
