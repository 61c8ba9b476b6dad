"""Studies of TetriSched: as estimates err, what is left open, plan-ahead windows, their cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.study import Bound, GridPoint, Mean, Study, published
from foresail_studies.tetrisched._shared import (
    ACCEPTED,
    ALL,
    DRAWN,
    GLOBAL,
    MEASURES,
    NO_SOFT_CONSTRAINTS,
    ONE_BY_ONE,
    OURS,
    SOURCE,
    STACKS,
    EstimateErrorsParameters,
    TetriSchedStudyParameters,
    met,
    notes_of,
    planning_ahead,
    setting,
    study_of_errors,
)
from foresail_studies.trial import TrialSetting, cases_of, named

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
            *(_error_claims(each, parameters.error_percents) for each in parameters.workloads)
        ),
    )


def _error_claims(generator: str, errors: tuple[float, ...]) -> dict[str, Bound]:
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
        claims=published(*(_assumption_claims(each.group, each.x) for each in settings)),
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


def _assumption_claims(group: str, x: float | None) -> dict[str, Bound]:
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
