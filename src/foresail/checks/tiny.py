"""Small worlds for examples, tests and conformance suites: jobs, views and workloads by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foresail.distributions.basic import Point
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def tiny_pending(
    job_id: str,
    cpus: int,
    seconds: float,
    *,
    arrival: int = 0,
    submit_seconds: float = 0.0,
    prediction: Distribution | None = None,
) -> PendingJob:
    """A waiting gang of ``cpus`` single-cpu tasks, expected to run (and limited to) ``seconds``."""
    job = Job.gang(job_id, submit_seconds, cpus, requested_seconds=seconds, user="ann")
    return PendingJob(job, arrival, prediction or Point(seconds), seconds)


def tiny_running(
    job_id: str,
    cpus: int,
    expected_end_seconds: float,
    *,
    start_seconds: float = 0.0,
    start_order: int = 0,
) -> RunningJob:
    """A running gang of ``cpus`` single-cpu tasks on partition ``all``."""
    seconds = expected_end_seconds - start_seconds
    job = Job.gang(job_id, start_seconds, cpus, requested_seconds=seconds, user="bob")
    return RunningJob(
        job=job,
        start_seconds=start_seconds,
        start_order=start_order,
        placement=Placement.whole("all", cpus),
        prediction=Point(seconds),
        expected_end_seconds=expected_end_seconds,
    )


def tiny_view(
    pending: Iterable[PendingJob] = (),
    running: Iterable[RunningJob] = (),
    *,
    processors: int = 4,
    now: float = 0.0,
) -> ClusterView:
    """A snapshot of a cluster of ``processors`` cpus in one partition ``all``."""
    running = tuple(running)
    held = sum(job.job.cpus for job in running)
    return ClusterView(
        now=now,
        cluster=Cluster.of_processors(processors),
        free={"all": Resources(cpus=processors - held)},
        pending=tuple(pending),
        running=running,
    )


def tiny_workload(
    jobs: Sequence[tuple[float, int, float, float | None]], processors: int = 4
) -> Workload:
    """A workload from (submit seconds, cpus, runtime seconds, requested seconds) per job.

    Jobs are named ``1``, ``2``, ... in the order given, and all belong to one user.
    """
    table = jobs_table(
        {
            "job_id": [str(number) for number in range(1, len(jobs) + 1)],
            "submit_seconds": [float(submit) for submit, _, _, _ in jobs],
            "tasks": [cpus for _, cpus, _, _ in jobs],
            "runtime_seconds": [float(runtime) for _, _, runtime, _ in jobs],
            "requested_seconds": [requested for _, _, _, requested in jobs],
            "user": ["ann"] * len(jobs),
        }
    )
    return Workload(table, WorkloadMeta("tiny", "hand", processors))
