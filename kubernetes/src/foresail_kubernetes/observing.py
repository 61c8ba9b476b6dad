"""A Kubernetes cluster that is only looked at: what its API says happens to pods and nodes.

A pod is a job, but for those that belong to their node and those that were to run for ever before
anybody looked: these are load. Nothing is started, held or changed here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.changing_nodes import changes_between
from foresail.model.decision import Instruction, Start
from foresail.model.errors import InputError
from foresail.model.job import Job, Stage
from foresail.model.whole_files import write_durably
from foresail.model.words import LEFT_TO, PLACE_IN_QUEUE
from foresail_kubernetes.adapters.kubernetes import OBSERVES
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.groups import bundled, stem_of
from foresail_kubernetes.mirror import Changes, Mirror
from foresail_kubernetes.places import Loads, Places, placement
from foresail_kubernetes.quantities import at_least_something
from foresail_kubernetes.records import KubernetesNode, Pod
from foresail_kubernetes.seen import Members, SeenJob, how_ended, rank

PREFIX: Final = "kubernetes:"
_EVERY_SECONDS: Final = 0.5
_SEEN: Final = "kubernetes-seen"
NOTES_SECONDS: Final = 600.0
"""A namespace whose wishes are not understood is spoken of once in so long."""
_UNKNOWN: Final = "unknown"
"""Reason that no job is left aside for: what the log has of it is looked at anew."""

_VACANT: Final = "its pod was stopped, and its owner has not created another"
_VACANT_SECONDS: Final = 60.0
_GONE: Final = "it has gone, and how it ended is not known"


class KubernetesAdapter:
    """Reports what is new in the mirror (``foresail.model.adapter``); starts and changes nothing.

    ``folder`` keeps the newest time, by the API server's clock, of which all was reported.
    """

    capabilities: Capabilities = OBSERVES
    wake_descriptor: Final = None

    def __init__(
        self, mirror: Mirror, folder: Path, note: Callable[[str], None], caps: Caps
    ) -> None:
        self._mirror = mirror
        self._caps = caps
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
        self._entries: dict[str, SeenJob] = {}
        """Jobs that have not ended, by their ids without the name of the cluster."""
        self._least: Mapping[str, int] = mirror.all_groups()
        """Number of pods that start together, by namespace and name of the group."""
        self._open: dict[str, str] = {}
        """Id of the newest job of each group."""
        self._members = Members(folder)
        self._vacant: list[tuple[str, str, float]] = []
        """Jobs that wait for pods of their owners, each until when."""
        self._done: set[str] = set()
        """Uids of pods that have ended, or never were jobs, as long as they are there."""
        self._loads = Loads()
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
            because, _ = how_ended(pod)
            start, end = pod.bound_seconds, pod.end_seconds
            if pod.has_ended and not pod.is_of_node and start and end and start <= end <= now:
                job = self._job(SeenJob(pod.job_id, pods={pod.uid: pod}), now)
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
        self._done, self._later, self._open, self._vacant = set(), {}, {}, []
        self._loads, self._held, self._drained = Loads(), {}, set()
        self._entries = {
            job_id: SeenJob(
                job_id,
                each.job,
                runs=each.runs,
                aside="" if each.runs else _UNKNOWN,
                attempts=each.attempts,
            )
            for each in known
            for job_id in (each.job.job_id.removeprefix(PREFIX),)
        }
        pods, self._nodes, self._least = (
            self._mirror.all_pods(),
            self._mirror.all_nodes(),
            self._mirror.all_groups(),
        )
        self._members.read(pods)
        self._instructed(running, now)
        self._places = Places(self._nodes)
        self.cluster = self._places.cluster  # the driver sees what is another than in the log
        found = set[str]()
        for uid, pod in pods.items():
            entry = self._recalled(pod)
            is_old = is_first or pod.created_seconds < self._seen_seconds
            if entry is not None:
                found.add(entry.job_id)
            elif pod.has_ended and is_old:
                self._done.add(uid)
        lost = [each for job_id, each in self._entries.items() if job_id not in found]
        events = self._news(Changes(pods, {}, self._nodes), now)
        for pod in self._later.values():  # its node has gone, and so it has to the driver
            entry = self._entry(pod)
            if entry is not None and self._entries.pop(entry.job_id, None) is not None:
                self._done |= {pod.uid, *entry.pods}
        self._later = {uid: pod for uid, pod in self._later.items() if uid not in self._done}
        return [*events, *(event for each in lost for event in self._left(each, now))]

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:  # noqa: ARG002
        """Refuse it; raises ``InputError``."""
        self.capabilities.require(instruction)
        raise InputError("nothing is changed here", value=type(instruction).__name__)

    def reports(self, now: float) -> list[news.Event]:
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

    def _why_aside(self, entry: SeenJob) -> str:
        """Return why a job that waits is left to the cluster; empty if it is not."""
        pods = entry.present
        asides = [self._aside(each) for each in pods]
        why = next(filter(None, asides), "") or self._places.of(pods)[1]
        if why or not entry.group:
            return why
        count, name = self._count(entry), entry.group.partition("/")[2]
        if count is None:
            said = f"its group {name} says nowhere how many pods it has"
            return f"{said}; {self._mirror.unread}" if self._mirror.unread else said
        if len(pods) < count:
            return f"{count - len(pods)} of the {count} pods of its group {name} are not there"
        return "it is bound in part" if any(each.node for each in pods) else ""

    def _aside(self, pod: Pod) -> str:
        """Return why a pod is left to the cluster by itself; empty if it is not."""
        return pod.aside

    def _count(self, entry: SeenJob) -> int | None:
        """Return how many pods a group is to have at least, if that is known."""
        said = [each.group_count for each in (*entry.pods.values(), *entry.over.values())]
        counts = [*filter(None, (*said, self._least.get(entry.group)))]
        return max(counts) if counts else None

    def _group(self, pod: Pod) -> str:
        """Return the group that a pod starts with; empty if it starts by itself."""
        name = f"{pod.namespace}/{pod.group}"
        is_alone = not pod.group or pod.is_of_node
        return "" if is_alone or (pod.group_count or self._least.get(name)) == 1 else name

    def _entry(self, pod: Pod) -> SeenJob | None:
        """Return the job of a pod, if there is one."""
        return self._entries.get(self._members.jobs.get(pod.uid, pod.job_id))

    def _recalled(self, pod: Pod) -> SeenJob | None:
        """Return the job of a pod as the log has it, with its group."""
        entry = self._entry(pod)
        if entry is not None and self._members.jobs.get(pod.uid, pod.job_id) != pod.job_id:
            entry.group = self._group(pod)
            self._open[entry.group] = entry.job_id
        return entry

    def _joined(self, pod: Pod, going: Container[str] = ()) -> SeenJob:
        """Return the job that a pod belongs to from now on.

        That of its group, unless this runs, or has all its pods and is about to; a new one where
        all pods of that are ``going``.
        """
        group, job_id = self._group(pod), pod.job_id
        if group:
            entry = self._entries.get(self._open.get(group, ""))
            stays = entry and (
                not entry.is_said
                or (not entry.stops and any(each.uid not in going for each in entry.present))
            )
            if entry is None or not stays:
                stem = stem_of(pod.namespace, pod.group)
                job_id = self._open[group] = f"{stem}+{pod.uid[:8]}"
            elif not entry.is_said and (not entry.runs or self._is_short(entry)):
                job_id = entry.job_id
            else:
                group = ""
            self._members.add(pod.uid, job_id)
        elif found := next((each for each in self._vacant if each[0] == pod.owner), None):
            self._vacant.remove(found)
            job_id = found[1]
            self._members.add(pod.uid, job_id)
        return self._entries.setdefault(job_id, SeenJob(job_id, group=group))

    def _is_short(self, entry: SeenJob) -> bool:
        return len(entry.present) + len(entry.over) < (self._count(entry) or 0)

    def _news(self, changes: Changes, now: float) -> list[news.Event]:
        """Return what changes are to Foresail: ends before what nodes do, all else after that."""
        pods = {**self._later, **changes.pods}
        self._later = {}
        for uid in changes.gone:
            pods.pop(uid, None)
        going = changes.gone.keys() | {uid for uid, pod in pods.items() if pod.has_ended}
        for uid, pod in pods.items():  # none of a group has ended before all of it is known
            if pod.group and not pod.has_ended and uid not in self._done and self._group(pod):
                (self._entry(pod) or self._joined(pod, going)).pods.setdefault(uid, pod)
        touched: dict[str, SeenJob] = {}
        for pod in changes.gone.values():
            self._see(pod, touched, is_gone=True)
        for uid in [uid for uid, pod in pods.items() if pod.has_ended]:
            self._see(pods.pop(uid), touched)
        ends = self._of_jobs([each for each in touched.values() if not each.pods], now)
        rest: list[news.Event] = []
        if changes.groups is not None:
            self._least = changes.groups
        if changes.nodes is not None:
            rest += self._of_nodes(changes.nodes, now)
        if changes.nodes is not None or changes.groups is not None:  # what waits may be elsewhere
            touched |= {name: each for name, each in self._entries.items() if not each.runs}
        for pod in pods.values():
            self._see(pod, touched)
        some = [each for each in touched.values() if each.pods]
        rest += self._of_jobs(sorted(some, key=lambda each: each.age), now)
        rest += self._give_up_vacant(now)
        self._members.write()
        return [*ends, *rest, *self._loads.events(self._nodes, now)]

    def _of_jobs(self, entries: Sequence[SeenJob], now: float) -> list[news.Event]:
        return [event for each in entries for event in self._of_job(each, now)]

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

    def _see(self, pod: Pod, touched: dict[str, SeenJob], *, is_gone: bool = False) -> None:
        """Take note of a pod, and of its job as one that was touched."""
        uid, is_over = pod.uid, is_gone or pod.has_ended
        self._seen_seconds = max(self._seen_seconds, pod.created_seconds)
        if is_over:
            self._held.get(pod.node, {}).pop(uid, None)
        elif pod.node:
            self._held.setdefault(pod.node, {})[uid] = pod
        entry = None if uid in self._done else self._entry(pod)
        is_service = pod.is_service and bool(pod.node) and not self._group(pod)
        is_load = entry is None and (pod.is_of_node or is_service)
        if uid in self._done or is_load or (entry is None and is_gone and not pod.node):
            self._loads.count(pod, is_there=not is_over)
            if is_gone:
                self._done.discard(uid)
                self._members.remove(uid)
            else:
                self._done.add(uid)
            return
        if pod.node and pod.node not in self._nodes and not is_over:
            self._later[uid] = pod
            return
        if entry is None:
            entry = self._joined(pod)
        touched[entry.job_id] = entry
        if not is_over:
            entry.pods[uid] = pod
            return
        entry.pods.pop(uid, None)
        is_alone = not entry.group and (entry.runs or pod.node)
        if entry.is_said or is_alone or (pod.node and pod.has_ended):
            entry.over[uid] = pod  # else it is one that the group lacks
        if entry.group:
            self._loads.count(pod, is_there=False)
        if is_gone:
            self._members.remove(uid)
        else:
            self._done.add(uid)

    def _of_job(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job has come, is another than it was, is left aside, has begun or ended."""
        before = entry.job
        if entry.pods or entry.over:
            job = self._job(entry, now)
            if before is None:
                entry.job = job
                yield news.Submitted(now, job)
            else:
                yield from _changed(entry, before, job, now)
            self._say([*entry.pods.values()], now)
        if not entry.is_said and self._is_whole(entry):
            yield from self._of_start(entry, now)
        if entry.group:
            self._count_load(entry)
        if not entry.pods:
            yield from self._left(entry, now)
        elif not entry.runs:
            yield from self._of_aside(entry, now)

    def _is_whole(self, entry: SeenJob) -> bool:
        """Return whether a job has begun: none of its pods is unbound, and none is missing."""
        if not entry.group:
            return any(each.node for each in (*entry.pods.values(), *entry.over.values()))
        pods = [*entry.present, *entry.over.values()]
        return bool(pods) and all(each.node for each in pods) and not self._is_short(entry)

    def _of_aside(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job that waits is left to the cluster, or is no more."""
        why, job_id = self._why_aside(entry), PREFIX + entry.job_id
        if why == entry.aside:
            return
        if entry.aside:
            yield news.Released(now, job_id)
        if why:
            yield news.Held(now, job_id, LEFT_TO + why)
        entry.aside = why

    def _of_start(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job has begun, where that is on nodes that are known."""
        there = {uid: each for uid, each in entry.pods.items() if each.node}
        there |= {uid: e for uid, e in entry.over.items() if self._places.pool_of(e.node)}
        homes = {uid: self._places.pool_of(each.node) for uid, each in there.items()}
        placed = placement(entry.bundles, there, homes)
        if None in homes.values() or placed is None:
            return
        job_id = PREFIX + entry.job_id
        others = [
            each for uid, each in there.items() if entry.chosen.get(uid, each.node) != each.node
        ]
        if entry.ours and others:
            entry.runs = entry.ours = False
            why = f"another scheduler has bound it to {others[0].node}"
            yield news.NotStarted(now, job_id, entry.attempts, why, 0.0)
        entry.attempts += not entry.runs
        entry.runs = entry.is_said = True
        entry.aside = ""
        times = [max(each.bound_seconds or now, each.created_seconds) for each in there.values()]
        start = entry.start_seconds = min(now, max(times))
        yield news.Began(now, job_id, entry.attempts, placed, start, ours=entry.ours)

    def _left(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job has ended, in whichever way, and forget it.

        A group has failed if one of its pods has, and completed if none has and one has completed.
        """
        self._entries.pop(entry.job_id, None)
        job_id = PREFIX + entry.job_id
        if not entry.runs:
            if entry.job is not None:
                yield news.Cancelled(now, job_id)
            return
        ends = sorted((how_ended(each) for each in entry.over.values()), key=rank)
        because, reason = ends[0] if ends else (news.EndedBecause.CANCELLED, _GONE)
        is_stopped = entry.stops and because is news.EndedBecause.CANCELLED
        if is_stopped:
            because, reason = news.EndedBecause.PREEMPTED, "it was evicted"
        over = [each for each in entry.over.values() if each.has_ended]
        start, end = entry.start_seconds, now
        times = [each.end_seconds for each in over if each.end_seconds is not None]
        if times and len(times) == len(entry.over):
            end = min(now, max(start, *times))
        codes = [each.exit_code for each in over if each.exit_code is not None]
        outcome = news.Outcome(
            job_id,
            min(start or end, end),
            end,
            because,
            max(codes, default=None),
            entry.attempts,
            reason=reason,
        )
        yield news.Ended(now, outcome)
        if is_stopped:
            yield from self._vacate(entry, now)

    def _vacate(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a stopped job waits for its owner to create another pod, or is none any more.

        A group is none: its owner creates another.
        """
        job_id, owners = PREFIX + entry.job_id, [each.owner for each in entry.over.values()]
        if entry.group or not any(owners):
            yield news.Cancelled(now, job_id)
            return
        self._vacant.append((owners[0], entry.job_id, now + _VACANT_SECONDS))
        self._entries[entry.job_id] = SeenJob(
            entry.job_id, entry.job, attempts=entry.attempts, aside=_VACANT
        )
        yield news.Held(now, job_id, LEFT_TO + _VACANT)

    def _give_up_vacant(self, now: float) -> Iterator[news.Event]:
        """Yield that jobs whose owners create no pod in the place of one that was stopped end."""
        while self._vacant and self._vacant[0][2] <= now:
            _, job_id, _ = self._vacant.pop(0)
            yield from self._left(self._entries[job_id], now)

    def _count_load(self, entry: SeenJob) -> None:
        """Count what is bound of a group that has not begun among the load of nodes."""
        for each in entry.pods.values():
            if each.node:
                self._loads.count(each, is_there=not entry.runs)

    def _job(self, entry: SeenJob, now: float) -> Job:
        """Return the job of some pods; what runs keeps its bundles."""
        pods = [*entry.pods.values(), *entry.over.values()]
        pods.sort(key=lambda each: (each.created_seconds, each.uid))
        first, request = pods[0], pods[0].request
        if not entry.runs or not entry.bundles:
            requests = {each.uid: each.request for each in pods}
            request, entry.bundles = bundled(requests, self._places.rooms)
        limits = [each.limit_seconds for each in pods]
        values = [value for each in pods if (value := self._caps.value(each)) is not None]
        return Job(
            PREFIX + entry.job_id,
            min(first.created_seconds, now),
            (Stage(len(entry.bundles), at_least_something(request)),),
            max((each for each in limits if each), default=None) if None not in limits else None,
            self._caps.user(first),
            queue=first.queue or None,
            partition=self._places.of(pods)[0],
            name=first.application,
            value=min(values, key=lambda each: each.deadline_seconds, default=None),
            attributes={PLACE_IN_QUEUE: repr(min(each.place for each in pods))},
        )

    def _say(self, pods: Sequence[Pod], now: float) -> None:
        """Say which wish of a pod does not count, not too often."""
        for pod in pods:
            if pod.refused and now - self._noted.get(pod.namespace, 0.0) > NOTES_SECONDS:
                self._noted[pod.namespace] = now
                self._note(f"a wish of {PREFIX}{pod.job_id} does not count: {pod.refused}")


def _changed(entry: SeenJob, before: Job, job: Job, now: float) -> Iterator[news.JobChanged]:
    """Yield that a job is another now, if it is."""
    kept = ["submit_seconds", "user", "conditions", "name"]
    kept += ["stages", "partition", "value"] * entry.runs
    job = replace(job, **{name: getattr(before, name) for name in kept})
    if job != before:
        entry.job = job
        yield news.JobChanged(now, job)
