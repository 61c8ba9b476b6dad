"""The recipe of the E2E workloads (3Sigma reference, section 6.3), and the jobs it begins with.

No log with runtimes, widths and features of Google's jobs is shipped, so the population is made
from published characteristics (3Sigma reference, sections 10 and 13; the runtimes of 3Sigma's own
feature sample): runtimes have a median of 234 s and 80 % end within 12 minutes; 77 % of the jobs
have one task, the others a log-normal number; most of the spread of runtimes is between logical job
names, and most names are steady while some vary by more than their mean, so that the median of a
name's earlier jobs is within a factor of two for some 80 % of the jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import (
    require,
    require_at_least,
    require_choice,
    require_each_at_least,
    require_positive,
    require_share,
)
from foresail.traces.generating import gangs
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators._demands import (
    RACKS,
    achieved,
    deadline_seconds,
    demands,
    draw_arrivals,
    draw_slacks,
    of_classes,
    preferred_racks,
    rack_nodes,
    split_by_load,
)

JOBS: Final = 20_000
MEDIAN_SECONDS: Final = 234.5
P80_SECONDS: Final = 720.0
ONE_TASK_SHARE: Final = 0.77
MACHINE_HOURS: Final = 1.19
"""Mean work of a job in the E2E workload: 1.4 x 256 nodes x 5 h over 1500 jobs."""

_USERS: Final = 200
_NAMES: Final = 1_500
_ACTIVITY_EXPONENT: Final = 0.7
_SCATTERS: Final = np.array([0.15, 0.5, 1.3])
_SCATTER_SHARES: Final = np.array([0.6, 0.25, 0.15])
_BETWEEN_NAMES: Final = 1.2
_TASKS_MEDIAN: Final = 12.0
_TASKS_LOG_DEVIATION: Final = 1.3
_TASKS_SCATTER: Final = 0.3
_PRIORITIES: Final = np.array(["0", "1", "2", "4", "9"])
_PRIORITY_SHARES: Final = np.array([0.35, 0.1, 0.15, 0.35, 0.05])


@dataclass(frozen=True, slots=True)
class SourceJobs:
    """Jobs to learn from."""

    runtime_seconds: Floats
    width: Integers
    """Above 0; shape (jobs,). Width is in nodes (tasks)."""
    features: pl.DataFrame
    """A row a job: what predictors may see."""

    def no_wider_than(self, nodes: int) -> SourceJobs:
        """Without the jobs that need more nodes."""
        keep = np.flatnonzero(self.width <= nodes)
        return SourceJobs(self.runtime_seconds[keep], self.width[keep], self.features[keep])


def google_like(random: np.random.Generator) -> SourceJobs:
    """The built-in population."""
    user_of_name = _zipf(_USERS, _NAMES, random)
    priority = random.choice(_PRIORITIES, _NAMES, p=_PRIORITY_SHARES)
    scatter = random.choice(_SCATTERS, _NAMES, p=_SCATTER_SHARES)
    centre = random.normal(0.0, _BETWEEN_NAMES, _NAMES)
    tasks = np.log(_TASKS_MEDIAN) + _TASKS_LOG_DEVIATION * random.standard_normal(_NAMES)
    several = random.random(_NAMES) >= ONE_TASK_SHARE
    name = _zipf(_NAMES, JOBS, random)
    logs = centre[name] + scatter[name] * random.standard_normal(JOBS)
    middle, upper = np.quantile(logs, [0.5, 0.8])
    stretch = math.log(P80_SECONDS / MEDIAN_SECONDS) / (upper - middle)
    runtime = MEDIAN_SECONDS * np.exp((logs - middle) * stretch)
    drawn = np.exp(tasks[name] + _TASKS_SCATTER * random.standard_normal(JOBS))
    width = np.where(several[name], np.maximum(np.rint(drawn), 2.0), 1.0).astype(np.int64)
    user = np.char.mod("user%d", user_of_name + 1)
    features = pl.DataFrame(
        {
            "user": user[name],
            "executable": np.char.mod("name%d", np.arange(_NAMES) + 1)[name],
            "priority": priority[name],
        }
    )
    return SourceJobs(runtime, width, features)


def with_mean_tasks(jobs: SourceJobs, tasks: float) -> SourceJobs:
    """The same jobs, those of several tasks made wider or narrower so that the mean is this."""
    several = jobs.width > 1

    def scaled(factor: float) -> Integers:
        widths = np.maximum(np.rint(jobs.width * factor), 2.0).astype(np.int64)
        return np.where(several, widths, 1)

    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if scaled(middle).mean() < tasks else (low, middle)
    return SourceJobs(jobs.runtime_seconds, scaled(high), jobs.features)


def _zipf(kinds: int, count: int, random: np.random.Generator) -> Integers:
    """Numbers from 0, the low ones more often."""
    weights = np.arange(1, kinds + 1) ** -_ACTIVITY_EXPONENT
    drawn: Integers = random.choice(kinds, count, p=weights / weights.sum())
    return drawn


Fit = Literal["log_normal", "empirical"]

_MOST_ROUNDS: Final = 200


def k_means(values: Floats, clusters: int, random: np.random.Generator) -> Integers:
    """Number of each value's cluster, in order of the cluster centres; shape (values,).

    Lloyd's algorithm in one dimension from centres chosen as k-means++ does (D. Arthur, S.
    Vassilvitskii, SODA 2007). Fewer clusters come out where there are fewer distinct values.
    """
    centres = np.sort(_first_centres(values, clusters, random))
    labels = np.zeros(values.size, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        labels = np.searchsorted((centres[1:] + centres[:-1]) / 2.0, values).astype(np.int64)
        counts = np.bincount(labels, minlength=centres.size)
        sums = np.bincount(labels, weights=values, minlength=centres.size)
        moved = sums[counts > 0] / counts[counts > 0]
        if moved.size == centres.size and np.array_equal(moved, centres):
            break
        centres = moved
    used: Integers = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return used


def _first_centres(values: Floats, clusters: int, random: np.random.Generator) -> Floats:
    centres = [float(random.choice(values))]
    distance = (values - centres[0]) ** 2
    while len(centres) < clusters and distance.max() > 0.0:
        centres.append(float(random.choice(values, p=distance / distance.sum())))
        distance = np.minimum(distance, (values - centres[-1]) ** 2)
    return np.array(centres)


@dataclass(frozen=True, slots=True)
class DrawnJobs:
    """Jobs drawn from classes; every array has shape (jobs,)."""

    runtime_seconds: Floats
    width: Integers
    """Width is in nodes."""
    of_class: Integers
    """Number of the class: never shown to a predictor."""
    source: Integers
    """Row of the source jobs whose features it has."""


class JobClasses:
    """Classes of source jobs with the distributions fitted to each.

    With ``log_normal`` runtimes of a class are log-normal, and its jobs have one task with the
    share that they have in the source, else a log-normal number of them; with ``empirical`` both
    are drawn from the class's jobs, each on its own. Features are drawn from the class's jobs, all
    of one job together.
    """

    def __init__(
        self, jobs: SourceJobs, clusters: int, fit: Fit, widest: int, random: np.random.Generator
    ) -> None:
        logs = np.log(jobs.runtime_seconds)
        self.label = k_means(logs, clusters, random)
        self._fit = fit
        self._jobs = jobs
        self._widest = widest
        self._order = np.argsort(self.label, kind="stable")
        self._size = np.bincount(self.label)
        self._begin = np.cumsum(self._size) - self._size
        kinds = range(self._size.size)
        self._log_mean = np.array([logs[self.label == kind].mean() for kind in kinds])
        self._log_deviation = np.array([logs[self.label == kind].std() for kind in kinds])
        several = [np.log(jobs.width[(self.label == kind) & (jobs.width > 1)]) for kind in kinds]
        self._one_task = 1.0 - np.array([part.size for part in several]) / self._size
        self._tasks_mean = np.array([part.mean() if part.size else 0.0 for part in several])
        self._tasks_deviation = np.array([part.std() if part.size else 0.0 for part in several])

    @property
    def count(self) -> int:
        """Return how many classes there are."""
        return int(self._size.size)

    def draw(self, jobs: int, random: np.random.Generator) -> DrawnJobs:
        """Jobs, each of a class drawn by its share of the source."""
        kind = random.choice(self.count, jobs, p=self._size / self._size.sum())
        return DrawnJobs(
            runtime_seconds=self.draw_runtimes(kind, random),
            width=self._draw_widths(kind, random),
            of_class=kind,
            source=self._members(kind, random),
        )

    def draw_runtimes(self, kind: Integers, random: np.random.Generator) -> Floats:
        """A runtime of each class in ``kind``, in seconds; same shape."""
        if self._fit == "empirical":
            drawn: Floats = self._jobs.runtime_seconds[self._members(kind, random)]
            return drawn
        normal = random.standard_normal(kind.shape)
        return np.exp(self._log_mean[kind] + self._log_deviation[kind] * normal)

    def _draw_widths(self, kind: Integers, random: np.random.Generator) -> Integers:
        if self._fit == "empirical":
            drawn: Integers = self._jobs.width[self._members(kind, random)]
            return drawn
        normal = random.standard_normal(kind.shape)
        several = np.rint(np.exp(self._tasks_mean[kind] + self._tasks_deviation[kind] * normal))
        several = np.clip(several, min(2, self._widest), self._widest)
        one = random.random(kind.shape) < self._one_task[kind]
        return np.where(one, 1.0, several).astype(np.int64)

    def _members(self, kind: Integers, random: np.random.Generator) -> Integers:
        """A row of the source jobs of each class in ``kind``."""
        within = (random.random(kind.shape) * self._size[kind]).astype(np.int64)
        rows: Integers = self._order[self._begin[kind] + within]
        return rows


_TRIES: Final = 50
_NEAR: Final = 0.005
_CLASSES: Final = 8
"""Found by k-means on the logarithm of the runtime."""
_ARRIVAL_VARIABILITY: Final = 4.0
"""Squared coefficient of variation of the gaps between arrivals."""


@dataclass(frozen=True, slots=True)
class SyntheticParameters:
    """Parameters that all generators of the E2E recipe share."""

    part: Literal["run", "history"] = "run"
    """``run``: the jobs to be scheduled. ``history``: earlier jobs of the same classes, to train a
    predictor with; they come from the same seed and are other jobs."""
    hours: float = 5.0
    """Length of the run; the last job arrives at its end."""
    history_hours: float = 10.0
    """Length of the history."""
    nodes: int = 256
    racks: int = RACKS
    """The machine; racks are its partitions, and a node counts as one cpu."""
    load: float = 1.4
    """Offered load, which is reached exactly."""
    jobs: int | None = None
    """Number of jobs of the run, to which runtimes are scaled. None takes so many that a job does
    1.19 machine-hours of work on average, as in the study."""
    slo_load_share: float = 0.5
    """Share of the load that comes from jobs with a deadline, which is reached exactly."""
    slowdown_elsewhere: float = 1.5
    """How many times longer a job with a deadline runs than in the racks, three in four of them
    and drawn for it, where it runs best."""
    slack_percents: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0)
    """A deadline is submission plus runtime plus one of these percentages of it, each as likely."""

    def __post_init__(self) -> None:
        require_positive(self, "hours", "history_hours", "load")
        require(1 <= self.racks <= self.nodes, self, "racks", f"1 to {self.nodes}, the nodes")
        require_at_least(self, 1, "jobs", "slowdown_elsewhere")
        require_each_at_least(self, 0, "slack_percents")
        require_share(self, "slo_load_share")
        require_choice(self, part=("run", "history"))

    @property
    def seconds(self) -> float:
        """Length of the part that is asked for."""
        return 3600.0 * (self.hours if self.part == "run" else self.history_hours)


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A workload of the recipe, with what only its maker knows."""

    workload: Workload

    classes: JobClasses
    drawn: DrawnJobs
    factor: Floats
    """Where the jobs came from and, for each, the factor its runtime was multiplied with so that
    the load is exact; shape (jobs,). Jobs are in the workload's order."""


def synthesise(
    parameters: SyntheticParameters,
    random: np.random.Generator,
    source: SourceJobs | None = None,
    fit: Fit = "log_normal",
) -> Synthetic:
    """A workload of the recipe, of jobs like Google's unless others are given.

    Each matter has a random stream of its own: workloads that differ in slacks alone have the same
    jobs, and the two parts come from the same classes.
    """
    making, run, history = random.spawn(3)
    source = source or google_like(making).no_wider_than(parameters.nodes)
    classes = JobClasses(source, _CLASSES, fit, parameters.nodes, making)
    work_hours = parameters.load * parameters.nodes * parameters.hours
    count = parameters.jobs or max(round(work_hours / MACHINE_HOURS), 1)
    sample = classes.draw(JOBS, making)
    mean = float(np.mean(sample.width * sample.runtime_seconds))
    scale = work_hours * 3600.0 / count / mean
    streams = (run if parameters.part == "run" else history).spawn(5)
    if parameters.part == "history":
        count = max(round(count * parameters.history_hours / parameters.hours), 1)
    wished = parameters.load * parameters.nodes * parameters.seconds
    drawn = _draw(classes, count, scale, wished, streams[0])
    work = drawn.width * drawn.runtime_seconds
    slo = split_by_load(work, parameters.slo_load_share, streams[1])
    factor = np.ones(work.size)
    for part, share in ((slo, parameters.slo_load_share), (~slo, 1 - parameters.slo_load_share)):
        if part.any():
            factor[part] = share * wished / work[part].sum()
    if not slo.any() or slo.all():
        factor[:] = wished / work.sum()
    drawn = replace(drawn, runtime_seconds=drawn.runtime_seconds * factor)
    submit = draw_arrivals(work.size, parameters.seconds, _ARRIVAL_VARIABILITY, streams[2])
    slack = draw_slacks(parameters.slack_percents, work.size, streams[3])
    workload = _workload(parameters, source, drawn, submit, slo, slack, streams[4])
    figures = of_classes(
        submit, drawn.runtime_seconds, drawn.width, slo, parameters.nodes, parameters.seconds
    )
    figures |= achieved(
        classes=classes.count, runtime_scale=scale, largest_runtime_factor=float(factor.max())
    )
    return Synthetic(workload.with_meta(header=figures), classes, drawn, scale * factor)


def _draw(
    classes: JobClasses, count: int, scale: float, wished: float, random: np.random.Generator
) -> DrawnJobs:
    """Jobs whose work is near the load: of some draws, the first within 0.5 %, or the nearest."""

    def once() -> DrawnJobs:
        drawn = classes.draw(count, random)
        return replace(drawn, runtime_seconds=drawn.runtime_seconds * scale)

    def distance(drawn: DrawnJobs) -> float:
        return abs(float(np.sum(drawn.width * drawn.runtime_seconds)) / wished - 1.0)

    nearest = once()
    for _ in range(_TRIES - 1):
        if distance(nearest) <= _NEAR:
            break
        nearest = min(nearest, once(), key=distance)
    return nearest


def _workload(
    parameters: SyntheticParameters,
    source: SourceJobs,
    drawn: DrawnJobs,
    submit: Floats,
    slo: Booleans,
    slack: Floats,
    random: np.random.Generator,
) -> Workload:
    racks = preferred_racks(drawn.width, parameters.nodes, random, parameters.racks)
    prefers = [rack if with_slo else None for rack, with_slo in zip(racks, slo, strict=True)]
    deadline = deadline_seconds(submit, drawn.runtime_seconds, slack)
    demanded = demands(deadline, slo, prefers, parameters.slowdown_elsewhere)
    letter = "h" if parameters.part == "history" else ""
    features = source.features[drawn.source].to_dict()
    table = gangs(submit, drawn.runtime_seconds, drawn.width, letter, **demanded, **features)
    nodes = rack_nodes(parameters.nodes, parameters.racks)
    return Workload(table, WorkloadMeta("", "", processors=parameters.nodes), nodes)
