"""Logs with the starts of their jobs: as recorded, or as simulated under a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, Placement, Start, TickAt
from foresail.model.protocols import Scheduler
from foresail.model.view import ClusterView
from foresail.record.records import Record
from foresail.simulator.engine import simulate_events
from foresail.traces.folder import load_workload
from foresail.traces.workload import Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RECORDED = "recorded"
"""In place of a policy: starts are those of the log."""

_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class PastSchedule:
    """Jobs in order of submission, each with when it started and ended (seconds).

    ``limits`` are the requested times, or what stands in for them; ``queues`` and ``users`` are
    numbers of names.
    """

    job_ids: list[str]
    submit: Floats
    start: Floats
    end: Floats
    cpus: Floats
    limits: Floats
    users: Integers
    queues: Integers
    processors: float
    steps: Floats
    """When anything happened."""


class StartsAsRecorded(Scheduler):
    """A scheduler that starts every job when the log says, however full the machine is."""

    def __init__(self, starts: dict[str, float]) -> None:
        self._starts = starts

    def decide(self, view: ClusterView) -> Decision:
        """Start what is due, and ask to be asked when the others are."""
        partition = view.cluster.partitions[0].name
        due = [each for each in view.pending if self._starts[each.job.job_id] <= view.now]
        ahead = [each for each in view.pending if self._starts[each.job.job_id] > view.now]
        return Decision(
            starts=tuple(
                Start(each.job.job_id, Placement.whole(partition, each.job.tasks)) for each in due
            ),
            ticks=tuple(TickAt(each.job.job_id, self._starts[each.job.job_id]) for each in ahead),
        )


def load_log(path: Path, jobs: int, processors: int | None = None) -> tuple[Workload, float]:
    """Load the first jobs of a log that fit on its machine, and the share that has a limit."""
    workload = load_workload(path, processors=processors)
    machine = workload.processors
    table = workload.jobs.with_columns(cpus=pl.col("tasks") * pl.col("cpus_per_task")).filter(
        pl.col("runtime_seconds") > 0.0, pl.col("cpus") <= machine
    )
    without = ("after_job_id", "think_seconds", "memory_bytes_per_task", "gpus_per_task")
    table = table.head(jobs).drop("cpus").with_columns(**dict.fromkeys(without))
    workload = Workload(table.cast(dict(workload.jobs.schema)), workload.meta)
    return workload, float((table["requested_seconds"].fill_null(0.0) > 0.0).mean())


def has_recorded_waits(workload: Workload) -> bool:
    """Return whether the log says when its jobs started."""
    return bool((workload.jobs["recorded_wait_seconds"].fill_null(-1.0) >= 0.0).mean() > 0.5)


def stand_in_limits(jobs: pl.DataFrame) -> Floats:
    """Return the limits; where one is missing, the longest runtime so far of its user.

    Else of its queue, else of all, else a day. So far: of jobs that had been submitted and had
    ended by its submission, after the wait that the log recorded.
    """
    submit = jobs["submit_seconds"].to_numpy()
    runtime = jobs["runtime_seconds"].to_numpy()
    ended = submit + jobs["recorded_wait_seconds"].fill_null(0.0).to_numpy() + runtime
    limits = jobs["requested_seconds"].fill_null(0.0).to_numpy().copy()
    groups = [
        [("user", name) for name in jobs["user"].to_list()],
        [("queue", name) for name in jobs["queue"].to_list()],
        [("all", "")] * len(jobs),
    ]
    longest: dict[tuple[str, str | None], float] = {}
    by_end, at = np.argsort(ended, kind="stable"), 0
    for job in range(len(jobs)):
        while at < len(by_end) and ended[by_end[at]] <= submit[job]:
            past = by_end[at]
            for group in groups:
                longest[group[past]] = max(longest.get(group[past], 0.0), float(runtime[past]))
            at += 1
        if limits[job] <= 0.0:
            known = (longest.get(group[job]) for group in groups if group[job][1] is not None)
            limits[job] = next((each for each in known if each is not None), _DAY_SECONDS)
    return limits


def with_limits(workload: Workload, limits: Floats) -> Workload:
    """The same jobs, each with a limit at which it is ended."""
    runtime = np.minimum(workload.jobs["runtime_seconds"].to_numpy(), limits)
    jobs = workload.jobs.with_columns(
        requested_seconds=pl.Series(limits), runtime_seconds=pl.Series(runtime)
    )
    return Workload(jobs, workload.meta)


def on_smaller_machine(workload: Workload, load: float) -> Workload:
    """The jobs that fit on a machine of which all of them would use such a share."""
    jobs = workload.jobs.with_columns(cpus=pl.col("tasks") * pl.col("cpus_per_task"))
    work = float((jobs["cpus"] * jobs["runtime_seconds"]).sum())
    span = float(jobs["submit_seconds"].max() - jobs["submit_seconds"].min())  # type: ignore[operator]
    machine = math.ceil(work / span / load)
    fitting = jobs.filter(pl.col("cpus") <= machine).drop("cpus")
    return Workload(fitting, replace(workload.meta, processors=machine))


class Log:
    """The log of a controller: notes when jobs start and when a step is whole."""

    def __init__(self, at_step: Callable[[float], object] = float) -> None:
        self.controller: Controller | None = None
        self.steps: list[float] = []
        self._at_step = at_step

    def append(self, record: Record) -> None:
        """Take one record."""

    def commit(self) -> None:
        """A step is whole."""
        assert self.controller is not None
        self.steps.append(self.controller.now)
        self._at_step(self.controller.now)


def run_schedule(workload: Workload, policy: str, limits: Floats, log: Log) -> PastSchedule:
    """Let the jobs of a log start under a policy or as recorded, each step written to a log."""
    jobs = workload.jobs
    ids = jobs["job_id"].to_list()
    if policy == RECORDED:
        starts = (jobs["submit_seconds"] + jobs["recorded_wait_seconds"].fill_null(0.0)).to_list()
        scheduler = StartsAsRecorded(dict(zip(ids, starts, strict=True)))
        _, predictor, correction = parse_policy("easy,similar").build()
        room = int(jobs.select(pl.col("tasks") * pl.col("cpus_per_task")).sum().item()) + 1
    else:
        scheduler, predictor, correction = parse_policy(policy).build()  # type: ignore[assignment]
        room = workload.processors
    log.controller = Controller(
        Cluster.of_processors(room),
        scheduler,
        predictor,
        correction,
        log=log,  # type: ignore[arg-type]
    )
    rows = simulate_events(workload, log.controller, policy).jobs
    table = jobs.select("job_id").join(rows, on="job_id", how="left", maintain_order="left")
    return PastSchedule(
        ids,
        jobs["submit_seconds"].to_numpy(),
        table["start_seconds"].to_numpy(),
        table["end_seconds"].to_numpy(),
        (jobs["tasks"] * jobs["cpus_per_task"]).to_numpy(),
        limits,
        _numbers(jobs["user"]),
        _numbers(jobs["queue"]),
        float(workload.processors),
        np.array(log.steps),
    )


def _numbers(names: pl.Series) -> Integers:
    return names.fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1
