"""Bases of predictors and schedulers, and protocols of what else is plugged in.

A predictor says two things, a scheduler one; all their other methods do nothing here, and are
overridden by those that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Decision
from foresail.model.distribution import Distribution, Floats
from foresail.model.event import Allocation, Outcome
from foresail.model.job import Job, JobSize
from foresail.model.view import ClusterView, Due, PendingJob, Rejection, Reservation

Progress: TypeAlias = Callable[[], tuple[float, float]]
"""Amount done and amount there is to do, in the same unit; called from another thread."""

ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Callback that is given the progress when the computation begins."""


class Predictor:
    """Says how long a job will run, as a distribution, and learns from every attempt that ended."""

    def predict(self, job: Job, now: float) -> Distribution:
        """Belief about the runtime (seconds) of a job that has not run yet."""
        raise NotImplementedError

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn from one attempt that ended; called once per attempt, in order of ending.

        A job of several parts is observed once, when the last of it has ended: the runtimes of
        tasks are none of jobs.
        """
        raise NotImplementedError

    def started(self, job: Job, now: float) -> None:
        """Note that a job's attempt starts."""

    def not_started(self, job: Job, now: float) -> None:
        """Note that the start of a job's attempt was not carried out: it teaches nothing."""

    def withdrawn(self, job: Job, now: float) -> None:
        """Note that a job that waited is gone: cancelled, or after one that did not complete."""

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Note that a stage of a job, or some tasks, have ended (``outcome.allocation``)."""

    def refreshed(self, job: Job, now: float) -> Distribution:
        """Belief about a job that still waits; asked when a job of the same user has ended.

        Nothing is learned by being asked: whether and how often it was, what is observed afterwards
        teaches the same. An event log keeps only those beliefs that differ from the one before.
        """
        raise NotImplementedError

    likens_jobs: bool = False
    """True if the same is believed of all waiting jobs of a ``Job.likeness``: it is asked about one
    of them."""

    def all_refreshed(self, jobs: Sequence[Job], now: float) -> Sequence[Distribution]:
        """Return the belief about each of some jobs, like ``refreshed``."""
        return [self.refreshed(job, now) for job in jobs]

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        """Receive the real runtime of every job by job id, before a replay, if it is an oracle."""

    def reveal_use(self, used: Mapping[str, Mapping[str, float]]) -> None:
        """Receive what each job's tasks really use, by job id and name of the quantity."""

    def snapshot(self) -> Any:
        """Return what it knows, for a fresh one of its kind to ``restore``."""

    def restore(self, known: Any) -> None:
        """Know what the other one knew, jobs that were running then among it."""

    def forget_in_flight(self) -> None:
        """Forget which jobs wait and run: they are another run's."""

    @property
    def refreshes_predictions(self) -> bool:
        """Return whether it changes its mind about waiting jobs as others end."""
        return type(self).refreshed is not Predictor.refreshed

    @property
    def needs_truth(self) -> bool:
        """Return whether it is an oracle, which is handed the real runtimes openly."""
        return type(self).reveal is not Predictor.reveal

    @property
    def needs_real_use(self) -> bool:
        """Return whether it is an oracle that is handed what tasks really use."""
        return type(self).reveal_use is not Predictor.reveal_use

    @property
    def keeps_state(self) -> bool:
        """Return whether its whole knowledge can be handed to a fresh one of its kind."""
        return type(self).snapshot is not Predictor.snapshot

    @property
    def is_compiled(self) -> bool:
        """Return whether it has steps for the compiled replay (``foresail.kernels.steps``)."""
        return hasattr(self, "compiled")


class CycleReport(Protocol):
    """Report on how well a plan was solved: its worth, the bound, and the effort."""

    @property
    def value(self) -> float:
        """Return the plan's worth."""

    @property
    def bound(self) -> float:
        """Return a bound that no plan exceeds."""

    @property
    def gap(self) -> float:
        """Share of its value by which the best plan may be better."""

    @property
    def columns(self) -> int:
        """Size of the last program, 0 if none was needed."""

    @property
    def cycle_seconds(self) -> float:
        """Return the wall time of the whole decision."""

    @property
    def solver_failure(self) -> str:
        """Return the solver's message if it failed; empty if it did not."""

    @property
    def left_out(self) -> int:
        """Return how many of the waiting jobs it did not look at."""


class ReferenceSchedule(Protocol):
    """Schedule that another scheduler would have made of the same jobs, as far as known.

    It follows each event of a job when that happens (times ascend), and follows from these.
    """

    def entered(self, pending: PendingJob, now: float) -> None:
        """A job may start from now on: it was submitted, or what it depends on has ended."""

    def started(self, job_id: str, now: float) -> bool:
        """Note that an attempt of the job starts; returns whether it was due by then."""

    def requeued(self, job_id: str, now: float) -> None:
        """The attempt was stopped or lost, and the job waits again."""

    def left(self, job_id: str, now: float) -> None:
        """The job has ended, or will never run."""

    def found(self, now: float) -> Sequence[tuple[str, Due]]:
        """Return the jobs whose turn came there before now and is new, by their turn."""

    def next_seconds(self) -> float:
        """Return when there is more to find, or a due time comes, if nothing happens until then.

        As of the last passage and the last finding; infinite for never.
        """

    def copy(self) -> ReferenceSchedule:
        """Return a copy that goes on from here by itself."""


class Scheduler:
    """Says what to start now, what is planned, and why the others wait."""

    ignores_time: bool = False
    """True if there is nothing new to decide until something has happened: decisions follow from
    the jobs, what is free and what is known of runtimes, whatever the time is. A tick that nothing
    but time has led up to needs no pass then."""

    starts_tasks: bool = False
    """True if stages start when those before them have ended, and tasks one by one. It is shown
    what of a job may start (``PendingJob.startable``). To any other scheduler such a job is shown,
    and started, as a whole."""

    starts_nothing: bool = False
    """True where the cluster starts jobs itself, by their places in its queue, and backfills."""

    places_by_options: bool = False
    """True if jobs with options of their own (``Job.options``) run in these only."""

    backfills: bool | None = None
    """True if jobs may start before the first that waits if they do not delay it; None: jobs do not
    start in the order of a number of each, ``place_in_queue``."""

    def decide(self, view: ClusterView) -> Decision:
        """Pure: the same view gives the same decision; the view is not changed."""
        raise NotImplementedError

    @property
    def last(self) -> CycleReport | None:
        """Report on how well the last decision was solved; None if no job waited."""
        return None

    def planned_seconds(self, pending: PendingJob) -> float:
        """Runtime to plan with, asked once at submission, when ``pending`` carries the mean."""
        return pending.planned_seconds

    def place_in_queue(self, pending: PendingJob, now: float) -> float:
        """Jobs of lower numbers come first, as far as that does not depend on other jobs."""
        raise NotImplementedError

    def places_in_queue(
        self,
        pending: Sequence[PendingJob],
        specs: Floats,  # noqa: ARG002 - for who can look at all at once
        summaries: Floats,  # noqa: ARG002
        now: float,
    ) -> Floats:
        """Places of many jobs, each as by ``place_in_queue``.

        ``specs`` and ``summaries`` are their rows as kernels read them (``kernels.columns``).
        """
        return np.array([self.place_in_queue(each, now) for each in pending], np.float64)

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """The answer to a job with a deadline, asked once at submission; None: it takes none.

        Before ``earliest_seconds`` jobs that it waits for are not expected to have ended. The
        cluster has no nodes that are down or drained. What was promised is the scheduler's own; the
        answers stand on the jobs of every view, and decisions follow from these, not from memory.
        """

    def release(self, job_id: str, now: float) -> None:
        """A job that was promised something has ended, or never will run."""

    def take_over(self, promised: Sequence[Reservation], cluster: Cluster) -> None:
        """Keep to what was promised, in this order, before a run was interrupted."""

    def memory(self) -> Mapping[str, Any] | None:
        """Return what it keeps from the last decision for the next: plain values, as in JSON.

        None: decisions follow from views alone.
        """

    def remember(self, memory: Mapping[str, Any], cluster: Cluster) -> None:
        """Go on from what another one kept, on this cluster."""

    def reference(self, cluster: Cluster) -> ReferenceSchedule | None:
        """The schedule that it compares with (``due`` of pending jobs), before the first job."""

    def watch_use(self, measured: Callable[[], Mapping[Allocation, Resources]]) -> None:
        """Receive the means to measure, before a simulation begins: use of each task, on average.

        Of an allocation that uses nothing yet nothing is said. What was seen is not in the event
        log; what is kept of it is in ``memory``.
        """

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Note that a stage of a job, or some tasks, have ended (``outcome.allocation``)."""

    def requeued(self, job: Job, outcome: Outcome) -> None:
        """Note that an attempt of a whole job was lost or stopped, and the job waits again."""

    def sizes(self) -> Sequence[JobSize]:
        """Return the sizes of jobs that have got a queue, or another one, since last asked."""
        return ()

    @property
    def takes_reservations(self) -> bool:
        """Return whether capacity is promised to jobs with deadlines when they are submitted."""
        return type(self).reserve is not Scheduler.reserve

    @property
    def compares(self) -> bool:
        """Return whether it looks at what another scheduler would have done."""
        return type(self).reference is not Scheduler.reference

    @property
    def is_compiled(self) -> bool:
        """Return whether it has a pass for the compiled replay (``kernels.steps``)."""
        return hasattr(self, "compiled")


@runtime_checkable
class Correction(Protocol):
    """Gives the next estimate of a running job's total runtime once the current one has expired."""

    def correct(
        self, job: Job, prediction: Distribution, initial: float, current: float, count: int
    ) -> float:
        """Next estimate of the total runtime in seconds, greater than ``current``.

        ``prediction`` and ``initial`` are belief and estimate at submission; the job has now run
        for exactly ``current`` seconds, and had ``count`` corrections before.
        """
