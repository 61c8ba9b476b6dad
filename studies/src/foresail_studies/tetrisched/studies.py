"""Studies of TetriSched: as estimates err, what is left open, plan-ahead windows, their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.policies import dropping
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, published
from foresail_studies.trial import (
    TrialParameters,
    TrialSetting,
    beginning_of,
    cases_of,
    named,
)

ALL: Final = Measure("slo_attainment", "deadlines met", "share")
ACCEPTED: Final = Measure("accepted_slo_attainment", "deadlines met, accepted jobs", "share")
REJECTED: Final = Measure("unreserved_slo_attainment", "deadlines met, rejected jobs", "share")
ACCEPTED_JOBS: Final = Measure("accepted_slo_jobs", "accepted jobs")

MEASURES: Final = (
    *(ALL, ACCEPTED, REJECTED, grid.LATENCY, grid.BEST_EFFORT_JOBS, ACCEPTED_JOBS),
    *(grid.PREEMPTIONS, grid.CYCLE, grid.SLOW_CYCLE),
)
DRAWN: Final = (ALL.name, ACCEPTED.name, REJECTED.name, grid.LATENCY.name)

SOURCE: Final = "TetriSched (Tumanov and others, EuroSys 2016)"
ERROR_AXIS: Final = "estimate error (%)"

GLOBAL: Final = "tetrisched-published"
NO_SOFT_CONSTRAINTS: Final = "tetrisched-nh-published"
ONE_BY_ONE: Final = "tetrisched-ng-published"
OURS: Final = "tetrisched"
"""The first, with jobs that have become hopeless run on leftovers: our own default."""


@dataclass(frozen=True, slots=True)
class TetriSchedStudyParameters(TrialParameters, quick="seeds=4 hours=0.75 discarded_hours=0.25"):
    """Parameters that the studies of TetriSched share."""

    POSITIVE: ClassVar[tuple[str, ...]] = (*TrialParameters.POSITIVE, "load")

    cycle_seconds: float = 4.0

    load: float = 1.0
    """Offered load: work where it runs best over what the nodes can do."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """Slacks of the deadlines, each as likely."""
    slowdown: float = 1.5
    """How many times longer a job runs on nodes that it does not prefer."""


@dataclass(frozen=True, slots=True)
class EstimateErrorsParameters(
    TetriSchedStudyParameters, quick="error_percents=[-50,0,50]", minutes=(4, 30)
):
    """Parameters of the studies whose axis is the error of estimates."""

    error_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    """By how much jobs misstate their runtime."""


STACKS: Final = {
    "rayon-cs": "rayon-cs",
    "rayon-cs, earliest": "capacity(reservations=earliest),requested,"
    "exponential_increment(cycle_seconds=4,growth=1)",
}
"""The capacity stack, with Rayon promising nodes as late and as early as possible."""


def study_of(
    parameters: TetriSchedStudyParameters,
    title: str,
    figures: str,
    cases: Iterable[GridPoint],
    *claims: Mapping[str, Bound],
    axis: str = ERROR_AXIS,
    measures: Sequence[Measure] = MEASURES,
    drawn: Sequence[str] = DRAWN,
    notes: Sequence[str] = (),
) -> Study:
    """A study of TetriSched; ``notes`` join those of all."""
    return Study(
        title=title,
        source=f"{SOURCE}, {figures}",
        axis=axis,
        measures=tuple(measures),
        drawn=tuple(drawn),
        cases=tuple(cases),
        claims=published(*claims),
        notes=(*notes_of(parameters), *notes),
    )


def error_cases(
    parameters: EstimateErrorsParameters, generators: Iterable[str], *systems: str
) -> list[GridPoint]:
    """Systems, and the capacity stack, on generated workloads as estimates err."""
    settings = [
        setting(parameters, generator, error, error)
        for generator in generators
        for error in parameters.error_percents
    ]
    return cases_of(parameters, settings, {**named(*systems), **STACKS})


def setting(
    parameters: TetriSchedStudyParameters, generator: str, x: float, error_percent: float = 0.0
) -> TrialSetting:
    """A setting named by its generator, whose jobs misstate their runtime by so many per cent."""
    slacks = ",".join(f"{slack:g}" for slack in parameters.slack_percents)
    run = f"hours={parameters.hours:g},load={parameters.load:g},slack_percents=[{slacks}]"
    return TrialSetting(
        f"{generator}({run},slowdown_elsewhere={parameters.slowdown:g})",
        None,
        generator.upper(),
        x,
        {"estimate_error_percent": error_percent},
    )


def planning_ahead(settings: str) -> str:
    """TetriSched as published, with these settings, in short form."""
    text = f"tetrisched({settings}),requested,exponential_increment(cycle_seconds=4,growth=1)"
    return dropping(text)


def met(system: str, *x: float, group: str | None = None, of: Measure = ALL) -> Mean:
    """The share of deadlines met by a system."""
    return Mean(of.name, system, group, x)


def notes_of(parameters: TetriSchedStudyParameters) -> tuple[str, ...]:
    """Return where the studies differ from the published ones, and what is left open."""
    return (
        "Systems named -published drop jobs whose deadline is out of reach, as the published ones "
        "do; those without run them on nodes that no other job wants, which is our default.",
        "Deadlines have a slack of 20, 40, 60 or 80 %, as in 3Sigma's evaluation. TetriSched's "
        "does not state its own; 3Sigma's says that it was 250 and 300 %, where nearly all "
        "deadlines can be met by any of these systems (tetrisched-assumptions).",
        beginning_of(parameters),
        "Not published, and chosen: the distributions of widths, runtimes and deadlines, the grid "
        "of estimate errors, the slowdown (1.5), where gpus are, when Rayon places reservations "
        "(as late as possible, or as early as possible where that is said), the inner rules of the "
        "CapacityScheduler, the plan-ahead window (24 slots of 4 s), and the length of runs.",
        "A simulation goes on until all jobs are done: the best-effort latency is that of all of "
        "them, the published one of those that had completed.",
    )


_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}
"""Of each generator."""


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorsParameters)
def estimate_error(parameters: EstimateErrorsParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    return study_of(
        parameters,
        "How wrong may estimates be?",
        "figures 6, 7 and 8",
        error_cases(parameters, _FIGURES, GLOBAL),
        *(_error_claims(each, parameters.error_percents) for each in _FIGURES),
    )


def _error_claims(generator: str, errors: tuple[float, ...]) -> dict[str, Bound]:
    group, least, most = generator.upper(), min(errors), max(errors)
    figure = f"{group}, figure {_FIGURES[generator]}"
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


@register("study", "tetrisched-global", parameters=EstimateErrorsParameters)
def placing_globally(parameters: EstimateErrorsParameters) -> Study:
    """Measure the gain of placing all waiting jobs together (figure 10)."""
    return study_of(
        parameters,
        "What does it give to place all waiting jobs together?",
        "figure 10",
        error_cases(parameters, ("gs_het",), GLOBAL, ONE_BY_ONE, OURS),
        {
            "Placing all together meets more deadlines than one by one.": met(ONE_BY_ONE).against(
                GLOBAL
            ),
            "The gap is up to 36 points, at an over-estimate of 50 %.": met(
                ONE_BY_ONE, 50.0
            ).against(GLOBAL, margin=-0.36),
            "One by one still meets more deadlines than Rayon/CS.": met("rayon-cs").against(
                ONE_BY_ONE
            ),
            "Best-effort jobs are done sooner one by one than under Rayon/CS.": grid.LATENCY.of(
                ONE_BY_ONE
            ).against("rayon-cs"),
        },
    )


@register("study", "tetrisched-soft-constraints", parameters=EstimateErrorsParameters)
def soft_constraints(parameters: EstimateErrorsParameters) -> Study:
    """Measure the gain of knowing where jobs run best (figure 9)."""
    least, most = min(parameters.error_percents), max(parameters.error_percents)
    return study_of(
        parameters,
        "What does it give to know where jobs run best?",
        "figure 9",
        error_cases(parameters, ("gs_het",), GLOBAL, NO_SOFT_CONSTRAINTS, OURS),
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
        },
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
    return study_of(
        parameters,
        "Where do TetriSched's claims hold?",
        "figures 9 and 10",
        cases_of(parameters, settings, {**systems, **STACKS}),
        *(_assumption_claims(each.group, each.x) for each in settings),
        axis="assumed",
        notes=(
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
    return study_of(
        parameters,
        "How far should a plan reach?",
        "figure 11",
        _cases(parameters),
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
        },
        axis="plan-ahead (s)",
    )


@register("study", "tetrisched-scalability", parameters=PlanAheadStudyParameters)
def scalability(parameters: PlanAheadStudyParameters) -> Study:
    """Measure the duration of planning cycles (figure 12)."""
    most = max(parameters.window_seconds)

    def cost(system: str, *x: float) -> Mean:
        return Mean(grid.CYCLE.name, system, x=x)

    return study_of(
        parameters,
        "What does planning ahead cost?",
        "figure 12",
        _cases(parameters),
        {
            "A longer window makes cycles of global placing longer.": Bound(
                cost(GLOBAL, 0.0), cost(GLOBAL, most)
            ),
            "Placing one by one has shorter cycles than placing all together.": cost(
                ONE_BY_ONE
            ).against(GLOBAL),
            "For placing one by one a longer window can make cycles shorter, since fewer "
            "jobs wait.": Bound(cost(ONE_BY_ONE, most), cost(ONE_BY_ONE, 0.0)),
            "Cycles of global placing stay below the cycle's length of 4 s (99 % of them).": Bound(
                grid.SLOW_CYCLE.of(GLOBAL, most), 1000.0 * parameters.cycle_seconds
            ),
        },
        axis="plan-ahead (s)",
        measures=(grid.CYCLE, grid.SLOW_CYCLE, ALL, grid.LATENCY),
        drawn=(grid.CYCLE.name, grid.SLOW_CYCLE.name),
        notes=(
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
