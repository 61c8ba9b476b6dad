"""Contact with a cluster whose control plane may be away: nothing that is instructed gets lost."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar, cast

from foresail.live.cluster_plugin import ClusterPlugin, RunContext
from foresail.model import event as news
from foresail.model.adapter import Capabilities, ClusterAdapter, JobCommand, KnownJob
from foresail.model.changing_nodes import changed
from foresail.model.cluster import Cluster
from foresail.model.decision import Instruction, Start
from foresail.model.errors import ForesailError, InputError
from foresail.model.job import Job
from foresail.model.registry import blamed
from foresail.model.short_form import part_of
from foresail.model.words import CLUSTER_JOB_ID
from foresail.record.job_life import JobState
from foresail.record.state import State

_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
_MISTAKES: Final = (AttributeError, ImportError, NameError, NotImplementedError, TypeError)
"""Errors of code that no outage brings about, if it keeps failing in one place."""
_THE_CLUSTER: Final = "the cluster"
"""Name of who has drained a node, where no person did."""

_Answer = TypeVar("_Answer")
_PATIENCE_SECONDS: Final = 5.0
"""Longest wait of the daemon for a call to a remote cluster."""


class ClusterContact:
    """An adapter (``foresail.model.adapter``) that outlives failures of another one.

    Where a call fails, the cluster counts as unavailable: that is reported, what is instructed is
    kept, and both the call and what was kept are repeated until they succeed, which an adapter
    carries out once. So it does as long as a call to a remote one (``is_remote``) takes longer than
    some seconds; what that brings at last is reported. What is the input's fault
    (``ForesailError``) is raised as it was, and so is a mistake of an adapter from outside the
    house, as the fault of its file, once ``most_mistakes`` calls in a row have failed there.
    """

    def __init__(self, adapter: ClusterAdapter, most_mistakes: float = math.inf) -> None:
        self._adapter = adapter
        self._most_mistakes = most_mistakes
        self._mistakes: list[object] = []  # in a row, at one place
        self._to_resume: tuple[Sequence[Start], Sequence[KnownJob]] | None = None
        self._has_resumed = False
        self._unsent: deque[Instruction | JobCommand] = deque()
        self._news: list[news.Event] = []
        self._heard: list[news.Event] = []  # by the call that is made
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._retry_seconds: float | None = None
        self._calls: PatientCalls[Sequence[news.Event]] = PatientCalls()
        self.capabilities: Final[Capabilities] = adapter.capabilities
        self.wake_descriptor: Final[int | None] = adapter.wake_descriptor

    @property
    def cluster(self) -> Cluster:
        """Return the cluster as it was reported last."""
        return self._adapter.cluster

    @property
    def is_away(self) -> bool:
        """Return whether the last call has failed."""
        return self._retry_seconds is not None

    def has_resumed(self) -> bool:
        """Return, once, that what an earlier driver had started was found again."""
        has_resumed, self._has_resumed = self._has_resumed, False
        return has_resumed

    def history(self) -> Sequence[news.HistoryOutcome]:
        """Return what the cluster knows of earlier runs; nothing where it cannot say that now.

        What it says later is among its reports.
        """
        try:
            known = cast("Sequence[news.HistoryOutcome]", self._made(self._adapter.history))
            return [replace(each, job=_as_text(each.job, each.time)) for each in known]
        except ForesailError:
            raise
        except Exception:
            return ()

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Find again what an earlier driver knew, now or as soon as the cluster is back."""
        self._to_resume = running, known
        return self.reports(now)

    @staticmethod
    def undrained(state: State, reported: Iterable[news.Event], now: float) -> list[news.Event]:
        """Return what the cluster drained and uses again: it reports the rest as drained anew."""
        drained = {each.node for each in reported if isinstance(each, news.NodeDrained)}
        names = sorted(state.drained.keys() - drained)
        return [news.NodeResumed(now, each) for each in names if _drained_by_cluster(state, each)]

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        """Hand over an instruction, or keep it until the cluster is back."""
        self._unsent.append(instruction)
        if not self.is_away:
            self._try(self._send, now)

    def reports(self, now: float) -> Sequence[news.Event]:
        """Return what has happened, that the cluster went away or came back among it."""
        if self._retry_seconds is None or now >= self._retry_seconds:
            self._try(self._hear, now)
        found, self._news = self._news, []
        return found

    @property
    def next_seconds(self) -> float:
        """Return when there is something to report, or the cluster is tried again."""
        if self._news:
            return 0.0
        return self._adapter.next_seconds if self._retry_seconds is None else self._retry_seconds

    def close(self) -> None:
        """Let go of what the adapter holds open, unless it is about something."""
        if not self._calls.is_late:
            self._adapter.close()

    def _send(self, now: float) -> Sequence[news.Event]:
        while self._unsent:
            try:
                self._adapter.carry_out(self._unsent[0], now)
            except ForesailError:  # it cannot be carried out at all
                self._unsent.popleft()
                raise
            self._unsent.popleft()
        return ()

    def _hear(self, now: float) -> Sequence[news.Event]:
        if self._to_resume is not None:
            self._heard += self._adapter.resume(*self._to_resume, now)
            self._to_resume, self._has_resumed = None, True
        else:
            self._heard += self._adapter.reports(now)
        return self._send(now)

    def _made(self, call: Callable[[], Sequence[news.Event]]) -> Sequence[news.Event]:
        if not self.capabilities.is_remote:
            return call()
        if self._calls.late is not None:
            self._news += self._calls.made(call)
        return self._calls.made(call)

    def _try(self, call: Callable[[float], Sequence[news.Event]], now: float) -> None:
        try:
            self._made(partial(call, now))
        except ForesailError:
            raise
        except Exception as error:  # whatever the cluster's fault is, it is no policy's
            fault = error if isinstance(error, OSError) else blamed(error)
            place = getattr(fault, "source", None), getattr(fault, "line", None)
            same = self._mistakes if place in self._mistakes else []
            self._mistakes = [*same, place] if isinstance(error, _MISTAKES) else []
            if fault is not error and len(self._mistakes) >= self._most_mistakes:
                raise fault from error
            if not self.is_away:
                where = "" if None in place else f" ({Path(str(place[0])).name}, line {place[1]})"
                why = " ".join(f"{type(error).__name__}: {error}{where}".split())
                self._news.append(news.ClusterUnavailable(now, why))
            self._retry_seconds = now + self._pause_seconds
            self._pause_seconds = min(_LONGEST_PAUSE_SECONDS, 2.0 * self._pause_seconds)
        else:
            self._mistakes.clear()
            if self.is_away:
                self._news.insert(0, news.ClusterAvailable(now))
                self._retry_seconds, self._pause_seconds = None, _FIRST_PAUSE_SECONDS
        if self._calls.late is None:
            heard, self._heard = self._heard, []
            self._news += heard


class PatientCalls(Generic[_Answer]):
    """Calls to what is elsewhere, of which none is made before the last has come back."""

    def __init__(self) -> None:
        self.late: Future[_Answer] | None = None

    @property
    def is_late(self) -> bool:
        """Return whether the last call is still made."""
        return self.late is not None and not self.late.done()

    def made(self, call: Callable[[], _Answer]) -> _Answer:
        """Return what a call brings, or else the last, if that was late; raises ``TimeoutError``.

        A call is waited for some seconds, a late one not at all.
        """
        if self.late is None:
            self.late = Future()
            threading.Thread(target=_fulfil, args=(self.late, call), daemon=True).start()
            wait([self.late], _PATIENCE_SECONDS)
        if self.is_late:
            raise TimeoutError(f"it has not answered for {_PATIENCE_SECONDS:g} s")
        late, self.late = self.late, None
        return late.result()


def _fulfil(answer: Future[_Answer], call: Callable[[], _Answer]) -> None:
    """Make a call, and say what comes of it."""
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)


class FirstContact:
    """Contact with a cluster, by its short form, for one session after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._calls: PatientCalls[ClusterAdapter] = PatientCalls()
        self.capabilities: Final[Capabilities] = self._plugin().capabilities

    def connected(self, context: RunContext) -> tuple[ClusterAdapter, Cluster]:
        """Return an adapter, and the cluster as it is.

        Raises ``ConnectionError`` if that is away, or has not answered yet.
        """
        try:
            connect = partial(self._plugin().connect, context)
            adapter = self._calls.made(connect) if self.capabilities.is_remote else connect()
            if not isinstance(adapter.cluster, Cluster):
                raise TypeError(f"its cluster is {adapter.cluster!r}, not a Cluster")
            return adapter, adapter.cluster
        except ForesailError:
            raise
        except Exception as error:  # whatever it is, the cluster may be back in a while
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise ConnectionError(f"the cluster cannot be reached ({why})") from error

    def _plugin(self) -> ClusterPlugin:
        plugin: ClusterPlugin = part_of("cluster", self._text).build()
        return plugin


def what_can_be(
    events: Iterable[news.Event], state: State, note: Callable[[str], None]
) -> Iterator[news.Event]:
    """Yield those of a cluster's reports, in order, that can have happened; the rest is noted."""
    known, reported = _Known(state), [*events]
    begun = {each.job_id for each in reported if isinstance(each, news.Began)}
    drained = {each.node for each in reported if isinstance(each, news.NodeDrained)}
    for event in reported:
        if not known.can_be(event):
            note(f"the cluster reports what cannot have happened, which is left out: {event}")
        elif isinstance(event, news.Submitted | news.JobChanged):
            job = _as_text(event.job, event.time)
            has_begun = isinstance(event, news.Submitted) and job.job_id in begun
            yield replace(event, job=_of_nothing_more(job) if has_begun else job)
        elif isinstance(event, news.NodeDrained):
            yield replace(event, by=_THE_CLUSTER)
        elif isinstance(event, news.NodeResumed) and not (
            event.node in drained or _drained_by_cluster(state, event.node)
        ):
            continue  # it is a person's to resume
        else:
            yield event


def _drained_by_cluster(state: State, node: str) -> bool:
    """Return whether a node is drained, and it was the cluster that said so."""
    drained = state.drained.get(node)
    return drained is not None and drained.by == _THE_CLUSTER


def _as_text(job: Job, now: float) -> Job:
    """The job with names that can be written anywhere, submitted by now at the latest.

    As of the service's own jobs, its user goes with its name: predictors tell jobs apart by that.
    """
    name, user = (
        text and "".join(each if each.isprintable() else "?" for each in text)
        for text in (job.name, job.user)
    )
    if user and name and "/" not in user:
        user = f"{user}/{name}"
    return replace(job, name=name, user=user, submit_seconds=min(job.submit_seconds, now))


def _of_nothing_more(job: Job) -> Job:
    """The job without what it waited for: it has begun."""
    conditions = job.conditions
    return replace(job, after=(), conditions=conditions and replace(conditions, dependencies=()))


class _Known:
    """Jobs and nodes of a state after events that have not been taken yet."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._cluster = state.cluster
        self._attempts: dict[news.Unit, int] = {}
        self._new: set[str] = set()
        self._waiting: set[str] = set()

    def can_be(self, event: news.Event) -> bool:
        """Return whether an event can follow; if so, it has."""
        match event:
            case news.Ended(outcome=ending) | (news.NotStarted() as ending):
                if self._attempt(news.unit_of(ending)) != ending.attempt:
                    return False
                self._attempts[news.unit_of(ending)] = -ending.attempt
                if isinstance(ending, news.NotStarted) or ending.ended_because in news.REQUEUED:
                    self._waiting.add(ending.job_id)
            case news.Began(job_id=job_id, attempt=attempt, placement=placement):
                before = self._attempt(news.unit_of(event))
                waits = job_id in self._waiting or self._state.pending_job(job_id) is not None
                partitions = {each.name for each in self._cluster.partitions}
                if before != attempt and (before > 0 or -before >= attempt or not waits):
                    return False
                if not partitions.issuperset(name for name, _ in placement.tasks_by_partition):
                    return False
                if not self._nodes().issuperset(name for name, _ in placement.tasks_by_node):
                    return False
                self._attempts[news.unit_of(event)] = attempt
                self._waiting.discard(job_id)
            case news.Submitted(job=job):
                if self._is_known(job.job_id) or not CLUSTER_JOB_ID.fullmatch(job.job_id):
                    return False
                self._new.add(job.job_id)
                self._waiting.add(job.job_id)
            case news.Cancelled(job_id=job_id) | news.JobChanged(job_id=job_id):
                return self._is_known(job_id)
            case news.NodeAdded() | news.NodeChanged() | news.NodeRemoved():
                try:
                    self._cluster = changed(self._cluster, event)
                except InputError:
                    return False
            case news.NodeDown(node=name) | news.NodeUp(node=name) | news.Occupied(node=name):
                return name in self._nodes()
        return True

    def _attempt(self, unit: news.Unit) -> int:
        """Return which attempt runs; 0 for none, less than that for one that was the last."""
        running = self._state.running.get(unit)
        return self._attempts.get(unit, running.attempt if running is not None else 0)

    def _is_known(self, job_id: str) -> bool:
        is_there = self._state.stage_of(job_id) is not JobState.ABSENT
        return is_there or job_id in self._new

    def _nodes(self) -> set[str]:
        return {node.name for each in self._cluster.partitions for node in each.nodes}
