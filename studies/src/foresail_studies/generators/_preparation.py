"""SLearn's preparation of traces (its reference, section 7): halves, rule for wide jobs, load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError, require_at_least, require_choice, require_positive
from foresail.traces.folder import load_workload
from foresail.traces.generating import achieved
from foresail.traces.workload import Workload
from foresail_studies.generators._population import jobs_of_log
from foresail_studies.generators._task_jobs import JobsWithTasks, window_loads
from foresail_studies.generators._task_population import (
    CALIBRATIONS,
    SMALL_SECONDS,
    THIN_BELOW,
    calibrated,
)

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
    """What becomes of a source's jobs with more tasks than ``most_tasks``: ``drop`` (as for
    Google's traces), or ``compress`` all jobs by ``compression`` (as for 2Sigma's)."""
    most_tasks: int = 150
    compression: float = 441.0 / 150.0
    """See there."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "slots", "most_tasks", "compression")
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
        jobs = _without_wide(jobs, parameters, random)
    count = jobs.width.size
    if count < 2:
        raise InputError("fewer than two jobs", source=parameters.source, expected="a longer log")
    rows = np.arange(count)
    earlier, later = jobs.taken(rows[: count // 2]), jobs.taken(rows[count // 2 :])
    return Halves(earlier, later, parameters.load or load)


def jobs_with_tasks(log: Workload) -> JobsWithTasks:
    """The jobs of a log with a known positive runtime, and their tasks.

    A job without rows of its own in the tasks table has equal tasks.
    """
    usable = jobs_of_log(log)
    jobs = log.jobs.filter(
        pl.col("runtime_seconds").is_finite(),
        pl.col("runtime_seconds") > 0,
        (pl.col("tasks") * pl.col("cpus_per_task")) > 0,
    )
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
        usable.features,
    )


def _without_wide(
    jobs: JobsWithTasks, parameters: PreparationParameters, random: np.random.Generator
) -> JobsWithTasks:
    if parameters.wide == "drop":
        return jobs.taken(np.flatnonzero(jobs.width <= parameters.most_tasks))
    return compressed(jobs, parameters.compression, parameters.most_tasks, random)


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
