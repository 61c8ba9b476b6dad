"""The snapshot: how the run stands, as the daemon's thread last left it for others to look at."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from foresail.control.loop import Controller
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Reason
from foresail.model.errors import ForesailError
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.record.job_life import JobHistory
from foresail.record.records import Counters
from foresail.record.run_fold import RunFold
from foresail.service.mail import MailHook
from foresail.service.store.protocol import Accepted

_WATCHED_SECONDS: Final = 1.0
"""Age up to which a snapshot that somebody has looked at is made anew after each step, so that
readers who come again need not wait for the daemon."""

_MOST_WATCHED: Final = 200
"""Number of jobs up to which reasons are kept ready; those of more are asked for."""

_PATIENCE_SECONDS: Final = 0.02
"""Time that a reader waits for a new one, if there is an older one."""

_REASONS_PATIENCE_SECONDS: Final = 0.01
_COMMAND_PATIENCE_SECONDS: Final = 0.5
_FIRST_PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Snapshot of a run after a step; nothing of it changes any more."""

    unix_seconds: float
    """Time of that step."""
    cluster: Cluster
    """All nodes, those that are down among them."""
    running: tuple[RunningJob, ...]
    """Running jobs, in order of start."""
    pending: int
    """Number of jobs that wait."""
    plan: Mapping[str, float]
    """Planned starts (Unix seconds), of those that have one."""
    free: Mapping[str, Resources]
    """Unused amounts, by partition; ``free_nodes`` by node, where nodes are known."""
    free_nodes: Mapping[str, Resources]

    down: frozenset[str]
    drained: Mapping[str, float | None]
    """Names of nodes that are down, and those that an operator takes out of use until some time."""
    is_draining: bool
    """True if nothing new is started anywhere."""
    counters: Counters
    """Counts since the run began."""


def snapshot_of(run: Controller | RunFold, plan: Mapping[str, float]) -> ClusterSnapshot:
    """Take a snapshot of a run, in which these starts are planned (Unix seconds by job id)."""
    state = run.state
    return ClusterSnapshot(
        unix_seconds=run.now,
        cluster=state.cluster,
        running=tuple(state.running.values()),
        pending=sum(len(each.by_id) for each in state.pending_rosters),
        plan=plan,
        free=dict(state.free.by_partition()),
        free_nodes=dict(state.free.by_node()),
        down=frozenset(state.down),
        drained={name: each.until_seconds for name, each in state.drained.items()},
        is_draining=run.draining,
        counters=replace(run.counters),
    )


Answer = TypeVar("Answer")


class DaemonBusy(ForesailError):  # noqa: N818 - it says what it is
    """The daemon has not come by for some seconds: a pass takes long, or there is no daemon now."""

    def __init__(self, because: str) -> None:
        super().__init__(because or "the service is busy with a pass")


class SnapshotCache:
    """Shows readers the latest snapshot; the daemon's observer, which takes one if someone looks.

    It makes snapshots and reasons of jobs only where a reader waits for them, or has looked lately.
    ``wake`` lets the daemon come by; ``taken`` gives the number of the last request that it was
    given; ``passed`` is called whenever it has come by, and says how long it may rest then
    (seconds): it goes on answering meanwhile.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        note: Callable[[str], None],
        refresh_seconds: float,
        taken: Callable[[], int],
        passed: Callable[[Controller], float],
    ) -> None:
        self.refresh_seconds = refresh_seconds
        self.seen_monotonic: float | None = None
        """Time at which the daemon last came by; None while there is none."""
        self.busy_because: Callable[[], str] = str
        """Says why the daemon does not come by, if something is known of that."""
        self.mail: MailHook | None = None
        """Mails about jobs, if anything does."""
        self.estimates: Mapping[str, float] = {}  # when the cluster itself expects jobs to start
        self._wake = wake
        self._note = note
        self._taken = taken
        self._passed = passed
        self._latest: ClusterSnapshot | None = None
        self._is_stale = True
        self._taken_monotonic = self._looked_monotonic = -float("inf")
        self._next: Future[ClusterSnapshot] | None = None
        self._reasons: Mapping[str, Reason] = {}
        self._watched: dict[str, float] = {}
        self._questions: deque[tuple[int, Callable[[Controller, JobHistory], None]]] = deque()
        self._is_asked = threading.Event()

    async def ask(
        self, question: Callable[[Controller, JobHistory], Answer], after: int = 0
    ) -> Answer:
        """Have a short question answered in the daemon's thread, when it next comes by.

        That is after the step that takes the request of a number. Raises ``DaemonBusy`` if it does
        not come by for some seconds.
        """
        answer: Future[Answer] = Future()
        self._questions.append((after, lambda *seen: _answer(answer, question, *seen)))
        self._call()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), _FIRST_PATIENCE_SECONDS)
        except TimeoutError as error:
            raise DaemonBusy(self.busy_because()) from error

    async def heard(self, accepted: Accepted) -> None:
        """Wait until the daemon has taken what was asked, and all that it changes can be read.

        It may have no time: what was asked is durable, and done later.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_COMMAND_PATIENCE_SECONDS):
                await self.ask(lambda *_: None, after=accepted.requests[-1].number)

    async def reasons(self, job_ids: Collection[str]) -> Mapping[str, Reason]:
        """Return why some jobs wait, as far as that can be computed soon."""
        now, ready = time.monotonic(), self._reasons
        for job_id in job_ids:
            self._watched.pop(job_id, None)
            self._watched[job_id] = now
        for job_id in list(self._watched)[:-_MOST_WATCHED]:
            del self._watched[job_id]
        if not all(job_id in ready for job_id in job_ids):
            with suppress(TimeoutError):
                async with asyncio.timeout(_REASONS_PATIENCE_SECONDS):
                    return await self.ask(lambda controller, _: controller.reasons_of(job_ids))
        return ready

    async def look(self, fresh_seconds: float = 0.0) -> ClusterSnapshot | None:
        """The latest snapshot; None if there is none in time.

        One that is older than it may be, and no longer true, is taken anew if that can be done
        soon.
        """
        latest, now = self._latest, time.monotonic()
        age, self._looked_monotonic = now - self._taken_monotonic, now
        if latest is not None and (not self._is_stale or age < fresh_seconds):
            return latest
        coming = self._next
        if coming is None:
            coming = self._next = Future()
        self._call()
        patience = _FIRST_PATIENCE_SECONDS if latest is None else _PATIENCE_SECONDS
        await asyncio.wait({asyncio.wrap_future(coming)}, timeout=patience)
        return self._latest

    def recovered(self, run: RunFold) -> None:
        """Show a run as its log leaves it: learning from it and a first pass may take seconds."""
        self.seen_monotonic = time.monotonic()
        plan = {each.job_id: each.start_seconds for each in run.plan.planned()}
        self._show(snapshot_of(run, plan))

    def refreshed(self, controller: Controller, jobs: JobHistory) -> None:
        """Answer questions, and take a snapshot if someone waits for it; then rest if one may."""
        self.seen_monotonic = time.monotonic()
        self._is_stale = True
        watched = list(self._watched.items())
        last = self.seen_monotonic - _WATCHED_SECONDS
        self._reasons = controller.reasons_of([each for each, at in watched if at >= last])
        if self._looked_monotonic >= last or self._latest is None:
            self._show(snapshot_of(controller, controller.plan))
        self._answer_all(controller, jobs)
        until = time.monotonic() + self._passed(controller)
        while (left := until - time.monotonic()) > 0.0 and self._is_asked.wait(left):
            self._answer_all(controller, jobs)

    def _call(self) -> None:
        """Have the daemon come by, or answer at once if it rests."""
        self._is_asked.set()
        self._wake()

    def _answer_all(self, controller: Controller, jobs: JobHistory) -> None:
        self._is_asked.clear()
        for _ in range(len(self._questions)):
            after, answered = self._questions.popleft()
            if after <= self._taken():
                answered(controller, jobs)
            else:
                self._questions.append((after, answered))
        if self._next is not None:
            self._show(snapshot_of(controller, controller.plan))

    def _show(self, snapshot: ClusterSnapshot) -> None:
        self._latest = snapshot
        self._taken_monotonic = time.monotonic()
        self._is_stale = False
        coming, self._next = self._next, None
        if coming is not None:
            coming.set_result(snapshot)

    def started(self, job: Job, attempt: int) -> None:
        """Report the start by mail; it is in the snapshot."""
        if self.mail is not None:
            self.mail.started(job.job_id, attempt)

    def ended(self, job: Job, outcome: Outcome) -> None:  # noqa: ARG002 - an outcome says of which
        """Report the end by mail; it is in the store."""
        if self.mail is not None:
            self.mail.ended(outcome)

    def withdrawn(self, job: Job, because: str) -> None:
        """Do nothing: it is in the store."""

    def keep_estimates(self, estimates: Mapping[str, float]) -> None:
        """Take when the cluster itself expects jobs to start (Unix seconds), by id."""
        self.estimates = estimates

    def note(self, sentence: str) -> None:
        """Pass it on."""
        self._note(sentence)


def _answer(
    future: Future[Answer],
    question: Callable[[Controller, JobHistory], Answer],
    controller: Controller,
    jobs: JobHistory,
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(question(controller, jobs))
    except Exception as error:  # the asker's
        future.set_exception(error)
