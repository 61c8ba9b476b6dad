"""SLearn's traces: jobs of tasks of a log or a population, cut in halves, at a load (section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import InputError, require_at_least, require_choice, require_positive
from foresail.traces import schema
from foresail.traces.folder import load_workload
from foresail.traces.generating import gangs
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators._demands import achieved, draw_arrivals

WINDOW_SECONDS: Final = 1000.0
STEP_SECONDS: Final = 100.0


@dataclass(frozen=True, slots=True)
class JobsWithTasks:
    """Jobs in order of submission."""

    submit_seconds: Floats
    width: Integers
    """Width is the number of tasks, at least one; shape (jobs,)."""
    task_seconds: Floats
    """Runtimes of all tasks, job by job; shape (sum of widths,)."""
    features: pl.DataFrame
    """A row a job: what predictors may see."""

    @property
    def begins(self) -> Integers:
        """Return where each job's tasks begin; shape (jobs,)."""
        begins: Integers = np.cumsum(self.width) - self.width
        return begins

    @property
    def size(self) -> Floats:
        """Seconds of all tasks of each job together; shape (jobs,)."""
        if not self.width.size:
            return np.zeros(0)
        total: Floats = np.add.reduceat(self.task_seconds, self.begins)
        return total

    def taken(self, rows: Integers) -> JobsWithTasks:
        """Some of the jobs, in the order of ``rows``."""
        return JobsWithTasks(
            self.submit_seconds[rows],
            self.width[rows],
            self.task_seconds[self.tasks_of(rows)],
            self.features[rows] if self.features.width else self.features,
        )

    def tasks_of(self, rows: Integers) -> Integers:
        """Return the places of some jobs' tasks in ``task_seconds``; shape (sum of widths,)."""
        width = self.width[rows]
        within = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        at: Integers = np.repeat(self.begins[rows], width) + within
        return at


def window_loads(submit: Floats, size: Floats, slots: float) -> Floats:
    """Loads of all windows of 1000 s, one every 100 s, that a job can arrive in; shape (windows,).

    The load of a window is the size of the jobs that arrive in it over what the slots can do in it
    (SLearn section 7). ``submit`` is in order, in seconds; ``size`` is in task-seconds.
    """
    first = submit[0] - WINDOW_SECONDS + STEP_SECONDS
    count = int(np.floor((submit[-1] - first) / STEP_SECONDS)) + 1
    starts = first + STEP_SECONDS * np.arange(count)
    sums = np.concatenate(([0.0], np.cumsum(size)))
    inside = sums[np.searchsorted(submit, starts + WINDOW_SECONDS)]
    before = sums[np.searchsorted(submit, starts)]
    loads: Floats = (inside - before) / (slots * WINDOW_SECONDS)
    return loads


def rescaled_times(submit: Floats, size: Floats, slots: float, load: float) -> Floats:
    """Times from second zero, stretched alike so that the mean of the windows' loads is ``load``.

    Each job is in ten windows, so that the mean depends on the number of windows alone; it is met
    as nearly as a whole number of windows can.
    """
    per_window = WINDOW_SECONDS / STEP_SECONDS
    windows = round(per_window * float(size.sum()) / (slots * WINDOW_SECONDS * load))
    span = max((windows - per_window + 0.5) * STEP_SECONDS, STEP_SECONDS / 2.0)
    times: Floats = submit - submit[0]
    stretch = span / float(times[-1]) if times[-1] > 0.0 else 1.0
    return times * stretch


def workload_of(
    jobs: JobsWithTasks, slots: int, header: Mapping[str, str], letter: str = ""
) -> Workload:
    """One job a row and one task a row; a job's runtime is that of its longest task."""
    longest = np.maximum.reduceat(jobs.task_seconds, jobs.begins)
    features = jobs.features.to_dict()
    table = gangs(jobs.submit_seconds, longest, jobs.width, letter, **features)
    ids = np.char.mod(letter + "%d", np.arange(1, jobs.width.size + 1))
    tasks = tasks_table(np.repeat(ids, jobs.width), jobs.task_seconds, jobs.width, "main", None)
    meta = WorkloadMeta("", "", processors=slots, header=header)
    return Workload(table, meta, slot_nodes(slots), tasks)


def tasks_table(
    ids: NDArray[np.str_],
    task_seconds: Floats,
    width: Integers,
    stage: str | list[str],
    after: str | list[str | None] | None,
) -> pl.DataFrame:
    """A row a task; ``ids``, and ``stage`` and ``after`` where they are lists, are per task.

    ``width`` is that of the jobs or stages in order, from whose beginning tasks are numbered.
    """
    number = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    columns = {"job_id": ids, "stage": stage, "after_stages": after, "task": number}
    table = pl.DataFrame({**columns, "runtime_seconds": task_seconds, "cpus": 1.0})
    return schema.laid_out(table, schema.TASKS)


def slot_nodes(slots: int) -> pl.DataFrame:
    """The nodes table: a node of one cpu for each slot."""
    row = {"node": "node", "partition": "all", "count": slots, "cpus": 1.0}
    return schema.laid_out(pl.DataFrame([row]), schema.NODES)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Published characteristics of one of SLearn's traces (its tables 4 and 5)."""

    time: tuple[float, float]
    space: tuple[float, float]
    """Median, and standard deviation of the natural logarithm, of the coefficient of variation."""
    load: float
    """Mean load over windows of 1000 s."""
    scatter: float
    """How far the sizes of names lie about their mode, the modes (of small and of large jobs) being
    2 apart; chosen so that the median of the windows' loads is near the published one."""
    few: float = (0.5850 - 0.1884) / 0.8116
    """Share of jobs of three or four tasks among those with three or more (section 5.3.5)."""
    tasks: float = 15.0
    """Median number of tasks of the others, before it is held between 5 and 150 (chosen)."""


CALIBRATIONS: Final = MappingProxyType(
    {
        "2strace": Calibration((1.00, 0.883), (0.18, 0.872), 1.05, 0.1),
        "gtrace11": Calibration((0.20, 1.010), (0.04, 2.087), 1.01, 0.8),
        "gtrace19": Calibration((1.35, 0.166), (0.70, 0.501), 1.04, 1.2),
    }
)

SMALL_SECONDS: Final = 1000.0
THIN_BELOW: Final = 3
WIDEST: Final = 150
_COMPRESSION: Final = 441.0 / 150.0
_THIN: Final = 0.1884
_THIN_SMALL: Final = 4.55 / 18.84
WIDE_SMALL: Final = 28.73 / 81.16
_THIN_WORK: Final = 0.0542
_WIDE_SMALL_WORK: Final = 0.06 / 94.58
_ONE_TASK: Final = 0.6
"""Share among the thin jobs (chosen)."""
_WIDTH_LOG_DEVIATION: Final = 1.0
_WIDTH_SCATTER: Final = 0.3

_PILOT_SHARE: Final = 0.03
_JOBS_PER_NAME: Final = 60
_LEAST_JOBS_PER_NAME: Final = 20
_NAMES_PER_USER: Final = 3
_NAMES_PER_APPLICATION: Final = 2
_ARRIVAL_VARIABILITY: Final = 2.0
_MOST_OF_POSSIBLE: Final = 0.9
_STEPS: Final = 60


def calibrated(jobs: int, calibration: Calibration, random: np.random.Generator) -> JobsWithTasks:
    """So many jobs over a length of time of one second each on average (to be rescaled).

    Published are the shares of jobs and of work by width and by size: width and size are taken as
    independent.
    """
    name = _names(jobs, random)
    names = int(name.max()) + 1
    members = np.bincount(name)
    thin_name = _share_of_names(members, _THIN, random)
    thin = thin_name[name]
    width = _widths(name, thin, calibration, random)
    centre = _centres(members, thin_name, calibration.scatter, random)
    variation = calibration.time[0] * np.exp(calibration.time[1] * _stratified(members, random))
    order = np.argsort(name, kind="stable")
    relative = np.empty(jobs)
    relative[order] = spread(members, variation, random)
    mean = _means(width, thin, centre[name], relative)
    over_space = calibration.space[0] * np.exp(
        calibration.space[1] * _stratified(np.ones(jobs, dtype=np.int64), random)
    )
    tasks = spread(width, over_space * np.sqrt(_PILOT_SHARE * width), random)
    features = pl.DataFrame(
        {
            "user": np.char.mod("user%d", np.arange(names) // _NAMES_PER_USER + 1)[name],
            "executable": np.char.mod("name%d", np.arange(names) + 1)[name],
            "application": np.char.mod(
                "application%d", np.arange(names) // _NAMES_PER_APPLICATION + 1
            )[name],
        }
    )
    submit = draw_arrivals(jobs, float(jobs), _ARRIVAL_VARIABILITY, random)
    return JobsWithTasks(submit, width, tasks * np.repeat(mean, width), features)


def _names(jobs: int, random: np.random.Generator) -> Integers:
    """The name of each job, from 0; each has at least twenty jobs where there are as many."""
    names = max(jobs // _JOBS_PER_NAME, 1)
    least = min(_LEAST_JOBS_PER_NAME, jobs // names)
    shares = random.exponential(1.0, names)
    rest = random.choice(names, jobs - least * names, p=shares / shares.sum())
    name: Integers = random.permutation(np.concatenate([np.repeat(np.arange(names), least), rest]))
    return name


def _share_of_names(members: Integers, share: float, random: np.random.Generator) -> Booleans:
    """Return whether each name is one of those that together have this share of the jobs."""
    order = random.permutation(members.size)
    sums = np.concatenate(([0], np.cumsum(members[order])))
    chosen = np.zeros(members.size, dtype=np.bool_)
    chosen[order[: int(np.argmin(np.abs(sums - share * members.sum())))]] = True
    return chosen


def _stratified(weight: Integers, random: np.random.Generator) -> Floats:
    """Standard normal values whose distribution, so weighted, is as exact as can be."""
    order = random.permutation(weight.size)
    sums = np.cumsum(weight[order])
    levels = (sums - weight[order] / 2.0) / sums[-1]
    values = np.empty(weight.size)
    values[order] = [NormalDist().inv_cdf(level) for level in levels.tolist()]
    return values


def _centres(
    members: Integers, thin: Booleans, scatter: float, random: np.random.Generator
) -> Floats:
    """Centre of each name's logarithm of the size: one mode for small jobs, one for large ones."""
    centres = np.empty(members.size)
    for part, small in ((thin, _THIN_SMALL), (~thin, WIDE_SMALL)):
        if part.any():
            normal = _stratified(members[part], random)
            large = normal > NormalDist().inv_cdf(small)
            centres[part] = np.where(large, 1.0, -1.0) + scatter * normal
    return centres


def _widths(
    name: Integers, thin: Booleans, calibration: Calibration, random: np.random.Generator
) -> Integers:
    names = int(name.max()) + 1
    base = calibration.tasks * np.exp(_WIDTH_LOG_DEVIATION * random.standard_normal(names))
    scatter = np.exp(_WIDTH_SCATTER * random.standard_normal(name.size))
    many = np.clip(np.rint(base[name] * scatter), THIN_BELOW + 2, WIDEST)
    few = random.integers(THIN_BELOW, THIN_BELOW + 2, name.size)
    wide = np.where(random.random(name.size) < calibration.few, few, many)
    one_or_two = np.where(random.random(name.size) < _ONE_TASK, 1, 2)
    return np.where(thin, one_or_two, wide).astype(np.int64)


def spread(members: Integers, variation: Floats, random: np.random.Generator) -> Floats:
    """Positive values of mean 1 in each group of so many members, group by group.

    The coefficient of variation (population standard deviation over mean) of each group is exactly
    the one wished; no group can have more than the root of its size less one, of which 90 % at most
    are given. Shapes are (groups,), and of the result (sum of members,).
    """
    begins = np.cumsum(members) - members
    wished = np.minimum(variation, _MOST_OF_POSSIBLE * np.sqrt(members - 1.0))
    normal = random.standard_normal(int(members.sum()))
    normal -= np.repeat(np.maximum.reduceat(normal, begins), members)

    def values(strength: Floats) -> Floats:
        raised = np.exp(np.repeat(strength, members) * normal)
        return raised / np.repeat(np.add.reduceat(raised, begins) / members, members)

    def reached(strength: Floats) -> Floats:
        squares = np.add.reduceat((values(strength) - 1.0) ** 2, begins)
        root: Floats = np.sqrt(squares / members)
        return root

    low, high = np.zeros(members.size), np.full(members.size, 1000.0)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        below = reached(middle) < wished
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return values(low)


def _means(width: Integers, thin: Booleans, centre: Floats, relative: Floats) -> Floats:
    """Mean task runtime of each job so that counts and work are shared out as in table 9.

    Wide and thin jobs each have their scale and the spread of their names' centres: the scale puts
    as many jobs below 1000 s as are to be small, the spread gives the small wide jobs and the thin
    jobs their share of the work.
    """

    def sizes(part: Booleans, small: float, spread_of_names: float) -> Floats:
        size = width[part] * relative[part] * np.exp(spread_of_names * centre[part])
        scaled: Floats = size * (SMALL_SECONDS / np.quantile(size, small))
        return scaled

    size = np.empty(width.size)
    wide = ~thin
    if wide.any():

        def small_work(spread_of_names: float) -> float:
            drawn = sizes(wide, WIDE_SMALL, spread_of_names)
            return float(drawn[drawn < SMALL_SECONDS].sum() / drawn.sum())

        size[wide] = sizes(wide, WIDE_SMALL, _falling(small_work, _WIDE_SMALL_WORK))
    if thin.any():
        total = float(size[wide].sum()) * _THIN_WORK / (1.0 - _THIN_WORK)

        def less_work(spread_of_names: float) -> float:
            return -float(sizes(thin, _THIN_SMALL, spread_of_names).sum())

        size[thin] = sizes(thin, _THIN_SMALL, _falling(less_work, -total))
    return size / width


def _falling(function: Callable[[float], float], wished: float) -> float:
    """Find where a falling function has this value, between 0 and 6."""
    low, high = 0.0, 6.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) > wished else (low, middle)
    return high


_KNOWN: Final = ("user", "group", "queue", "executable")
_IDENTITY: Final = ("user", "executable", "application", "application_name")
"""Features whose values a job of the history must share with a job of the run."""


@dataclass(frozen=True, slots=True)
class PreparationParameters:
    """Parameters that the generators of SLearn's traces share."""

    source: str | None = None
    """A log: a file or folder that a reader knows, best one with tasks (else all tasks of a job run
    as long as the job). None takes a population with published characteristics."""
    calibration: Literal["2strace", "gtrace11", "gtrace19"] = "2strace"
    """Whose: ``2strace``, ``gtrace11`` or ``gtrace19``."""
    part: Literal["run", "history"] = "run"
    """``run``: jobs of the later half. ``history``: jobs of the earlier half that have a user or a
    name in common with them, to train a predictor with; the same seed gives the same halves."""
    slots: int = 150
    """Task slots of the cluster."""
    load: float | None = None
    """Mean load over windows of 1000 s, one every 100 s. None takes that of the calibration, or of
    the source on its own machine."""
    median_tasks: float | None = None
    """Median number of tasks of a population's jobs with five or more, then none of three or four.
    None takes what SLearn's section 5.3.5 says: half of the wide jobs have three or four."""
    wide: Literal["drop", "compress"] = "drop"
    """What becomes of a source's jobs of more than 150 tasks: ``drop`` (as for Google's traces), or
    ``compress`` all jobs by 441/150 (as for 2Sigma's)."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "slots")
        require_positive(self, "load", "median_tasks")
        require_choice(
            self, calibration=CALIBRATIONS, part=("run", "history"), wide=("drop", "compress")
        )


@dataclass(frozen=True, slots=True)
class Halves:
    """All jobs, cut in halves by order of submission, and the mean load to rescale to."""

    earlier: JobsWithTasks
    later: JobsWithTasks
    load: float


def halves(
    parameters: PreparationParameters, population: int, random: np.random.Generator
) -> Halves:
    """The source, or a population of so many jobs, ready to draw from.

    Raises ``InputError`` if the source has too few jobs, or its load is unknown and none is given.
    """
    if parameters.source is None:
        calibration = CALIBRATIONS[parameters.calibration]
        if parameters.median_tasks is not None:
            calibration = replace(calibration, few=0.0, tasks=parameters.median_tasks)
        jobs, load = calibrated(population, calibration, random), calibration.load
    else:
        log = load_workload(Path(parameters.source))
        jobs = jobs_with_tasks(log)
        own = log.meta.processors
        if parameters.load is None and own is None:
            raise InputError(
                "the source's own load is unknown, since its number of processors is",
                source=parameters.source,
                field="load",
                expected="a load",
            )
        submit, size = jobs.submit_seconds, jobs.size
        load = float(window_loads(submit, size, own).mean()) if own else 0.0
        if parameters.wide == "drop":
            jobs = jobs.taken(np.flatnonzero(jobs.width <= WIDEST))
        else:
            jobs = compressed(jobs, _COMPRESSION, WIDEST, random)
    count = jobs.width.size
    if count < 2:
        raise InputError("fewer than two jobs", source=parameters.source, expected="a longer log")
    rows = np.arange(count)
    earlier, later = jobs.taken(rows[: count // 2]), jobs.taken(rows[count // 2 :])
    return Halves(earlier, later, parameters.load or load)


def jobs_with_tasks(log: Workload) -> JobsWithTasks:
    """The jobs of a log with a known positive runtime, and their tasks.

    A job without rows of its own in the tasks table has equal tasks.

    Raises ``InputError`` if there are none.
    """
    jobs = log.jobs.filter(
        pl.col("runtime_seconds").is_finite(),
        pl.col("runtime_seconds") > 0,
        (pl.col("tasks") * pl.col("cpus_per_task")) > 0,
    )
    if not jobs.height:
        raise InputError(
            "no job has a runtime and a width",
            source=log.meta.source,
            expected="a log with runtimes",
        )
    names = [name for name in _KNOWN if jobs[name].null_count() < jobs.height]
    names += [name for name in log.feature_names if name not in schema.JOBS]
    equal = jobs.select("job_id", pl.col("runtime_seconds").repeat_by("tasks").alias("each"))
    if log.tasks is not None:
        known = log.tasks.group_by("job_id").agg(pl.col("runtime_seconds").alias("own"))
        joined = equal.join(known, on="job_id", how="left", maintain_order="left")
        equal = joined.select("job_id", pl.coalesce("own", "each").alias("each"))
    each = equal["each"]
    return JobsWithTasks(
        jobs["submit_seconds"].to_numpy(),
        each.list.len().cast(pl.Int64).to_numpy(),
        each.explode().to_numpy(),
        jobs.select(names),
    )


def compressed(
    jobs: JobsWithTasks, ratio: float, most_tasks: int, random: np.random.Generator
) -> JobsWithTasks:
    """Each job with its width over ``ratio``, rounded up; its tasks drawn from its own.

    Tasks are drawn without replacement, so that their mean stays (SLearn 11.18).
    """
    width = np.minimum(np.maximum(np.ceil(jobs.width / ratio), 1), most_tasks).astype(np.int64)
    job = np.repeat(np.arange(jobs.width.size), jobs.width)
    shuffled = np.lexsort((random.random(job.size), job))
    rank = np.arange(job.size) - jobs.begins[job]
    kept = np.sort(shuffled[rank < width[job]])
    return JobsWithTasks(jobs.submit_seconds, width, jobs.task_seconds[kept], jobs.features)


def sharing(history: JobsWithTasks, run: JobsWithTasks) -> JobsWithTasks:
    """Jobs of the history that share a user or a name with a job of the run."""
    names = [name for name in _IDENTITY if name in run.features.columns]
    if not names:
        return history
    shared = pl.any_horizontal(
        pl.col(name).is_in(run.features[name].drop_nulls().unique().implode()) for name in names
    )
    return history.taken(
        history.features.select(shared.fill_null(value=False))
        .to_series()
        .arg_true()
        .to_numpy()
        .astype(np.int64)
    )


def figures(submit: Floats, size: Floats, width: Integers, slots: int) -> dict[str, str]:
    """Load over windows, and shares of jobs and work by width and size as in SLearn's table 9."""
    loads = window_loads(submit, size, slots)
    thin, small = width < THIN_BELOW, size < SMALL_SECONDS
    bins = {
        "thin_small": thin & small,
        "wide_small": ~thin & small,
        "thin_large": thin & ~small,
        "wide_large": ~thin & ~small,
    }
    shares = {f"{name}_jobs_percent": 100.0 * part.mean() for name, part in bins.items()}
    work = {
        f"{name}_work_percent": 100.0 * size[part].sum() / size.sum() for name, part in bins.items()
    }
    return achieved(
        load=float(loads.mean()),
        load_median=float(np.quantile(loads, 0.5)),
        load_p90=float(np.quantile(loads, 0.9)),
        **{name: float(value) for name, value in {**shares, **work}.items()},
    )
