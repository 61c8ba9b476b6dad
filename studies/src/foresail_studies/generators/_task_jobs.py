"""Jobs of whom every task's runtime is known, and SLearn's measure of their load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.arrays import Floats, Integers
from foresail.traces import schema
from foresail.traces.generating import gangs
from foresail.traces.workload import Workload, WorkloadMeta

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


def slot_nodes(slots: int, speeds: Sequence[float] = ()) -> pl.DataFrame:
    """The nodes table: a node of one cpu for each slot; as many of each speed, if there are any."""
    known = {"node": "node", "partition": "all", "count": slots, "cpus": 1.0}
    if not speeds:
        return schema.laid_out(pl.DataFrame([known]), schema.NODES)
    each, more = divmod(slots, len(speeds))
    rows = [
        {**known, "node": f"node-{at}", "count": each + (at <= more)}
        for at in range(1, len(speeds) + 1)
    ]
    table = schema.laid_out(pl.DataFrame(rows), schema.NODES)
    return table.with_columns(pl.Series(schema.SPEED, speeds, dtype=pl.Float64))
