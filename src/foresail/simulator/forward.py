"""Simulating forward: what becomes of the jobs of a run, from the state that it is in."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from foresail.control.loop import Controller
from foresail.model.decision import Instruction, Preempt, TickAt, WakeAt
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.view import PendingJob, Reservation, RunningJob
from foresail.simulator.conditions import IDEAL, ClusterConditions
from foresail.simulator.driver import Driver
from foresail.simulator.execution import FixedRuntimes
from foresail.simulator.simulated_cluster import SimulatedCluster


def simulate_forward(
    controller: Controller,
    runtime_seconds: Mapping[str, float],
    submissions: Iterable[Job] = (),
    *,
    enforce_limits: bool = False,
    conditions: ClusterConditions = IDEAL,
) -> Iterator[Outcome]:
    """Go on from where a run stands until nothing more can happen.

    Jobs that wait wait on, jobs that run have run for as long as they have. Jobs that were told to
    stop do so at once.

    Parameters
    ----------
    controller
        Stands where the future begins: a fork of the run's own (``Controller.fork``), or one that
        has taken over what its records lead to (``Controller.take_over``). It is led on to the end.
    runtime_seconds
        How long each job runs in all, where it runs best, by its id; each part of one that starts
        in parts runs for so long. A job that has run for longer already ends at once.
    submissions
        Further jobs, in order of submission, none of them before now.
    enforce_limits
        Kill jobs at their requested time.
    conditions
        What the cluster does that an ideal one does not; of what its nodes do, what is to come.

    Returns
    -------
    Iterator of Outcome
        The attempts in order of their ends, each as soon as it is known; none of a job that never
        starts, or never ends. Who asks for no more lets the rest of the future be.

    Raises
    ------
    KeyError
        If the runtime of a job is not given, when it is needed.
    InputError
        If an outage or a change is of a node that does not exist, or a node is added that does.
    """
    if controller.predictor_can.needs_truth is not None:
        controller.predictor_can.needs_truth.reveal(runtime_seconds)

    def job_of(job_id: str) -> Job:
        return controller.state.submitted_job(job_id).job

    execution = FixedRuntimes(
        lambda allocation: runtime_seconds[allocation.job_id],
        job_of,
        controller.cluster,
        conditions,
        enforces_limits=enforce_limits,
    )
    now = controller.now
    cluster = SimulatedCluster(controller.cluster, execution, job_of, conditions, now)
    for running in controller.running.values():
        cluster.start(running.allocation, running.placement, running.start_seconds)
    driver = Driver(controller, cluster, submissions, conditions.cycle_seconds)
    driver.follow(_instructed(controller))
    return driver.run()


def draw_runtimes(
    pending: Iterable[PendingJob], running: Iterable[RunningJob], now: float, count: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """So many possible runtimes (seconds) of each job that waits or runs, as it is believed now.

    Those of a running job exceed what it has run for; if its belief leaves none that does, they are
    its current estimate. Draws depend on the seed and the job's id: they are the same whatever
    other jobs there are.
    """
    drawn = {}
    for each in pending:
        job_id = each.job.job_id
        drawn[job_id] = each.prediction.sample(_random_of(job_id, seed), count)
    for runs in running:
        job_id = runs.job.job_id
        elapsed = runs.elapsed_seconds(now) / runs.slowdown
        if runs.prediction.survival(elapsed) > 0.0:
            belief = runs.prediction.given(elapsed)
            drawn[job_id] = belief.sample(_random_of(job_id, seed), count)
        else:
            expected = runs.expected_end_seconds - runs.start_seconds
            drawn[job_id] = np.full(count, expected / runs.slowdown)
    return drawn


def _random_of(job_id: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(job_id.encode())])


def _instructed(controller: Controller) -> Iterator[Instruction]:
    """What the controller has instructed and waits for."""
    now, state = controller.now, controller.state
    for running in state.running.values():
        if math.isfinite(running.expected_end_seconds):
            expected = max(running.expected_end_seconds, now)
            yield WakeAt(running.job.job_id, expected, running.stage, running.tasks)
    for pending in controller.pending:
        answer = pending.reservation
        if isinstance(answer, Reservation) and answer.start_seconds > now:
            yield TickAt(pending.job.job_id, answer.start_seconds)
    for job_id, stage, tasks, attempt in sorted(
        state.running[unit].allocation for unit in state.stopping
    ):
        yield Preempt(job_id, attempt, stage, tasks)
