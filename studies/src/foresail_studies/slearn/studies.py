"""The studies of SLearn: completion times, what sampling and history tell, and where each wins.

Each seed of ``slearn-over-time`` is a group of its own, since it is another trace: the mean of
several would show no load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.analysis.finding import Finding
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.registry import register
from foresail.simulator.task_replay import TasksReplayed
from foresail_studies.analyses.misordering import MISORDERED_BY_HISTORY, misordered_by_sampling
from foresail_studies.analyses.task_variability import TaskVariabilityParameters, task_variability
from foresail_studies.declaring import Rows, declared
from foresail_studies.generators.slearn import scaled_threshold
from foresail_studies.slearn._shared import (
    FIFO,
    JOINT,
    LAS,
    MEASURES,
    ORACLE,
    POINT,
    SIGMA,
    SIGMA_THIN,
    SLEARN,
    SMALL_SECONDS,
    THIN_BELOW,
    TRACES,
    SLearnStudyParameters,
    TaskTrial,
    Traces,
    by_job,
    completion,
    estimates,
    first_tasks,
    made_by,
    replayed,
    speedup,
    traces,
)
from foresail_studies.study import (
    BestMap,
    GridPoint,
    Study,
    StudyParameters,
    Task,
    generated,
    points_at,
    require_log,
)


def _study(
    name: str,
    parameters: SLearnStudyParameters,
    cases: Iterable[GridPoint],
    for_each: Mapping[str, Rows] | None = None,
) -> Study:
    return declared(name, MEASURES, cases, for_each, median_tasks=parameters.median_tasks)


def _cases(
    places: Iterable[Traces],
    seeds: int,
    systems: Iterable[str],
    task: Callable[[str, str, int, str], Task],
) -> list[GridPoint]:
    """Every system on every trace; a task is made of run, history, seed and the system's name."""
    return [
        GridPoint(place.name, None, system, seed, task(place.run, place.history, seed, system))
        for place in places
        for seed in range(seeds)
        for system in systems
    ]


def _over(faster: str) -> Callable[[str, str, int, str], TaskTrial]:
    """Trials of policies with the speed-up of one of them over each."""
    return lambda run, history, seed, policy: TaskTrial(run, history, seed, policy, faster, policy)


def _rows(*traces: str, **values: Mapping[str, object]) -> list[dict[str, object]]:
    """A row for each trace, wider jobs first, and what is known of it."""
    return [
        {"group": TRACES[trace] + wide, **{name: known[trace] for name, known in values.items()}}
        for wide in (", wider jobs", "")
        for trace in traces or TRACES
    ]


_SPEEDUPS_SYSTEMS: Final = (SLEARN, SIGMA, SIGMA_THIN, POINT, LAS, FIFO, ORACLE, JOINT)
_SPEEDUPS_OVER: Final = {
    "2strace": {SIGMA: 1.28, SIGMA_THIN: 1.26, POINT: 1.42, LAS: 1.91},
    "gtrace11": {SIGMA: 1.56, SIGMA_THIN: 1.55, POINT: 2.17, LAS: 1.65},
    "gtrace19": {SIGMA: 1.32, SIGMA_THIN: 1.32, POINT: 1.54, LAS: 1.72},
}
"""Published speed-ups of SLearn (figure 6), by calibration and baseline."""


@register("study", "slearn-speedups", parameters=SLearnStudyParameters)
def speedups(parameters: SLearnStudyParameters) -> Study:
    """SLearn's speed-up over every baseline on three traces (figure 6)."""
    over = [
        {"group": row["group"], "system": system, "factor": factor}
        for trace, published in _SPEEDUPS_OVER.items()
        for row in _rows(trace)
        for system, factor in published.items()
    ]
    sigma = {trace: published[SIGMA] for trace, published in _SPEEDUPS_OVER.items()}
    return _study(
        "slearn-speedups",
        parameters,
        _cases(traces(parameters), parameters.seeds, _SPEEDUPS_SYSTEMS, _over(SLEARN)),
        {"over": over, "trace": _rows(sigma=sigma), "two_sigma": _rows("2strace")},
    )


_PERCENT: Final = (1, 2, 3, 4, 5, 10)
_RATIOS_SYSTEMS: Final = {
    **{f"{percent} %": f"slearn(pilot_percent={percent})" for percent in _PERCENT},
    "adaptive": "slearn",
    **{f"thin limit {thin}": f"slearn(thin_below={thin})" for thin in (2, 3, 4, 5, 6)},
}


@register("study", "slearn-ratios", parameters=SLearnStudyParameters)
def ratios(parameters: SLearnStudyParameters) -> Study:
    """Fixed ratios of pilots against learned ones, and the thin limit (tables 6 and 8)."""

    def trial(run: str, history: str, seed: int, system: str) -> TaskTrial:
        policy = _RATIOS_SYSTEMS[system]
        return TaskTrial(run, history, seed, policy, policy, SIGMA)

    rows = {
        "percent": [{**row, "percent": percent} for row in _rows() for percent in _PERCENT],
        "trace": _rows(),
        "two_sigma": _rows("2strace"),
        "google": _rows("gtrace11", "gtrace19"),
    }
    cases = _cases(traces(parameters), parameters.seeds, _RATIOS_SYSTEMS, trial)
    return _study("slearn-ratios", parameters, cases, rows)


_HYBRID: Final = "slearn-dag"
_DAGS_OVER: Final = {SIGMA: 1.26, LAS: 2.15, POINT: 1.74}
"""Published speed-ups of SLearn-DAG (figure 9)."""


@dataclass(frozen=True, slots=True)
class DagParameters(SLearnStudyParameters):
    """Parameters of ``slearn-dags``; ``jobs`` are DAGs."""

    jobs: int = 900


@register("study", "slearn-dags", parameters=DagParameters)
def dags(parameters: DagParameters) -> Study:
    """SLearn-DAG's speed-ups on chains of two to five stages (figure 9)."""
    size = f"dags={parameters.jobs}"
    wider = f"{size},median_tasks={parameters.median_tasks:g}"
    settings = {"GTrace19": size, "GTrace19, wider jobs": wider}
    places = [made_by("slearn_dag", name, each) for name, each in settings.items()]
    systems = (_HYBRID, SLEARN, *_DAGS_OVER, FIFO, ORACLE)
    groups = _rows("gtrace19")
    over = [
        {**row, "system": system, "factor": factor}
        for row in groups
        for system, factor in _DAGS_OVER.items()
    ]
    cases = _cases(places, parameters.seeds, systems, _over(_HYBRID))
    return _study("slearn-dags", parameters, cases, {"over": over, "trace": groups})


_BINS: Final = {
    "thin, small": (10.54, 0.0455),
    "wide, small": (1.86, 0.2873),
    "thin, large": (0.80, 0.1429),
    "wide, large": (1.38, 0.5243),
}
"""Published average speed-ups over 3Sigma on 2STrace, and shares of the jobs (table 9).

Thin jobs have fewer than 3 tasks, small ones less than 1000 s of work."""


@dataclass(frozen=True, slots=True)
class BinTrial:
    """Jobs of one bin: their shares, and SLearn's speed-up over 3Sigma."""

    workload: str
    history: str
    seed: int
    bin: str

    def measure(self) -> Mapping[str, float]:
        """Measure as above."""
        of_trace = (self.workload, self.history, self.seed)
        ours, theirs = (replayed(*of_trace, each) for each in (SLEARN, SIGMA))
        first_task = first_tasks(ours)
        size = np.add.reduceat(ours.stages.runtime_seconds, first_task[:-1])
        part = in_bin(self.bin, np.diff(first_task), size)
        gain = speedup(completion(theirs)[part], completion(ours)[part])
        return {
            "speedup": gain.average,
            "median_speedup": gain.median,
            "jobs_share": float(part.mean()),
            "work_share": float(size[part].sum() / size.sum()),
        }


def in_bin(name: str, width: Integers, size: Floats) -> Booleans:
    """Return which jobs are in a bin, by their tasks and the seconds of these."""
    thin, small = width < THIN_BELOW, size < SMALL_SECONDS
    part: Booleans = (thin == name.startswith("thin")) & (small == name.endswith("small"))
    return part


@register("study", "slearn-bins", parameters=SLearnStudyParameters)
def slearn_bins(parameters: SLearnStudyParameters) -> Study:
    """SLearn's speed-up over 3Sigma by width and size of the jobs (figure 8, table 9)."""
    rows = [
        {**row, "bin": name, "factor": factor, "share": share}
        for row in _rows("2strace")
        for name, (factor, share) in _BINS.items()
    ]
    return _study(
        "slearn-bins",
        parameters,
        _cases(traces(parameters), parameters.seeds, _BINS, BinTrial),
        {
            "faster": [row for row in rows if row["bin"] != "thin, large"],
            "slower": [row for row in rows if row["bin"] == "thin, large"],
        },
    )


_MEDIANS: Final = {
    "2strace": (0.1898, 0.3657),
    "gtrace11": (0.1368, 0.2139),
    "gtrace19": (0.5184, 0.7156),
}
"""Published medians of the errors of SLearn and of 3Sigma."""
_LARGE: Final = {
    "2strace": (0.5866, 4.7578),
    "gtrace11": (0.4995, 2.9452),
    "gtrace19": (0.9225, 19.2751),
}
"""Published 90 % quantiles of the errors."""
_RIGHT: Final = {
    "2strace": (0.8909, 0.7384),
    "gtrace11": (0.8645, 0.7620),
    "gtrace19": (0.7396, 0.5807),
}
"""Published shares of wide jobs in the right queue (table 7)."""


@register("study", "slearn-estimates", parameters=SLearnStudyParameters)
def estimates_study(parameters: SLearnStudyParameters) -> Study:
    """Errors of predicted sizes, and wide jobs in the right queue (figure 2, tables 7 and 10)."""

    def trial(run: str, history: str, seed: int, policy: str) -> TaskTrial:
        return TaskTrial(run, history, seed, policy, policy, SIGMA)

    cases = _cases(traces(parameters), parameters.seeds, (SLEARN, SIGMA, POINT, JOINT), trial)
    rows = _rows(median=_MEDIANS, large=_LARGE, right=_RIGHT)
    return _study("slearn-estimates", parameters, cases, {"trace": rows})


_MANY: Final = "over time, ten similar jobs at least"
_SCALARS: Final = {
    "over time": "runtime_over_time",
    _MANY: "runtime_over_time",
    "over space": "runtime_over_space",
    "over space, one task at least": "runtime_over_space_at_least_one",
}
_EXCEEDS: Final = {
    "over space": "runtime_time_exceeds_space_share",
    "over space, one task at least": "runtime_time_exceeds_space_at_least_one_share",
}
_CLOSE: Final = 1.25
_OVER_TIME: Final = {"2strace": 1.00, "gtrace11": 0.20, "gtrace19": 1.35}
_OVER_SPACE: Final = {"2strace": 0.18, "gtrace11": 0.04, "gtrace19": 0.70}
"""Published medians (table 4); values that are near by less than a quarter count as such."""


@dataclass(frozen=True, slots=True)
class VariabilityTrial:
    """Variation of the jobs of a generated history, over time or over space."""

    history: str
    seed: int
    where: str

    def measure(self) -> Mapping[str, float]:
        """Quantiles of the coefficient of variation; nothing where nothing can be judged."""
        similar = 10 if self.where == _MANY else 2
        analysis = task_variability(
            TaskVariabilityParameters(window_days=(3.0, 7.0), similar_jobs=similar)
        )
        found = analysis.examine(generated(self.history, self.seed))
        if not isinstance(found, Finding):
            return {}
        name = _SCALARS[self.where]
        figures = {each: found.scalars[f"{name}_{each}"] for each in ("p50", "p90")}
        if self.where in _EXCEEDS:
            figures["time_exceeds"] = found.scalars[_EXCEEDS[self.where]]
        return figures


@register("study", "slearn-variability", parameters=SLearnStudyParameters)
def variability(parameters: SLearnStudyParameters) -> Study:
    """Variation of similar jobs over time, and of tasks over space (table 4)."""

    def trial(_: str, history: str, seed: int, where: str) -> VariabilityTrial:
        return VariabilityTrial(history, seed, where)

    rows = _rows(
        time=_OVER_TIME,
        space=_OVER_SPACE,
        least_time={trace: value / _CLOSE for trace, value in _OVER_TIME.items()},
        least_space={trace: value / _CLOSE for trace, value in _OVER_SPACE.items()},
    )
    cases = _cases(traces(parameters), parameters.seeds, _SCALARS, trial)
    found = {"trace": rows, "two_sigma": _rows("2strace")}
    return _study("slearn-variability", parameters, cases, found)


@dataclass(frozen=True, slots=True)
class DistributionTrial:
    """Share of the jobs below each value, of one replay."""

    workload: str
    history: str
    seed: int
    policy: str
    share: float

    def measure(self) -> Mapping[str, float]:
        """Quantiles of normalised waits, signed errors of wide jobs, and resistance."""
        found = by_job(self.workload, self.history, self.seed, self.policy)
        return {name: float(np.nanquantile(each, self.share)) for name, each in found.items()}


@dataclass(frozen=True, slots=True)
class DistributionParameters(SLearnStudyParameters, quick="seeds=3", minutes=(2, 10)):
    """Parameters of ``slearn-distributions``."""

    seeds: int = 10


@register("study", "slearn-distributions", parameters=DistributionParameters)
def distributions(parameters: DistributionParameters) -> Study:
    """Waits, signed errors and work ahead by the share of jobs below (section 5.4)."""
    cases = [
        GridPoint(trace.name, share, each, seed, DistributionTrial(*trace[1:], seed, each, share))
        for trace in traces(parameters)
        for seed in range(parameters.seeds)
        for each in (SLEARN, SIGMA, ORACLE)
        for share in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    ]
    return _study("slearn-distributions", parameters, cases, {"trace": _rows()})


_WINDOWS: Final = 25


@dataclass(frozen=True, slots=True)
class LoadTrial:
    """The work that is submitted in one of the windows that the time of submissions is cut into."""

    workload: str
    history: str
    seed: int
    window: int

    def measure(self) -> Mapping[str, float]:
        """Its seconds over those of all slots."""
        found = replayed(self.workload, self.history, self.seed, SLEARN)
        slots = generated(self.workload, self.seed).processors
        reach = float(found.submit[-1] - found.submit[0])
        within = _windows(found.submit) == self.window
        work = float(found.stages.job_seconds[within].sum())
        return {"load": work * _WINDOWS / (slots * reach)}


@dataclass(frozen=True, slots=True)
class TimelineTrial:
    """Metrics of the jobs that are submitted in one of the windows."""

    workload: str
    history: str
    seed: int
    policy: str
    window: int

    def measure(self) -> Mapping[str, float]:
        """Means over these jobs; nan where there are none."""
        of_trace = (self.workload, self.history, self.seed, self.policy)
        found, of_jobs = replayed(*of_trace), by_job(*of_trace)
        within = _windows(found.submit) == self.window
        values = {name: of_jobs[name] for name in ("resistance", "signed_error")}
        values["completion_seconds"] = completion(found)
        known = {name: each[within & np.isfinite(each)] for name, each in values.items()}
        return {name: float(each.mean()) if each.size else np.nan for name, each in known.items()}


def _windows(submit: Floats) -> Integers:
    """The window of each submission, from 0; the last one is in the last."""
    share = (submit - submit[0]) / max(float(submit[-1] - submit[0]), 1.0)
    windows: Integers = np.minimum((share * _WINDOWS).astype(np.int64), _WINDOWS - 1)
    return windows


@dataclass(frozen=True, slots=True)
class OverTimeParameters(SLearnStudyParameters, quick="seeds=3", minutes=(1, 3)):
    """Parameters of ``slearn-over-time``."""

    seeds: int = 10


@register("study", "slearn-over-time", parameters=OverTimeParameters)
def over_time(parameters: OverTimeParameters) -> Study:
    """Load, work ahead, errors and completion times of jobs by when they come (figure 14)."""
    name, run, history = traces(parameters)[0]
    cases = []
    for seed in range(parameters.seeds):
        for window in range(_WINDOWS):
            runs: dict[str, Task] = {"submitted": LoadTrial(run, history, seed, window)}
            for system in (SLEARN, SIGMA, ORACLE):
                runs[system] = TimelineTrial(run, history, seed, system, window)
            cases += points_at(f"{name} {seed}", (window + 0.5) / _WINDOWS, seed, runs)
    return _study("slearn-over-time", parameters, cases)


_SAMPLED_PERCENT: Final = 3
_POLICIES: Final = {
    "history": "predicted_queues,history_point(utility=mean,features=[executable])",
    "sampling": f"slearn(pilot_percent={_SAMPLED_PERCENT})",
    "both": f"slearn(pilot_percent={_SAMPLED_PERCENT},source=proved,statistic=log_posterior),"
    "history(features=[executable])",
}


@dataclass(frozen=True, slots=True)
class RegimeTrial:
    """Jobs of one width with one variation over time and over space, under one of the three."""

    system: str
    """``history``, ``sampling`` or ``both``."""
    width: int
    job_variation: float
    task_variation: float
    jobs: int
    """As for the generator ``task_regimes``."""
    seed: int

    def measure(self) -> Mapping[str, float]:
        """Completion times, errors, and the closed form of section 4.1."""
        found = self._replayed(self.system)
        size = np.add.reduceat(found.stages.runtime_seconds, first_tasks(found)[:-1])
        mean = float(completion(found).mean())
        pilots = max(_SAMPLED_PERCENT * self.width // 100, 1)
        # A joined estimate is on the pilots' side of the prior's mean.
        misordered = misordered_by_sampling(self.job_variation, self.task_variation, pilots)
        figures = {
            "completion_seconds": mean,
            "error_median": estimates(found.estimate, size, size == size)["error_median"],
            "misordered": MISORDERED_BY_HISTORY if self.system == "history" else misordered,
        }
        if self.system == "both":
            others = (completion(self._replayed(each)) for each in ("history", "sampling"))
            figures["of_better"] = mean / min(float(each.mean()) for each in others)
        return figures

    def _replayed(self, system: str) -> TasksReplayed:
        settings = (
            f"jobs={self.jobs},width={self.width},job_variation={self.job_variation:g},"
            f"task_variation={self.task_variation:g}"
        )
        _, run, history = made_by("task_regimes", "", settings)
        return replayed(run, history, self.seed, _POLICIES[system])


@dataclass(frozen=True, slots=True)
class RegimeParameters(StudyParameters, quick="seeds=5", minutes=(4, 20)):
    """Parameters of ``slearn-regimes``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("jobs",)

    seeds: int = 20

    jobs: int = 400
    """Of each run."""
    widths: tuple[int, ...] = (10, 50, 150)
    """Tasks of every job."""
    variations: tuple[float, ...] = (0.1, 0.3, 0.7, 1.5)
    """Coefficients of variation over time and over space."""


@register("study", "slearn-regimes", parameters=RegimeParameters)
def regimes(parameters: RegimeParameters) -> Study:
    """Find where history, sampling and both have the least completion time (section 4.1)."""
    widths, variations = parameters.widths, parameters.variations
    groups = {
        (width, space): f"{width} tasks, task-wise variation {space:g}"
        for width in widths
        for space in variations
    }
    jobs = parameters.jobs
    cases = [
        GridPoint(group, time, system, seed, RegimeTrial(system, width, time, space, jobs, seed))
        for (width, space), group in groups.items()
        for seed in range(parameters.seeds)
        for time in variations
        for system in _POLICIES
    ]
    rows = {"place": [{"group": group} for group in groups.values()]}
    study = declared("slearn-regimes", MEASURES, cases, rows)
    return replace(study, maps=tuple(_maps(study, groups, widths)))


def _maps(
    study: Study, groups: Mapping[tuple[int, float], str], widths: Iterable[int]
) -> Iterator[BestMap]:
    for name in ("completion_seconds", "error_median"):
        for width in widths:
            title = f"Least {study.measure(name).label}, {width} tasks a job"
            rows = {group: f"{space:g}" for (each, space), group in groups.items() if each == width}
            yield BestMap(title, name, "task-wise variation", rows)


@dataclass(frozen=True, slots=True)
class RealTasksParameters(StudyParameters, quick="seeds=6", minutes=(1, 3)):
    """Parameters of ``slearn-real-tasks``."""

    POSITIVE: ClassVar[tuple[str, ...]] = ("jobs", "dags", "load")

    seeds: int = 20

    jobs: int = 1250
    dags: int = 900
    """Jobs of a run, and chains of two to five of them of a kind."""
    load: float = 1.05
    """Mean load of the run; by default that of 2STrace."""
    log: str = ""
    """The log, whose jobs have tasks: each seed draws jobs of its later half, and learns from the
    earlier. ``--log PATH`` gives it."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require_log(self.log)


@register("study", "slearn-real-tasks", parameters=RealTasksParameters)
def real_tasks(parameters: RealTasksParameters) -> Study:
    """SLearn against history on the tasks of a real log, by where the first threshold is."""
    scaled = scaled_threshold(Path(parameters.log))
    source = f'source="{parameters.log}",load={parameters.load:g}'
    cases: list[GridPoint] = []
    for name, seconds in (("published", SMALL_SECONDS), ("scaled", scaled)):
        policies = _with_threshold(seconds)
        jobs = made_by("slearn", name, f"{source},jobs={parameters.jobs}")
        chains = made_by("slearn_dag", f"{name}-chains", f"{source},dags={parameters.dags}")
        for place, ours, other in ((jobs, SLEARN, _HYBRID), (chains, _HYBRID, SLEARN)):
            trial = partial(_policy_trial, policies, policies[ours])
            systems = [each for each in policies if each != other]
            cases += _cases([place], parameters.seeds, systems, trial)
    return declared("slearn-real-tasks", MEASURES, cases, threshold_seconds=scaled)


def _with_threshold(seconds: float) -> Mapping[str, str]:
    """Policies by the name of the system, all with the same first threshold."""
    first = f"first_threshold_seconds={seconds:g}"
    return {
        SLEARN: f"slearn({first})",
        _HYBRID: f"slearn({first},later_stages=history),history_point",
        SIGMA: f"predicted_queues({first}),history_point",
        POINT: f"predicted_queues({first}),history_point(utility=median)",
        LAS: f"las({first})",
        FIFO: FIFO,
        ORACLE: f"predicted_queues({first}),clairvoyant",
        JOINT: f"slearn({first},source=proved,statistic=log_posterior),history",
    }


def _policy_trial(
    policies: Mapping[str, str], ours: str, run: str, history: str, seed: int, system: str
) -> TaskTrial:
    """Trial of a system's policy, with the speed-up of ours over it."""
    return TaskTrial(run, history, seed, policies[system], ours, policies[system])
