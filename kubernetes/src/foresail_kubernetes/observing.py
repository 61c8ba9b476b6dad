"""A Kubernetes cluster that is only looked at: what its API says happens to pods and nodes.

A pod is a job, but for those that belong to their node and those that were to run for ever before
anybody looked: these are load. Nothing is started, held or changed here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.changing_nodes import changes_between
from foresail.model.cluster import Cluster, Node, Partition, Placement, Resources
from foresail.model.decision import Instruction, Start
from foresail.model.errors import InputError
from foresail.model.job import Job, Stage
from foresail.model.whole_files import write_durably
from foresail.model.words import LEFT_TO, PLACE_IN_QUEUE
from foresail_kubernetes.adapters.kubernetes import OBSERVES
from foresail_kubernetes.mirror import Changes, Mirror
from foresail_kubernetes.quantities import at_least_something
from foresail_kubernetes.records import KubernetesNode, Pod, allows

PREFIX: Final = "kubernetes:"
_EVERY_SECONDS: Final = 0.5
_SEEN: Final = "kubernetes-seen"
_NOTES_SECONDS: Final = 600.0
"""A namespace whose wishes are not understood is spoken of once in so long."""
_UNKNOWN: Final = "unknown"
"""Reason that no job is left aside for: what the log has of it is looked at anew."""

_GONE: Final = "it has gone, and how it ended is not known"
_TAKEN_BACK: Final = frozenset({"Evicted", "Preempting", "Shutdown", "Terminated", "NodeLost"})
_NOT_TAKEN: Final = frozenset({"NodeAffinity", "UnexpectedAdmissionError", "NodeShutdown"})
"""Reasons of pods that failed by no fault of what they run; ``OutOf...`` is one too."""


@dataclass(slots=True)
class SeenPod:
    """A pod as it was reported, as a job."""

    job: Job
    uid: str
    runs: bool = False
    is_said: bool = False
    """True if it was reported that it runs."""
    aside: str = ""
    """Reason for which it is left to the cluster; empty if it is not."""
    start_seconds: float = 0.0
    attempts: int = 0
    """Number of its attempts, the one that runs among them."""
    ours: bool = False
    """True if the last was instructed."""
    chosen: str = ""
    """Node that was chosen for that."""


class KubernetesAdapter:
    """Reports what is new in the mirror (``foresail.model.adapter``); starts and changes nothing.

    ``folder`` keeps the newest time, by the API server's clock, of which all was reported.
    """

    capabilities: Capabilities = OBSERVES
    wake_descriptor: Final = None

    def __init__(self, mirror: Mirror, folder: Path, note: Callable[[str], None]) -> None:
        self._mirror = mirror
        self._note = note
        self._noted: dict[str, float] = {}
        self._file = folder / _SEEN
        self._seen_seconds = 0.0
        self._written_seconds = 0.0
        self._nodes = mirror.all_nodes()
        if not self._nodes:
            mirror.close()
            raise ConnectionError("the cluster has no nodes")
        self._places = Places(self._nodes)
        self.cluster = self._places.cluster
        self.next_seconds = 0.0
        self._entries: dict[str, SeenPod] = {}
        """Jobs that have not ended, by the id that pods have."""
        self._ids: dict[str, str] = {}
        """Those ids by uid."""
        self._done: set[str] = set()
        """Uids of pods that have ended, or never were jobs, as long as they are there."""
        self._loads: dict[str, dict[str, Resources]] = {}
        """Load of each node, by uid."""
        self._occupied: dict[str, Resources] = {}
        self._held: dict[str, dict[str, Pod]] = {}
        """Pods that hold room of each node, by uid, those among them that are to."""
        self._drained: set[str] = set()
        self._later: dict[str, Pod] = {}
        """Pods that are bound to nodes that are not known yet."""

    def history(self) -> Sequence[news.HistoryOutcome]:
        """Return what has ended and is there still."""
        now = time.time()
        found = []
        for pod in self._mirror.all_pods().values():
            because, _ = _because(pod)
            start, end = pod.bound_seconds, pod.end_seconds
            if pod.has_ended and not pod.is_of_node and start and end and start <= end <= now:
                job = self._job(pod, now)
                outcome = news.Outcome(job.job_id, start, end, because, pod.exit_code)
                found.append(news.HistoryOutcome(end, job, outcome))
        return sorted(found, key=lambda each: each.time)

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Report what is new to the log, what runs, and on which nodes nothing starts."""
        self._require_sight()
        self._mirror.take()
        is_first = True
        with suppress(OSError, ValueError):
            self._seen_seconds = self._written_seconds = float(self._file.read_text())
            is_first = False
        self._ids, self._done, self._later = {}, set(), {}
        self._loads, self._occupied, self._held, self._drained = {}, {}, {}, set()
        self._entries = {
            each.job.job_id.removeprefix(PREFIX): SeenPod(
                each.job,
                "",
                each.runs,
                aside="" if each.runs else _UNKNOWN,
                attempts=each.attempts,
            )
            for each in known
        }
        self._instructed(running, now)
        pods, self._nodes = self._mirror.all_pods(), self._mirror.all_nodes()
        self._places = Places(self._nodes)
        self.cluster = self._places.cluster  # the driver sees what is another than in the log
        for uid, pod in pods.items():
            is_old = is_first or pod.created_seconds < self._seen_seconds
            if pod.job_id not in self._entries and pod.has_ended and is_old:
                self._done.add(uid)
            elif pod.job_id in self._entries:
                self._entries[pod.job_id].uid = uid
        lost = [each for each in self._entries.values() if each.uid not in pods]
        events = self._news(Changes(pods, {}, self._nodes), now)
        for uid, pod in self._later.items():  # its node has gone, and so it has to the driver
            if self._entries.pop(pod.job_id, None) is not None:
                self._done.add(uid)
        self._later = {uid: pod for uid, pod in self._later.items() if uid not in self._done}
        return [*events, *(event for each in lost for event in self._left(each, None, now))]

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:  # noqa: ARG002
        """Refuse it; raises ``InputError``."""
        self.capabilities.require(instruction)
        raise InputError("nothing is changed here", value=type(instruction).__name__)

    def reports(self, now: float) -> Sequence[news.Event]:
        """Return what is new; raises ``ConnectionError`` while the API server is away."""
        self._require_sight()
        if self._seen_seconds > self._written_seconds:  # the log has what was reported then
            write_durably(self._file, f"{self._seen_seconds}".encode())
            self._written_seconds = self._seen_seconds
        self.next_seconds = now + _EVERY_SECONDS
        return self._news(self._mirror.take(), now)

    def close(self) -> None:
        """End the watches."""
        self._mirror.close()

    def _require_sight(self) -> None:
        problem = self._mirror.problem
        if problem:
            raise ConnectionError(problem)

    def _instructed(self, running: Sequence[Start], now: float) -> None:
        """Take note of what had been instructed to start: nothing is."""

    def _why_aside(self, pod: Pod) -> str:
        """Return why a pod that waits is left to the cluster; empty if it is not."""
        return pod.aside or self._places.of(pod)[1]

    def _news(self, changes: Changes, now: float) -> list[news.Event]:
        """Return what changes are to Foresail: ends before what nodes do, all else after that."""
        pods = {**self._later, **changes.pods}
        self._later = {}
        ends: list[news.Event] = []
        rest: list[news.Event] = []
        for uid, pod in changes.gone.items():
            pods.pop(uid, None)
            ends += self._of_pod(pod, now, is_gone=True)
        for uid in [uid for uid, pod in pods.items() if pod.has_ended]:
            ends += self._of_pod(pods.pop(uid), now)
        if changes.nodes is not None:
            rest += self._of_nodes(changes.nodes, now)
            pods = {**self._waiting(), **pods}
        for pod in sorted(pods.values(), key=lambda each: (each.created_seconds, each.uid)):
            rest += self._of_pod(pod, now)
        return [*ends, *rest, *self._of_loads(now)]

    def _waiting(self) -> dict[str, Pod]:
        """Return pods that wait: they may go to other places now."""
        there = self._mirror.all_pods()
        waiting = (each.uid for each in self._entries.values() if not each.runs)
        return {uid: there[uid] for uid in waiting if uid in there}

    def _of_nodes(self, nodes: Mapping[str, KubernetesNode], now: float) -> Iterator[news.Event]:
        """Yield what is new of nodes; those that go are there until nothing is bound to them."""
        held = {name for name, pods in self._held.items() if pods}
        kept = {name: node for name, node in self._nodes.items() if name in held - nodes.keys()}
        self._nodes = {**nodes, **kept}
        self._places = Places(self._nodes)
        there = self._places.cluster
        yield from changes_between(self.cluster, there, now)
        self.cluster = there
        drained = {name for name, node in self._nodes.items() if not node.is_usable} | kept.keys()
        for name in sorted((self._drained - drained) & self._nodes.keys()):
            yield news.NodeResumed(now, name)
        for name in sorted(drained - self._drained):
            yield news.NodeDrained(now, name)
        self._drained = drained

    def _of_pod(self, pod: Pod, now: float, *, is_gone: bool = False) -> Iterator[news.Event]:
        """Yield what is new of a pod."""
        uid, is_over = pod.uid, is_gone or pod.has_ended
        self._seen_seconds = max(self._seen_seconds, pod.created_seconds)
        if is_over:
            self._held.get(pod.node, {}).pop(uid, None)
        elif pod.node:
            self._held.setdefault(pod.node, {})[uid] = pod
        if uid in self._done:
            self._load(pod, is_there=not is_over)
            if is_gone:
                self._done.discard(uid)
            return
        entry = self._entries.get(pod.job_id)
        is_load = entry is None and (pod.is_of_node or (pod.is_service and bool(pod.node)))
        if is_load or (entry is None and is_gone and not pod.node):
            if not is_gone:
                self._done.add(uid)
            self._load(pod, is_there=not is_over)
            return
        if pod.node and pod.node not in self._nodes and not is_over:
            self._later[uid] = pod
            return
        yield from self._of_job(pod, entry, now)
        if is_over:
            yield from self._left(self._entries[pod.job_id], pod, now)
            if not is_gone:
                self._done.add(uid)

    def _of_job(self, pod: Pod, entry: SeenPod | None, now: float) -> Iterator[news.Event]:
        """Yield that a pod has come, is another than it was, is left aside, or has begun."""
        job = self._job(pod, now)
        if entry is None:
            entry = self._entries[pod.job_id] = SeenPod(job, pod.uid)
            yield news.Submitted(now, job)
            self._say(pod, now)
        else:
            entry.uid = pod.uid
            yield from _changed(entry, job, now)
        if entry.runs or pod.node:
            yield from self._of_start(pod, entry, now)
            return
        why = self._why_aside(pod)
        if why != entry.aside:
            if entry.aside:
                yield news.Released(now, job.job_id)
            if why:
                yield news.Held(now, job.job_id, LEFT_TO + why)
            entry.aside = why

    def _of_start(self, pod: Pod, entry: SeenPod, now: float) -> Iterator[news.Event]:
        """Yield that a pod has begun, if that was not said."""
        home = self._places.pool_of(pod.node)
        if entry.is_said or home is None:
            return
        if entry.ours and entry.chosen != pod.node:
            entry.runs = entry.ours = False
            why = f"another scheduler has bound it to {pod.node}"
            yield news.NotStarted(now, entry.job.job_id, entry.attempts, why, 0.0)
        entry.attempts += not entry.runs
        entry.runs = entry.is_said = True
        entry.aside = ""
        entry.start_seconds = min(now, max(pod.bound_seconds or now, pod.created_seconds))
        placement = Placement(((home, 1),), ((pod.node, 1),))
        start = entry.start_seconds
        ids = entry.job.job_id, entry.attempts
        yield news.Began(now, *ids, placement, start, ours=entry.ours)

    def _left(self, entry: SeenPod, pod: Pod | None, now: float) -> Iterator[news.Event]:
        """Yield that a job has ended, in whichever way, and forget it."""
        self._entries.pop(entry.job.job_id.removeprefix(PREFIX), None)
        if not entry.runs:
            yield news.Cancelled(now, entry.job.job_id)
            return
        because, reason = (news.EndedBecause.CANCELLED, _GONE) if pod is None else _because(pod)
        start, end = entry.start_seconds, now
        if pod is not None and pod.end_seconds is not None and pod.has_ended:
            end = min(now, max(start, pod.end_seconds))
        code = pod.exit_code if pod is not None and pod.has_ended else None
        outcome = news.Outcome(
            entry.job.job_id, min(start or end, end), end, because, code, entry.attempts
        )
        yield news.Ended(now, replace(outcome, reason=reason))

    def _load(self, pod: Pod, *, is_there: bool) -> None:
        """Count a pod among the load of its node, or no more."""
        loads = self._loads.setdefault(pod.node, {})
        if is_there and pod.node:
            loads[pod.uid] = pod.request
        else:
            loads.pop(pod.uid, None)

    def _of_loads(self, now: float) -> Iterator[news.Event]:
        """Yield what of each node is held by what is no job."""
        for name, loads in self._loads.items():
            if name not in self._nodes:
                self._occupied.pop(name, None)
                continue
            total = sum(loads.values(), Resources())
            if total != self._occupied.get(name, Resources()):
                self._occupied[name] = total
                yield news.Occupied(now, name, total)

    def _job(self, pod: Pod, now: float) -> Job:
        partition, _ = self._places.of(pod)
        return Job(
            PREFIX + pod.job_id,
            min(pod.created_seconds, now),
            (Stage(1, at_least_something(pod.request)),),
            pod.limit_seconds,
            pod.namespace,
            queue=pod.queue or None,
            partition=partition,
            name=pod.application,
            value=pod.value,
            attributes={PLACE_IN_QUEUE: repr(pod.place)},
        )

    def _say(self, pod: Pod, now: float) -> None:
        """Say which wish of a pod does not count, not too often."""
        if pod.refused and now - self._noted.get(pod.namespace, 0.0) > _NOTES_SECONDS:
            self._noted[pod.namespace] = now
            self._note(f"a wish of {PREFIX}{pod.job_id} does not count: {pod.refused}")


class Places:
    """Pools of nodes, and where pods may go."""

    def __init__(self, nodes: Mapping[str, KubernetesNode]) -> None:
        self._pools: dict[str, list[KubernetesNode]] = {}
        for name in sorted(nodes):
            self._pools.setdefault(nodes[name].pool, []).append(nodes[name])
        self._homes = {name: node.pool for name, node in nodes.items()}
        self._found = lru_cache(maxsize=1024)(self._places)
        self.cluster = Cluster(
            tuple(
                Partition(
                    pool,
                    sum((each.total for each in some), Resources()),
                    tuple(Node(each.name, each.total) for each in some),
                )
                for pool, some in sorted(self._pools.items())
            )
        )

    def pool_of(self, node: str) -> str | None:
        """Return the pool of a node, if that is known."""
        return self._homes.get(node)

    def of(self, pod: Pod) -> tuple[str | None, str]:
        """Return the pools that a pod may go to, None for all, and why that cannot be said."""
        return self._found(_Wishes(pod))

    def _places(self, wishes: _Wishes) -> tuple[str | None, str]:
        names, part = [], ""
        for pool, some in self._pools.items():
            count = sum(allows(wishes.pod, each) for each in some)
            if count == len(some):
                names.append(pool)
            elif count:
                part = part or f"may use some of the nodes of {pool} only"
        if part or not names:
            return None, part or "may run on no node that there is"
        return (None if len(names) == len(self._pools) else ",".join(sorted(names))), ""


class _Wishes:
    """Wishes of a pod for its place, alike for pods that have the same."""

    __slots__ = ("_key", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._key = pod.selector, pod.tolerations

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wishes) and self._key == other._key


def _because(pod: Pod) -> tuple[news.EndedBecause, str]:
    """Return how a pod ended, and why where that is not plain."""
    if pod.phase == "Succeeded":
        return news.EndedBecause.COMPLETED, ""
    if pod.phase != "Failed":
        return news.EndedBecause.CANCELLED, "it was deleted"
    if pod.reason == "DeadlineExceeded":
        return news.EndedBecause.LIMIT, ""
    if pod.reason in _TAKEN_BACK:
        return news.EndedBecause.CANCELLED, f"it was taken from its node ({pod.reason})"
    if pod.reason in _NOT_TAKEN or pod.reason.startswith("OutOf"):
        return news.EndedBecause.CANCELLED, f"its node did not take it ({pod.reason[:60]})"
    return news.EndedBecause.FAILED, ""


def _changed(entry: SeenPod, job: Job, now: float) -> Iterator[news.JobChanged]:
    """Yield that a job is another now, if it is."""
    before = entry.job
    kept = ["submit_seconds", "user", "conditions", "name"]
    kept += ["stages", "partition", "value"] * entry.runs
    job = replace(job, **{name: getattr(before, name) for name in kept})
    if job != before:
        entry.job = job
        yield news.JobChanged(now, job)
