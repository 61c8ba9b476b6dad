"""Interface of a cluster to its driver: it takes instructions and reports what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from foresail.model import event as news
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Preempt, Start
from foresail.model.errors import InputError
from foresail.model.job import Job

JobCommand: TypeAlias = news.Cancelled | news.Held | news.Released | news.JobChanged
"""Commands of people about a job that waits, or that runs by no start of ours."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a cluster. What it does not declare is refused before a run begins.

    Parameters
    ----------
    places
        Tasks run on the nodes that a start names; else the cluster chooses among those it has.
    preempts
        A running attempt is stopped when that is instructed.
    changes_nodes
        Nodes may go down, come, change and go.
    starts_tasks
        Stages of a job, and tasks of a stage, can be started by themselves.
    refuses_starts
        A start may not be carried out, which is reported.
    begins_jobs
        Jobs may begin, or hold nodes, that were not instructed to.
    keeps_queue
        Jobs wait in a queue of the cluster, which hears what is wished of them.
    brings_jobs
        Jobs are submitted to the cluster itself, which reports them, by ids of its own.
    is_remote
        Its control plane is elsewhere: calls may take long, and each is made in a thread apart.
    decides_itself
        It starts its jobs itself, and takes no instructions.
    runs_commands
        The commands of jobs that people submit to Foresail are run.
    """

    places: bool = False
    preempts: bool = False
    changes_nodes: bool = False
    starts_tasks: bool = False
    refuses_starts: bool = False
    begins_jobs: bool = False
    keeps_queue: bool = False
    brings_jobs: bool = False
    is_remote: bool = False
    decides_itself: bool = False
    runs_commands: bool = False

    def require(self, instruction: Instruction | JobCommand) -> None:
        """Refuse an instruction that takes what was not declared.

        Raises ``InputError`` if it does.
        """
        if self.decides_itself:
            raise InputError(f"job {instruction.job_id} is left to the cluster, which decides")
        match instruction:
            case Start(job_id, placement) if placement.tasks_by_node and not self.places:
                raise InputError(
                    f"job {job_id} cannot be started on nodes of the scheduler's choice: "
                    "this cluster chooses them itself"
                )
            case Start(job_id, stage=stage) if stage and not self.starts_tasks:
                raise InputError(
                    f"no part of job {job_id} can be started by itself: this cluster starts jobs"
                )
            case Preempt(job_id) if not self.preempts:
                raise InputError(f"job {job_id} cannot be stopped: this cluster stops no jobs")
            case _:
                pass


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job that is not finished, by the log: it waits, or runs by no start of ours."""

    job: Job
    attempts: int
    """Number of those that have begun, the one that runs among them."""
    runs: bool
    held: bool = False
    """True if it is to be held, as people wished last."""


class ClusterAdapter(Protocol):
    """A cluster, real or simulated, as the controller's instructions reach it.

    Whatever drives it hands over what the controller instructs, after it is durable where that
    matters, and hands the controller what the cluster reports. An adapter decides nothing.
    """

    @property
    def cluster(self) -> Cluster:
        """Return the cluster as it was reported last, nodes that are down among it."""

    @property
    def capabilities(self) -> Capabilities:
        """Return what the cluster can do."""

    def history(self) -> Sequence[news.HistoryOutcome]:
        """Return what it knows of jobs of earlier runs, in order of their ends."""

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Find again what an earlier driver had started, and all other jobs that it knew.

        Of ``running``, what still runs is waited for, what has ended meanwhile is reported, and
        what never began, though that was instructed, is begun. What runs by no start that was
        instructed is reported with ``Began``, known before or not. ``known`` are all other jobs:
        of those that came from the cluster none is reported as submitted again, and what has become
        of each is (``Cancelled`` where it has gone from the queue, ``Began`` and ``Ended`` where it
        ran, ``JobChanged``); jobs of the cluster that are not among them are new. What waits is
        held, or let go where somebody wished it held before. Nodes that are down now, or drained by
        the cluster, are reported, all others are used; that ``cluster`` has others than the log is
        for the driver to see.
        """

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        """Do what is instructed, once: a start is known by its job and its attempt.

        One that was carried out before changes nothing; what an earlier driver started (and has
        lost its log of) does not start again, and its end is reported. A preemption of an attempt
        that does not run changes nothing. Times to report at (``WakeAt``, ``TickAt``) are for the
        cluster only where it keeps the clock; wishes, and withdrawals, only where it keeps a queue.
        One of a job that it does not know, or that is as wished, changes nothing: a driver that
        comes after another one repeats which jobs are withdrawn.

        Raises ``InputError`` if that takes what its capabilities do not declare.
        """

    def reports(self, now: float) -> Sequence[news.Event]:
        """Return what has happened since last asked, in order; none of it is later than now.

        What runs on a node that is down or gone, or has no room there any more, is reported as
        ``LOST`` before that is, or as ``REVOKED`` where it was taken back. A start that is not
        carried out is reported as ``NotStarted``, and has begun nothing. What runs by no start that
        was instructed is reported with ``Began``, not ``ours``, before its end. A job that was
        submitted to the cluster itself is reported with ``Submitted``, once, by an id of the
        cluster's (``foresail.model.words.CLUSTER_JOB_ID``), and its user by the name there.
        """

    @property
    def next_seconds(self) -> float:
        """Return when it has something to report, where that is known; else inf."""

    @property
    def wake_descriptor(self) -> int | None:
        """A file descriptor that is readable when there may be something to report, if any."""

    def close(self) -> None:
        """Let go of what it holds open; what runs on a real cluster runs on."""


class ClusterTrial(Protocol):
    """A cluster to try an adapter on, and jobs for it.

    Adapters without a descriptor are driven by their own time, all others by the clock.
    """

    def connect(self) -> ClusterAdapter:
        """An adapter to it: of the first driver, or of one that comes after another has gone."""

    def start_of(self, seconds: float) -> Start:
        """The start of a new job, which runs so long unless it is stopped."""

    def times_begun(self, job_id: str) -> int:
        """Return how often the job has begun in fact."""


@runtime_checkable
class LivesByItself(Protocol):
    """A trial of a cluster that does more than it is instructed to, as its adapter declares."""

    def happen(
        self,
        event: news.NodeChange | news.NotStarted | news.Began | news.Submitted | news.Cancelled,
    ) -> None:
        """Let it be so: a node comes, changes or goes; a start to come is none; a job begins.

        A job is submitted to the cluster, under the id it has there, or leaves its queue.
        """

    def in_queue(self, job_id: str) -> tuple[bool, float | None] | None:
        """Return whether a job that waits at the cluster is held, and its limit; None: it is gone.

        Asked of clusters that keep a queue and bring jobs.
        """
