"""Protocols that plug-ins satisfy. One method or two each; everything else is theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Decision
from foresail.model.distribution import Distribution
from foresail.model.job import Job, JobSize
from foresail.model.outcome import Allocation, Outcome
from foresail.model.view import ClusterView, Due, PendingJob, Rejection, Reservation

Progress: TypeAlias = Callable[[], tuple[float, float]]
"""What is done and how much there is to do, in the same unit; called from another thread."""

ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Is given the progress when the computation begins."""


@runtime_checkable
class Predictor(Protocol):
    """Says how long a job will run, as a distribution, and learns from every attempt that ended."""

    def predict(self, job: Job, now: float) -> Distribution:
        """Belief about the runtime (seconds) of a job that has not run yet."""
        ...

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn from one attempt that ended; called once per attempt, in order of ending."""
        ...


@runtime_checkable
class WatchesWithdrawals(Protocol):
    """A predictor that also wants to know which jobs will not run, of those it was asked about."""

    def withdrawn(self, job: Job, now: float) -> None:
        """Note that a job that waited is gone: cancelled, or after one that did not complete."""
        ...


@runtime_checkable
class WatchesStarts(Protocol):
    """A predictor that also wants to know which jobs are running."""

    def started(self, job: Job, now: float) -> None:
        """Called when a job's attempt starts."""
        ...


@runtime_checkable
class RefreshesPredictions(Protocol):
    """A predictor that changes its mind about waiting jobs as others end."""

    def refreshed(self, job: Job, now: float) -> Distribution:
        """Belief about a job that still waits; asked when a job of the same user has ended.

        Nothing is learned by being asked: whether and how often it was, what is observed afterwards
        teaches the same. An event log keeps only those beliefs that differ from the one before.
        """
        ...


@runtime_checkable
class NeedsTruth(Protocol):
    """An oracle: a predictor that is handed the real runtimes openly, before a replay begins."""

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        """Receive the real runtime of every job by job id."""
        ...


@runtime_checkable
class NeedsRealUse(Protocol):
    """An oracle that is handed what tasks really use, before a simulation begins."""

    def reveal_use(self, used: Mapping[str, Mapping[str, float]]) -> None:
        """Receive what each job's tasks use, by job id and name of the quantity."""
        ...


@runtime_checkable
class KeepsState(Protocol):
    """A predictor whose whole knowledge can be handed to a fresh one of its kind."""

    def snapshot(self) -> Any:
        """All that it knows."""
        ...

    def restore(self, known: Any) -> None:
        """Know what the other one knew, jobs that were running then among it."""
        ...

    def forget_in_flight(self) -> None:
        """Forget which jobs wait and run: they are another run's."""
        ...


@runtime_checkable
class Scheduler(Protocol):
    """Says what to start now, what is planned, and why the others wait."""

    def decide(self, view: ClusterView) -> Decision:
        """Pure: the same view gives the same decision; the view is not changed."""
        ...


@runtime_checkable
class WatchesUse(Protocol):
    """A scheduler that looks at what runs: what each task uses just now, as a cluster measures it.

    What it has looked at is not in the event log; what it keeps of it, it reports (``Remembers``).
    """

    def watch_use(self, measured: Callable[[], Mapping[Allocation, Resources]]) -> None:
        """Receive the means to measure, before a simulation begins: use of each task, on average.

        Of an allocation that uses nothing yet nothing is said.
        """
        ...


@runtime_checkable
class PlansRuntimes(Protocol):
    """A scheduler that plans with another runtime than the prediction's mean."""

    def planned_seconds(self, pending: PendingJob) -> float:
        """Runtime to plan with, asked once at submission, when ``pending`` carries the mean."""
        ...


@runtime_checkable
class OrdersQueue(Protocol):
    """A scheduler that starts jobs of a queue in the order of a number of each."""

    backfills: bool
    """Whether jobs may overtake if the first that waits is not delayed."""

    def place_in_queue(self, pending: PendingJob, now: float) -> float:
        """Jobs of lower numbers come first, as far as that does not depend on other jobs."""
        ...


@runtime_checkable
class TakesReservations(Protocol):
    """A scheduler that promises capacity to jobs with deadlines when they are submitted.

    What it has promised is its own; the answers stand on the jobs of every view. Its decisions
    follow from these, not from its memory.
    """

    def reserve(
        self, pending: PendingJob, earliest_seconds: float, now: float, cluster: Cluster
    ) -> Reservation | Rejection | None:
        """The answer to a job with a deadline, asked once at submission; None: it takes none.

        Before ``earliest_seconds`` jobs that it waits for are not expected to have ended. The
        cluster has no nodes that are down or drained.
        """
        ...

    def release(self, job_id: str, now: float) -> None:
        """A job that was promised something has ended, or never will run."""
        ...

    def take_over(self, promised: Sequence[Reservation], cluster: Cluster) -> None:
        """Keep to what was promised, in this order, before a run was interrupted."""
        ...


class CycleReport(Protocol):
    """Report on how well a plan was solved: its worth, the bound, and the effort."""

    @property
    def value(self) -> float:
        """Return the plan's worth."""
        ...

    @property
    def bound(self) -> float:
        """Return a bound that no plan exceeds."""
        ...

    @property
    def gap(self) -> float:
        """By what share of its value the best plan may be better."""
        ...

    @property
    def columns(self) -> int:
        """Size of the last program, 0 if none was needed."""
        ...

    @property
    def cycle_seconds(self) -> float:
        """Return the wall time of the whole decision."""
        ...

    @property
    def solver_failure(self) -> str:
        """Return the solver's message if it failed; empty if it did not."""
        ...

    @property
    def left_out(self) -> int:
        """Return how many of the waiting jobs it did not look at."""
        ...


@runtime_checkable
class ReportsCycles(Protocol):
    """A scheduler that says how well it solved its last decision; None if no job waited."""

    @property
    def last(self) -> CycleReport | None:
        """Return the report of the last decision."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """A scheduler whose decisions follow from views and from what it kept of the one before."""

    def memory(self) -> Mapping[str, Any]:
        """Return what it keeps from the last decision for the next: plain values, as in JSON."""
        ...

    def remember(self, memory: Mapping[str, Any], cluster: Cluster) -> None:
        """Go on from what another one kept, on this cluster."""
        ...


class ReferenceSchedule(Protocol):
    """Schedule that another scheduler would have made of the same jobs, as far as known.

    It follows each event of a job when that happens (times ascend), and follows from these.
    """

    def entered(self, pending: PendingJob, now: float) -> None:
        """A job may start from now on: it was submitted, or what it depends on has ended."""
        ...

    def started(self, job_id: str, now: float) -> None:
        """An attempt of the job starts."""
        ...

    def went_back(self, job_id: str, now: float) -> None:
        """The attempt was stopped or lost, and the job waits again."""
        ...

    def left(self, job_id: str, now: float) -> None:
        """The job has ended, or will never run."""
        ...

    def found(self, now: float) -> Sequence[tuple[str, Due]]:
        """Return the jobs whose turn came there before now and is new, by their turn."""
        ...

    def next_seconds(self) -> float:
        """Return when there is more to find, or a due time comes, if nothing happens until then.

        As of the last passage and the last finding; infinite for never.
        """
        ...

    def copy(self) -> ReferenceSchedule:
        """Another one that goes on from here by itself."""
        ...


@runtime_checkable
class ComparesWith(Protocol):
    """A scheduler that looks at what another one would have done: at ``due`` of pending jobs."""

    def reference(self, cluster: Cluster) -> ReferenceSchedule:
        """The schedule that it compares with, on this cluster, before the first job."""
        ...


@runtime_checkable
class IgnoresTime(Protocol):
    """A scheduler that has nothing new to say until something has happened.

    Its decision follows from the jobs, what is free and what it knows of runtimes, whatever the
    time is: a tick that nothing but time has led up to needs no pass. Of value to schedulers in
    cycles; one that plans ahead, or that values a start by the clock, is none of these.
    """

    ignores_time: Literal[True]


@runtime_checkable
class StartsTasks(Protocol):
    """A scheduler that starts stages when those before them have ended, and tasks one by one.

    It is shown what of a job may start (``PendingJob.startable``). To any other one such a job is
    shown, and started, as a whole.
    """

    starts_tasks: Literal[True]


@runtime_checkable
class TellsSizes(Protocol):
    """A scheduler that learns how large a job is from some of its tasks, and says so."""

    def sizes(self) -> Sequence[JobSize]:
        """Return the sizes of jobs that have got a queue, or another one, since last asked."""
        ...


@runtime_checkable
class PlacesByOptions(Protocol):
    """A scheduler that runs jobs with options of their own (``Job.options``) in these only."""

    @property
    def places_by_options(self) -> bool:
        """Return whether it does so with the parameters that it has."""
        ...


@runtime_checkable
class ObservesTasks(Protocol):
    """A scheduler or a predictor that observes each part of a job that has ended.

    A predictor's ``observe`` gets such a job once, when the last of it has ended: the
    runtimes of tasks are none of jobs.
    """

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """A stage of the job, or some of its tasks, have ended: those of ``outcome.allocation``."""
        ...


@runtime_checkable
class ObservesRestarts(Protocol):
    """A scheduler that observes whole jobs that were lost or stopped and begin anew."""

    def went_back(self, job: Job, outcome: Outcome) -> None:
        """An attempt of a job that does not live in parts has ended, and the job waits again."""
        ...


@runtime_checkable
class Correction(Protocol):
    """Gives the next estimate of a running job's total runtime once the current one has expired."""

    def correct(
        self, job: Job, prediction: Distribution, initial: float, current: float, count: int
    ) -> float:
        """Next estimate of the total runtime in seconds, greater than ``current``.

        Parameters
        ----------
        job
            The job's specification.
        prediction
            The belief at submission.
        initial, current
            The estimate at submission and the one that has just expired; the job has now run for
            exactly ``current`` seconds.
        count
            How many corrections this job has had before (0 at the first).
        """
        ...


@dataclass(frozen=True, slots=True)
class SchedulerCapabilities:
    """Capabilities of a scheduler beside deciding: itself, as one that can, or None.

    ``is_compiled``: it has a pass for the compiled replay (``foresail.kernels.signatures``).
    """

    plans_runtimes: PlansRuntimes | None
    orders_queue: OrdersQueue | None
    takes_reservations: TakesReservations | None
    reports_cycles: ReportsCycles | None
    remembers: Remembers | None
    observes_tasks: ObservesTasks | None
    observes_restarts: ObservesRestarts | None
    tells_sizes: TellsSizes | None
    compares_with: ComparesWith | None
    watches_use: WatchesUse | None
    ignores_time: bool
    starts_tasks: bool
    places_by_options: bool
    is_compiled: bool


@dataclass(frozen=True, slots=True)
class PredictorCapabilities:
    """Capabilities of a predictor beside predicting and learning: itself, or None.

    ``is_compiled``: it has steps for the compiled replay (``foresail.kernels.signatures``).
    """

    watches_starts: WatchesStarts | None
    watches_withdrawals: WatchesWithdrawals | None
    refreshes_predictions: RefreshesPredictions | None
    observes_tasks: ObservesTasks | None
    needs_truth: NeedsTruth | None
    needs_real_use: NeedsRealUse | None
    keeps_state: KeepsState | None
    is_compiled: bool


def capabilities_of_scheduler(scheduler: Scheduler) -> SchedulerCapabilities:
    """Return a scheduler's capabilities, by what it has; to be asked once."""
    return SchedulerCapabilities(
        plans_runtimes=_if_it_can(scheduler, PlansRuntimes),
        orders_queue=_if_it_can(scheduler, OrdersQueue),
        takes_reservations=_if_it_can(scheduler, TakesReservations),
        reports_cycles=_if_it_can(scheduler, ReportsCycles),
        remembers=_if_it_can(scheduler, Remembers),
        observes_tasks=_if_it_can(scheduler, ObservesTasks),
        observes_restarts=_if_it_can(scheduler, ObservesRestarts),
        tells_sizes=_if_it_can(scheduler, TellsSizes),
        compares_with=_if_it_can(scheduler, ComparesWith),
        watches_use=_if_it_can(scheduler, WatchesUse),
        ignores_time=getattr(scheduler, "ignores_time", False),
        starts_tasks=getattr(scheduler, "starts_tasks", False),
        places_by_options=getattr(scheduler, "places_by_options", False),
        is_compiled=hasattr(scheduler, "compiled"),
    )


def capabilities_of_predictor(predictor: Predictor) -> PredictorCapabilities:
    """Return a predictor's capabilities, by what it has; to be asked once."""
    return PredictorCapabilities(
        watches_starts=_if_it_can(predictor, WatchesStarts),
        watches_withdrawals=_if_it_can(predictor, WatchesWithdrawals),
        refreshes_predictions=_if_it_can(predictor, RefreshesPredictions),
        observes_tasks=_if_it_can(predictor, ObservesTasks),
        needs_truth=_if_it_can(predictor, NeedsTruth),
        needs_real_use=_if_it_can(predictor, NeedsRealUse),
        keeps_state=_if_it_can(predictor, KeepsState),
        is_compiled=hasattr(predictor, "compiled"),
    )


def _if_it_can(part: Any, capability: type) -> Any:
    """The part, if it has all that the protocol of a capability asks for.

    Not by ``isinstance``, which since Python 3.12 overlooks what a wrapper forwards.
    """
    return part if all(hasattr(part, name) for name in _asked_for(capability)) else None


@cache
def _asked_for(capability: type) -> tuple[str, ...]:
    """Names of what a protocol asks for, as it declares them."""
    declared = (*vars(capability), *vars(capability).get("__annotations__", ()))
    return tuple(name for name in declared if not name.startswith("_"))


class SchedulerOfScheduler:
    """The base of a scheduler that asks another one: what that one can, it can too.

    Not that it starts tasks: who changes another's decision changes starts of whole jobs. A
    subclass overrides what is to be otherwise.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> Any:
        if name in _FORWARDED:
            return getattr(self._scheduler, name)
        raise AttributeError(name, name=name, obj=self)


_NOT_OF_TASKS: Final = (
    *(PlansRuntimes, OrdersQueue, TakesReservations, ReportsCycles, Remembers, ComparesWith),
    *(WatchesUse, ObservesRestarts, PlacesByOptions, IgnoresTime),
)
_FORWARDED: Final = frozenset(chain.from_iterable(map(_asked_for, _NOT_OF_TASKS)))
