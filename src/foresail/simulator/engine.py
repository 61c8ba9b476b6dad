"""The event engine: a workload on a simulated cluster under a controller, event by event."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.model.errors import InputError
from foresail.model.event import Allocation, EndedBecause, Event, NodeRemoved, Outcome, unit_of
from foresail.model.job import Job
from foresail.model.protocols import Progress, ProgressCallback
from foresail.model.registry import NoParameters, find_quickly
from foresail.record import schedule
from foresail.record.state import State
from foresail.simulator import simulated_cluster
from foresail.simulator.conditions import IDEAL, ClusterConditions
from foresail.simulator.driver import Driver
from foresail.simulator.truth import reveal, runtimes_of_allocations
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload

_OBJECTS_PER_COLLECTION: Final = 100_000


def simulate_events(
    workload: Workload,
    controller: Controller,
    policy: str,
    *,
    enforce_limits: bool = False,
    conditions: ClusterConditions = IDEAL,
    external_events: Callable[[], Iterable[Event]] = tuple,
    watch: ProgressCallback | None = None,
    used: Callable[[pl.DataFrame], object] | None = None,
) -> Schedule:
    """Run a workload under a fresh controller, event by event, and say what happened.

    A job runs for its true runtime from its start on (one that was preempted, or lost with a node,
    starts from the beginning); where its placement is not a preferred one, longer by its slowdown.
    Under a scheduler that starts tasks, each of these does so by itself. An oracle among the
    predictors is handed the truth first.

    ``policy`` is what the schedule calls the policy. ``external_events`` is asked after every step
    for what is going to happen that is not the cluster's doing; ``watch`` is given a measure of the
    seconds of the log that are simulated. Where tasks share nodes, ``used`` is given the table of
    what they needed, had and held over time.

    The schedule has a row per attempt of each allocation, and one for each job that never started,
    in order of submission. Its counters are those of the controller, ``preempted`` and ``lost``
    attempts, and ``never_started``: jobs that were still waiting when nothing more could happen;
    where tasks share nodes, those of their execution too. Where nodes come and go, its
    ``capacity`` says when, and ``processors`` are the most that there were at once.

    Raises ``ImpossibleTransition`` if two jobs share an id; ``InputError`` if an outage or a change
    is of a node that does not exist, or a node is added that does; or tasks share nodes, and what
    they use is not known or cannot be.
    """
    began = time.perf_counter()
    truth = workload.truth()
    reveal(workload, controller.predictor)
    capacity = simulated_cluster.capacity_over_time(controller.cluster, conditions)

    def job_of(job_id: str) -> Job:
        return controller.state.submitted_job(job_id).job

    if workload.has_own_requests and not workload.options:
        raise InputError(
            "requests of jobs are not read",
            source=workload.meta.source,
            field="strl",
            expected="run_scenario, which reads them",
        )
    news: list[NDArray[np.float64]] = []
    execution: simulated_cluster.ExecutionModel
    use_over_time: Callable[..., pl.DataFrame] | None = None
    if conditions.share_nodes:
        shared = _shared_nodes()(
            workload,
            job_of,
            controller.cluster,
            conditions,
            enforces_limits=enforce_limits,
            hears_news=None if used is None else news.append,
        )
        execution, use_over_time = shared, shared.use_over_time
        controller.scheduler.watch_use(shared.measured)
    else:
        in_parts = controller.state.starts_tasks
        runtime_of = (
            runtimes_of_allocations(workload) if in_parts else lambda each: truth[each.job_id]
        )
        execution = simulated_cluster.FixedRuntimes(
            runtime_of, job_of, controller.cluster, conditions, enforces_limits=enforce_limits
        )
    cluster = simulated_cluster.SimulatedCluster(controller.cluster, execution, job_of, conditions)
    removals = (each for each in conditions.node_changes if isinstance(each, NodeRemoved))
    departures = controller.foresee(removals)
    cpus: list[float] = []
    dependent: list[Job] = []

    def submissions() -> Iterator[Job]:
        for job in workload.specifications():
            cpus.append(job.cpus)
            if job.after:
                dependent.append(job)
            yield job

    driver = Driver(controller, cluster, submissions(), conditions.cycle_seconds, external_events)
    if watch is not None:
        watch(_measure(driver, workload))
    with _rare_collections():
        ends: dict[Allocation, float] = {}
        rows = []
        for outcome in driver.run():
            rows.append(_row(outcome, controller.state))
            if used is not None:
                ends[outcome.allocation] = outcome.end_seconds
    if used is not None and use_over_time is not None:
        used(use_over_time(news, ends))
    jobs = schedule.with_eligibility(
        schedule.schedule_table(rows, _jobs(workload, cpus, controller)),
        dependent,
        departures.eligible_seconds,
    )
    return Schedule(
        jobs=jobs,
        meta=ScheduleMeta(
            policy=policy,
            processors=max(cpus for _, cpus in capacity),
            capacity=capacity if len(capacity) > 1 else (),
            workload=workload.meta.source,
            conventions=controller.conventions.name,
            counters={**_counters(controller, jobs), **execution.counters},
            replay_seconds=time.perf_counter() - began,
        ),
    )


def _shared_nodes() -> Any:
    """The execution of tasks that share nodes, which comes with the studies of such schedulers."""
    entry = find_quickly("execution", "shared_nodes")
    if entry is None:
        raise InputError(
            "tasks that share nodes are simulated by a package that is not installed",
            field="--share-nodes",
            expected="foresail-studies installed too, or nodes that are not shared",
        )
    return entry.build(NoParameters())


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for cycles among new objects seldom.

    A simulation keeps an object or ten of every event, and makes no cycles: looking through them
    after every few hundred events took up to a third of its time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _row(outcome: Outcome, state: State) -> schedule.ScheduleRow:
    """The row of an attempt whose end is not in the state yet."""
    running = state.running[unit_of(outcome)]
    belief = state.submitted_job(outcome.job_id).prediction
    predicted = (belief.mean(), belief.quantile(0.10), belief.quantile(0.90))
    placement = running.placement
    row = schedule.attempt_row(
        outcome, predicted, running.corrections, running.backfilled, placement
    )
    return (*row, *schedule.part_columns(outcome, running.held.cpus)) if running.stage else row


def _jobs(workload: Workload, cpus: Sequence[float], controller: Controller) -> pl.DataFrame:
    """Return the schedule's columns on each job, whatever has become of it."""
    answers = controller.reservations.items()
    accepted = {job_id: schedule.was_accepted(answer) for job_id, answer in answers}
    ids = workload.jobs["job_id"]
    return workload.jobs.select(
        "job_id",
        "submit_seconds",
        "user",
        "requested_seconds",
        "deadline_seconds",
        pl.Series("cpus", cpus, pl.Float64),
        pl.Series("nominal_runtime_seconds", workload.runtime_seconds),
        ids.replace_strict(accepted, default=None, return_dtype=pl.Boolean).alias("accepted"),
    )


def _measure(driver: Driver, workload: Workload) -> Progress:
    """Seconds from the first submission, and to the last; what comes after it counts no more."""
    submit = workload.jobs["submit_seconds"].to_numpy()
    first, last = (float(submit.min()), float(submit.max())) if submit.size else (0.0, 0.0)

    def measure() -> tuple[float, float]:
        return min(driver.now, last) - first, last - first

    return measure


def _counters(controller: Controller, jobs: pl.DataFrame) -> dict[str, float]:
    counters, because = controller.counters, jobs["ended_because"]
    return {
        "passes": counters.passes,
        "corrections": counters.corrections,
        "refusals": counters.refusals,
        "delayed_heads": counters.delayed_heads,
        "preempted": int((because == EndedBecause.PREEMPTED.value).sum()),
        "lost": int((because == EndedBecause.LOST.value).sum()),
        "never_started": len(controller.pending),
    }
