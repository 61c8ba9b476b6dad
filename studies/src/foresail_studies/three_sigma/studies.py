"""The studies of 3Sigma: against other systems, by assumption, and what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies import trial as grid
from foresail_studies.declaring import Rows, declared
from foresail_studies.policies import dropping
from foresail_studies.study import GridPoint, Measure, Study, require_log
from foresail_studies.trial import TrialParameters, TrialSetting, beginning_of, cases_of, named

_MEASURES: Final = (
    Measure("slo_miss_rate", "deadlines missed", "share"),
    Measure("goodput_hours_by_the_end", "goodput (node hours)"),
    Measure("slo_on_time_goodput_hours", "goodput of deadlines met (node hours)"),
    Measure("best_effort_goodput_hours_by_the_end", "best-effort goodput (node hours)"),
    *(grid.LATENCY, grid.BEST_EFFORT_JOBS, grid.PREEMPTIONS, grid.CYCLE, grid.SLOW_CYCLE),
    Measure("prediction_milliseconds_max", "slowest prediction (ms)"),
    Measure("cycle_milliseconds_max", "slowest cycle (ms)"),
)
_SIGMA: Final = "3sigma-published"
_PERFECT: Final = "point-perfect-published"
_POINTS: Final = "point-real-published"
_PRIORITY: Final = "prio"
_MAIN: Final = (_SIGMA, _PERFECT, _POINTS, _PRIORITY)
"""The systems as published: they drop jobs whose deadline is out of reach."""
_OURS: Final = ("3sigma", "point-perfect", "point-real")
"""The same, with jobs that have become hopeless run on leftovers: our own default."""

_JOB_NAMES: Final = 1_500
_JOB_NODE_HOURS: Final = 1.19
"""Of the generators' built-in population: names that jobs have, and a job's mean work."""


@dataclass(frozen=True, slots=True)
class ThreeSigmaParameters(TrialParameters):
    """Parameters that the studies of 3Sigma share."""

    POSITIVE: ClassVar[tuple[str, ...]] = (*TrialParameters.POSITIVE, "nodes")

    nodes: int = 256
    """The machine."""


@dataclass(frozen=True, slots=True)
class E2EStudyParameters(
    ThreeSigmaParameters, quick="seeds=4 hours=1 discarded_hours=0 cycle_seconds=5"
):
    """Parameters of the studies on the E2E recipe; the defaults are as published."""

    POSITIVE: ClassVar[tuple[str, ...]] = (
        *(*ThreeSigmaParameters.POSITIVE, "history_runs_per_name", "load"),
    )

    history_runs_per_name: float = 100.0
    """From how many runs of each job name, on average, predictors have learned before."""
    load: float = 1.4
    """Offered load, half of it from jobs with deadlines."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """Slacks of the deadlines, each as likely."""
    slowdown: float = 1.5
    """How many times longer a job runs on nodes that it does not prefer."""


def _recipe(parameters: E2EStudyParameters, generator: str = "e2e", more: str = "") -> str:
    """Short form of a generator of the E2E recipe, as the study's parameters say; for the run.

    ``more`` are further settings, each after a comma.
    """
    slacks = ",".join(f"{slack:g}" for slack in parameters.slack_percents)
    size = f"hours={parameters.hours:g},nodes={parameters.nodes},load={parameters.load:g}"
    elsewhere = f"slowdown_elsewhere={parameters.slowdown:g}"
    return f"{generator}({size},slack_percents=[{slacks}],{elsewhere}{more})"


def _place(parameters: E2EStudyParameters, group: str, x: float | None = None) -> TrialSetting:
    """A run of the recipe after earlier jobs of its classes.

    Predictors learn from as many of these as make the runs of each name.
    """
    run = _recipe(parameters)
    jobs_per_hour = parameters.load * parameters.nodes / _JOB_NODE_HOURS
    hours = parameters.history_runs_per_name * _JOB_NAMES / jobs_per_hour
    return TrialSetting(run, f"{run[:-1]},history_hours={hours:.6g},part=history)", group, x)


def _with_slack(parameters: E2EStudyParameters, group: str, slack: float) -> TrialSetting:
    """The same with one slack for all jobs."""
    return _place(replace(parameters, slack_percents=(slack,)), group, slack)


def _study(
    name: str,
    parameters: TrialParameters,
    cases: Iterable[GridPoint],
    for_each: Mapping[str, Rows] | None = None,
    **values: object,
) -> Study:
    beginning = beginning_of(parameters)
    return declared(name, _MEASURES, cases, for_each, beginning=beginning, **values)


def _systems(*names: str) -> Rows:
    return [{"system": name} for name in names]


@dataclass(frozen=True, slots=True)
class EndToEndParameters(E2EStudyParameters, minutes=(4, 120)):
    """Parameters of ``3sigma-end-to-end``."""

    beside: tuple[str, ...] = _OURS
    """Policies to run beside the published systems."""
    emulated: bool = True
    """Whether to run the emulated real cluster too (table 4.2)."""


_CONDITIONS: Final = {"start_delay_seconds": 3.0, "runtime_noise": 0.03}
"""Of the emulated real cluster: mean time before a job runs on its nodes, and deviation of the
logarithm of the runtime."""
_TABLE_4_2: Final = {_SIGMA: 0.2875, _PERFECT: 0.6784, _POINTS: 2.025, _PRIORITY: 1.853}
"""Published difference of the share of deadlines missed, real against simulated, in points."""


@register("study", "3sigma-end-to-end", parameters=EndToEndParameters)
def end_to_end(parameters: EndToEndParameters) -> Study:
    """3Sigma against point estimates, perfect knowledge and strict priority (figure 4.6)."""
    ideal = _place(parameters, "ideal")
    real = replace(ideal, group="real", conditions=_CONDITIONS)
    cases = cases_of(parameters, [ideal], named(*_MAIN))
    cases += cases_of(parameters, [ideal], named(*parameters.beside))
    transfer = []
    if parameters.emulated:
        cases += cases_of(parameters, [real], named(*_MAIN))
        transfer = [
            {"system": system, "points": points, "margin": points / 100.0}
            for system, points in _TABLE_4_2.items()
        ]
    return _study("3sigma-end-to-end", parameters, cases, {"transfer": transfer})


@dataclass(frozen=True, slots=True)
class AssumptionsParameters(
    E2EStudyParameters,
    quick="seeds=3 histories=[2,100] slacks=[20,140] slowdowns=[1,2] loads=[1,1.6]",
    minutes=(6, 600),
):
    """Parameters of ``3sigma-assumptions``; each list is tried with the others as published."""

    histories: tuple[float, ...] = (2.0, 10.0, 100.0)
    """Values of ``history_runs_per_name``."""
    slacks: tuple[float, ...] = (20.0, 60.0, 140.0)
    """Slacks of the deadlines in per cent, each for all jobs of a run."""
    slowdowns: tuple[float, ...] = (1.0, 1.5, 2.0)
    """Values of ``slowdown``."""
    loads: tuple[float, ...] = (1.0, 1.4, 1.6)
    """Values of ``load``."""


@register("study", "3sigma-assumptions", parameters=AssumptionsParameters)
def assumptions(parameters: AssumptionsParameters) -> Study:
    """Find where 3Sigma's claims hold: history, hopeless jobs, slack, slowdown, load (4.6)."""
    given = parameters
    learned = [
        _place(
            replace(given, history_runs_per_name=runs), "runs of each job name learned from", runs
        )
        for runs in given.histories
    ]
    others = [
        *(_with_slack(given, "deadline slack (%)", slack) for slack in given.slacks),
        *(
            _place(replace(given, slowdown=slowdown), "times longer on other nodes", slowdown)
            for slowdown in given.slowdowns
        ),
        *(_place(replace(given, load=load), "offered load", load) for load in given.loads),
    ]
    # Ours are run too where it matters most, by what was learned before.
    cases = [case for each in learned for case in cases_of(given, [each], named(*_MAIN, *_OURS))]
    cases += [case for each in others for case in cases_of(given, [each], named(*_MAIN))]
    places = [{"group": each.group, "x": each.x} for each in (*learned, *others)]
    return _study("3sigma-assumptions", given, cases, {"place": places})


@dataclass(frozen=True, slots=True)
class SegmentsParameters(
    ThreeSigmaParameters, quick="seeds=8 cycle_seconds=30 discarded_hours=0", minutes=(3, 10)
):
    """Parameters of ``3sigma-segments``."""

    seeds: int = 10
    cycle_seconds: float = 10.0

    log: str = ""
    """The log; each seed draws a segment of it. ``--log PATH`` gives it."""

    def __post_init__(self) -> None:
        ThreeSigmaParameters.__post_init__(self)
        require_log(self.log)


@register("study", "3sigma-segments", parameters=SegmentsParameters)
def segments(parameters: SegmentsParameters) -> Study:
    """The same systems on segments of a real log, with deadlines made up (figure 4.7)."""
    size = f"hours={parameters.hours:g},nodes={parameters.nodes}"
    segment = f'segment(source="{parameters.log}",{size})'
    setting = TrialSetting(segment, f"{segment[:-1]},part=history)", "segments")
    cases = cases_of(parameters, [setting], named(*_MAIN))
    return _study("3sigma-segments", parameters, cases)


@dataclass(frozen=True, slots=True)
class AttributionParameters(
    E2EStudyParameters, quick="seeds=3 slack_percents=[20,60,140]", minutes=(5, 240)
):
    """Parameters of ``3sigma-attribution``."""

    slack_percents: tuple[float, ...] = tuple(range(20, 200, 20))
    """Slacks of the deadlines, each for all jobs of a run."""


@register("study", "3sigma-attribution", parameters=AttributionParameters)
def attribution(parameters: AttributionParameters) -> Study:
    """Measure the gain of each of 3Sigma's techniques, over deadline slack (figure 4.8)."""
    slacks = parameters.slack_percents
    settings = [_with_slack(parameters, "DEADLINE-n", slack) for slack in slacks]
    without = (f"3sigma-no-{each}-published" for each in ("dist", "oe", "adapt"))
    return _study(
        "3sigma-attribution",
        parameters,
        cases_of(parameters, settings, named(_SIGMA, *without, _PERFECT, _POINTS)),
        {"system": _systems(_SIGMA, _PERFECT, _POINTS)},
        tightest=min(slacks),
        loosest=max(slacks),
    )


@dataclass(frozen=True, slots=True)
class LoadParameters(E2EStudyParameters, quick="loads=[1,1.4,1.6]", minutes=(3, 60)):
    """Parameters of ``3sigma-load``."""

    loads: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)
    """Offered loads, half of each from jobs with deadlines; instead of ``load``."""


@register("study", "3sigma-load", parameters=LoadParameters)
def load(parameters: LoadParameters) -> Study:
    """Deadlines and best-effort work as the load grows (figure 4.10)."""
    loads = parameters.loads
    settings = [_place(replace(parameters, load=each), "E2E-LOAD", each) for each in loads]
    cases = cases_of(parameters, settings, named(*_MAIN))
    rows = {"system": _systems(*_MAIN)}
    return _study("3sigma-load", parameters, cases, rows, least=min(loads), most=max(loads))


_SMALL_SHIFT = 20.0


@dataclass(frozen=True, slots=True)
class PerturbationParameters(
    E2EStudyParameters, quick="shift_percents=[-50,0,50]", minutes=(4, 60)
):
    """Parameters of ``3sigma-perturbation``."""

    shift_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    """By how much of the runtime beliefs are off on average."""
    spread_percents: tuple[float, ...] = (10.0, 20.0, 50.0)
    """Standard deviations of beliefs in per cent of the runtime, the narrowest first."""


@register("study", "3sigma-perturbation", parameters=PerturbationParameters)
def perturbation(parameters: PerturbationParameters) -> Study:
    """Beliefs that are off, narrow or wide, against points (figure 4.9)."""
    shifts = parameters.shift_percents
    spreads = {f"CoV {spread:g} %": spread for spread in parameters.spread_percents}
    workload = _recipe(parameters)
    cases = []
    for shift in shifts:
        told = f"perturbed(shift_percent={shift:g},seed={{seed}},spread_percent"
        policies = {
            system: dropping(f"3sigma,{told}={spread:g}),exponential_increment")
            for system, spread in spreads.items()
        }
        point = f"3sigma(distribution=no),{told}=0),exponential_increment"
        setting = TrialSetting(workload, None, "perturbed E2E", shift)
        cases += cases_of(parameters, [setting], {**policies, "point": dropping(point)})
    return _study(
        "3sigma-perturbation",
        parameters,
        cases,
        {"spread": _systems(*spreads)},
        narrow=next(iter(spreads)),
        wide=list(spreads)[-1],
        small=_listed(shift for shift in shifts if abs(shift) <= _SMALL_SHIFT),
        large=_listed(shift for shift in shifts if abs(shift) > _SMALL_SHIFT),
    )


def _listed(points: Iterable[float]) -> str:
    return ",".join(f"{point:g}" for point in points)


_SAMPLED: Final = {
    _SIGMA: dropping("3sigma,sampled,exponential_increment"),
    _POINTS: dropping("3sigma(distribution=no,over_estimates=off),sampled,exponential_increment"),
}


@dataclass(frozen=True, slots=True)
class SampleSizeParameters(E2EStudyParameters, quick="samples=[5,25,100]", minutes=(2, 60)):
    """Parameters of ``3sigma-sample-size``."""

    samples: tuple[int, ...] = (5, 10, 25, 50, 75, 100)
    """How many samples of its own distribution each job's belief is made of."""


@register("study", "3sigma-sample-size", parameters=SampleSizeParameters)
def sample_size(parameters: SampleSizeParameters) -> Study:
    """Find how many earlier runs a belief has to rest on (figure 4.11)."""
    cases = []
    for samples in parameters.samples:
        sampled = _recipe(parameters, "e2e_sample", f",samples={samples}")
        setting = TrialSetting(sampled, None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [setting], _SAMPLED)
        # The same jobs without samples, which these two do not look at: run once for all sizes.
        bare = TrialSetting(_recipe(parameters), None, "E2E-SAMPLE", samples)
        cases += cases_of(parameters, [bare], named(_PERFECT, _PRIORITY))
    fewest, most = min(parameters.samples), max(parameters.samples)
    rows = {"system": _systems(*_SAMPLED)}
    return _study("3sigma-sample-size", parameters, cases, rows, fewest=fewest, most=most)


@dataclass(frozen=True, slots=True)
class ScalabilityStudyParameters(
    ThreeSigmaParameters,
    quick="seeds=3 hours=0.25 discarded_hours=0 history_hours=1",
    minutes=(2, 90),
):
    """Parameters of ``3sigma-scalability``."""

    nodes: int = 12_583
    cycle_seconds: float = 2.0

    jobs_per_hour: tuple[int, ...] = (2000, 3000, 4000)
    """Rates of submission."""
    history_hours: float = 10.0
    """Length of what predictors learn from before the run."""


@register("study", "3sigma-scalability", parameters=ScalabilityStudyParameters)
def scalability(parameters: ScalabilityStudyParameters) -> Study:
    """Measure the cost of planning with distributions on Google's machine size (figure 4.12)."""
    settings = []
    for rate in parameters.jobs_per_hour:
        size = f"hours={parameters.hours:g},nodes={parameters.nodes},jobs_per_hour={rate}"
        history = f"scalability({size},history_hours={parameters.history_hours:g},part=history)"
        settings.append(TrialSetting(f"scalability({size})", history, "SCALABILITY-n", float(rate)))
    cases = cases_of(parameters, settings, named(_SIGMA, _POINTS))
    most, cycle = max(parameters.jobs_per_hour), 1000.0 * parameters.cycle_seconds
    return _study("3sigma-scalability", parameters, cases, most=most, cycle=cycle)
