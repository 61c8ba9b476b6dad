"""Studies of TetriSched: as estimates err, what is left open, plan-ahead windows, their cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.declaring import Rows, declared
from foresail_studies.policies import dropping
from foresail_studies.study import GridPoint, Measure, Study
from foresail_studies.trial import TrialParameters, TrialSetting, beginning_of, cases_of, named

MEASURES: Final = (
    Measure("slo_attainment", "deadlines met", "share"),
    Measure("accepted_slo_attainment", "deadlines met, accepted jobs", "share"),
    Measure("unreserved_slo_attainment", "deadlines met, rejected jobs", "share"),
    Measure("accepted_slo_jobs", "accepted jobs"),
    *(grid.LATENCY, grid.BEST_EFFORT_JOBS, grid.PREEMPTIONS, grid.CYCLE, grid.SLOW_CYCLE),
)

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
    name: str,
    parameters: TetriSchedStudyParameters,
    cases: Iterable[GridPoint],
    for_each: dict[str, Rows] | None = None,
    **values: Any,
) -> Study:
    """The study of this name, with what its words say of the parameters."""
    beginning = beginning_of(parameters)
    return declared(name, MEASURES, cases, for_each, beginning=beginning, **values)


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


_FIGURES: Final = {"gr_mix": 6, "gr_slo": 7, "gs_mix": 8}
"""Of each generator."""


@register("study", "tetrisched-estimate-error", parameters=EstimateErrorsParameters)
def estimate_error(parameters: EstimateErrorsParameters) -> Study:
    """TetriSched against Rayon/CapacityScheduler as estimates err (figures 6, 7, 8)."""
    errors = parameters.error_percents
    rows = [
        {"group": each.upper(), "figure": figure, **_ends(errors)}
        for each, figure in _FIGURES.items()
    ]
    return study_of(
        "tetrisched-estimate-error",
        parameters,
        error_cases(parameters, _FIGURES, GLOBAL),
        {
            "generator": rows,
            "error": [{**row, "error": f"{error:g}"} for row in rows for error in errors],
            "mixed": [row for row in rows if row["group"] != "GR_SLO"],
        },
    )


def _ends(values: Iterable[float]) -> dict[str, Any]:
    return {"least": f"{min(values):g}", "most": f"{max(values):g}"}


@register("study", "tetrisched-global", parameters=EstimateErrorsParameters)
def placing_globally(parameters: EstimateErrorsParameters) -> Study:
    """Measure the gain of placing all waiting jobs together (figure 10)."""
    cases = error_cases(parameters, ("gs_het",), GLOBAL, ONE_BY_ONE, OURS)
    return study_of("tetrisched-global", parameters, cases)


@register("study", "tetrisched-soft-constraints", parameters=EstimateErrorsParameters)
def soft_constraints(parameters: EstimateErrorsParameters) -> Study:
    """Measure the gain of knowing where jobs run best (figure 9)."""
    cases = error_cases(parameters, ("gs_het",), GLOBAL, NO_SOFT_CONSTRAINTS, OURS)
    ends = _ends(parameters.error_percents)
    return study_of("tetrisched-soft-constraints", parameters, cases, **ends)


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
    systems = {**named(GLOBAL, NO_SOFT_CONSTRAINTS, ONE_BY_ONE, OURS), **STACKS}
    rows = [{"group": each.group, "x": f"{each.x:g}"} for each in settings]
    cases = cases_of(parameters, settings, systems)
    return study_of("tetrisched-assumptions", parameters, cases, {"assumed": rows})


def _settings(parameters: TetriSchedAssumptionsParameters) -> list[TrialSetting]:
    tried = [
        *((_SLACK, x, replace(parameters, slack_percents=(x,))) for x in parameters.slacks),
        *((_SLOWDOWN, x, replace(parameters, slowdown=x)) for x in parameters.slowdowns),
        *((_LOAD, x, replace(parameters, load=x)) for x in parameters.loads),
    ]
    return [replace(setting(changed, "gs_het", x), group=group) for group, x, changed in tried]


_SLOT_SECONDS: Final = 4.0


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
    ends = _ends(parameters.window_seconds)
    return study_of("tetrisched-plan-ahead", parameters, _cases(parameters), **ends)


@register("study", "tetrisched-scalability", parameters=PlanAheadStudyParameters)
def scalability(parameters: PlanAheadStudyParameters) -> Study:
    """Measure the duration of planning cycles (figure 12)."""
    cycle = f"{1000.0 * parameters.cycle_seconds:g}"
    ends = _ends(parameters.window_seconds)
    return study_of(
        "tetrisched-scalability", parameters, _cases(parameters), cycle_milliseconds=cycle, **ends
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
