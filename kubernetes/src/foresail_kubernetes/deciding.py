"""A Kubernetes cluster whose pods of one scheduler name are bound from here, by a policy.

A start counts as it is instructed, and is confirmed by the watch; what is not bound waits again.
Pods of other schedulers are left to these, and hold their room once they are bound. A group starts
whole: one that is bound in part is completed, or else evicted. Pods that wait for a gate of that
name are another scheduler's once it is opened, which is their start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.decision import Instruction, Preempt, Start
from foresail.model.job import Job
from foresail_kubernetes.adapters.kubernetes import DECIDES
from foresail_kubernetes.binding import Binder, NotBound
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.observing import NOTES_SECONDS, PREFIX, KubernetesAdapter
from foresail_kubernetes.quantities import added
from foresail_kubernetes.records import KubernetesNode, Pod, allows
from foresail_kubernetes.seen import SeenJob

_EVERY_SECONDS: Final = 0.2
_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
"""A pod that was not bound is tried again after so long, and longer each time."""
_GIVING_UP_SECONDS: Final = 3.0
_HALF_SECONDS: Final = 4.0
"""Time for which room, or a pod, is waited for, to complete a group that is bound in part."""
_EVICT_AGAIN_SECONDS: Final = 5.0


class DecidingKubernetes(KubernetesAdapter):
    """Binds the pods that name ``scheduler``, as it is instructed, while it holds a lease.

    While another replica holds that, the cluster is away.
    """

    capabilities: Capabilities = DECIDES

    def __init__(
        self,
        mirror: Mirror,
        folder: Path,
        note: Callable[[str], None],
        caps: Caps,
        scheduler: str,
        lease: Lease,
    ) -> None:
        super().__init__(mirror, folder, note, caps)
        self._scheduler = scheduler
        self._gate = f"foresail.io/{scheduler}"
        self._lease = lease
        assert mirror.connection is not None
        self._binder = Binder(mirror.connection, lease, mirror.served)
        self._to_evict: dict[str, float] = {}
        """Times to ask again for the evictions of pods, by uid."""
        self._refusals: dict[str, int] = {}
        """Number of times in a row that a job was not bound."""
        mirror.call(lease.keep())

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Report what is new to the log; bind what was to start and is bound nowhere."""
        events = super().resume(running, known, now)
        for each in running:
            entry = self._entries.get(each.job_id.removeprefix(PREFIX))
            if entry is not None and entry.ours and not entry.is_said:
                self._bind_all(entry)
        return events

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:  # noqa: ARG002
        """Bind pods, once for each attempt, or evict them.

        Raises ``ConnectionError`` without the lease.
        """
        self.capabilities.require(instruction)
        if not isinstance(instruction, Start | Preempt):
            return
        self._require_sight()
        entry = self._entries.get(instruction.job_id.removeprefix(PREFIX))
        if entry is None:
            return
        if isinstance(instruction, Preempt):
            if entry.runs and entry.attempts == instruction.attempt:
                entry.stops = True
                self._to_evict |= dict.fromkeys(entry.pods, 0.0)
            return
        if instruction.attempt <= entry.attempts:
            return
        entry.attempts, entry.runs, entry.ours = instruction.attempt, True, True
        entry.stops, entry.why = False, ""
        self._spread(entry, instruction)
        self.next_seconds = 0.0
        self._bind_all(entry)

    def reports(self, now: float) -> list[news.Event]:
        """Return what is new, then what was not bound; see to what is bound in part."""
        events = super().reports(now)
        self.next_seconds = now + _EVERY_SECONDS
        refused = self._take_refusals()
        halves = [each for each in self._entries.values() if each.group and not each.is_said]
        for each in {each.job_id: each for each in (*refused, *halves)}.values():
            events += self._of_start_in_part(each, now)
        self._evict(now)
        return events

    def close(self) -> None:
        """Let another replica decide, and end the watches."""
        try:
            self._mirror.call(self._lease.give_up()).result(_GIVING_UP_SECONDS)
        except Exception as error:  # it ends by itself
            self._note(f"the lease was not given up: {error}")
        super().close()

    def _require_sight(self) -> None:
        super()._require_sight()
        if not self._lease.is_held:
            raise ConnectionError(self._lease.problem or "the lease was not renewed in time")

    def _why_aside(self, entry: SeenJob) -> str:
        for each in entry.pods.values():
            if each.scheduler != self._scheduler and not self._is_gated(each):
                return f"is for the scheduler {each.scheduler[:60]}"
        return super()._why_aside(entry)

    def _aside(self, pod: Pod) -> str:
        return "" if self._is_gated(pod) else super()._aside(pod)

    def _is_gated(self, pod: Pod) -> bool:
        """Return whether a pod waits for our gate alone, and is another scheduler's then."""
        return pod.gates == (self._gate,) and pod.scheduler != self._scheduler

    def _instructed(self, running: Sequence[Start], now: float) -> None:
        for each in running:
            job_id = each.job_id.removeprefix(PREFIX)
            self._entries[job_id] = SeenJob(job_id, runs=True, ours=True, attempts=each.attempt)
        for uid, pod in self._mirror.all_pods().items():
            entry = self._recalled(pod)
            if entry is not None and entry.ours:
                entry.pods[uid] = pod
        for each in running:
            entry = self._entries[each.job_id.removeprefix(PREFIX)]
            there = entry.pods
            entry.job = self._job(entry, now) if there else Job.gang(each.job_id, now, 1)
            self._spread(entry, each)

    def _spread(self, entry: SeenJob, start: Start) -> None:
        """Choose a node for each pod that is not bound, among those of a start."""
        nodes = [node for node, tasks in start.placement.tasks_by_node for _ in range(tasks)]
        at = {uid: each.node for uid, each in entry.pods.items() if each.node and entry.group}
        bundles = sorted(entry.bundles, key=lambda some: not any(uid in at for uid in some))
        for some in bundles:  # where some of a bundle are, there is room for the others
            found = next((at[uid] for uid in some if uid in at), "")
            node = found or (nodes[0] if nodes else "")
            if node in nodes:
                nodes.remove(node)
            for uid in set(some) & entry.pods.keys():
                if entry.pods[uid].scheduler == self._scheduler:
                    entry.chosen[uid] = at.get(uid, node)

    def _bind_all(self, entry: SeenJob) -> None:
        """Bind what is not bound of a job, or open its gates, unless that is of no use."""
        waiting = [uid for uid, each in entry.pods.items() if not each.node]
        pods = [pod for uid in waiting if (pod := self._mirror.pod(uid)) is not None]
        if len(pods) < len(waiting) and entry.group:
            why = "one of its pods has gone"
        else:  # else that the only one has gone is news to come
            chosen = [(p, entry.chosen.get(p.uid, "")) for p in pods if self._is_to_bind(p)]
            chosen = [*self._with_places(chosen)]
            entry.chosen |= {pod.uid: name for pod, name in chosen}
            why = self._hold(chosen)
        for each in pods:
            if why:
                self._binder.not_bound.append(NotBound(each, entry.attempts, why))
            elif self._is_gated(each):
                self._mirror.call(self._binder.release(each, self._gate, entry.attempts))
            elif self._is_to_bind(each):
                node = entry.chosen[each.uid]
                self._mirror.call(self._binder.bind(each, node, entry.attempts))

    def _is_to_bind(self, pod: Pod) -> bool:
        return pod.scheduler == self._scheduler

    def _with_places(self, chosen: Sequence[tuple[Pod, str]]) -> Iterator[tuple[Pod, str]]:
        """Yield pods with their nodes, or another of the pool where that takes no pods any more.

        No policy counts pods for each node.
        """
        taken = Counter[str]()

        def has_place(pod: Pod, name: str) -> bool:
            others = self._held.get(name, {}).keys() - {pod.uid}
            return len(others) + taken[name] < self._nodes[name].has.get("pods", 0)

        for pod, first in chosen:
            name = first
            if first in self._nodes and not has_place(pod, first):
                pool = self._nodes[first].pool
                some = [each for each, node in self._nodes.items() if node.pool == pool]
                fit = (each for each in some if has_place(pod, each))
                name = next((each for each in fit if not self._obstacle(pod, each)), first)
            taken[name] += 1
            yield pod, name

    def _hold(self, pods: Sequence[tuple[Pod, str]]) -> str:
        """Hold room for pods on their nodes; returns why one may not be bound to its, if so.

        Room that others hold by then is let go once that is heard.
        """
        for pod, name in pods:
            why = self._obstacle(pod, name)
            if why:
                return f"{pod.name}: {why}" if len(pods) > 1 else why
            self._held.setdefault(name, {})[pod.uid] = pod
        return ""

    def _obstacle(self, pod: Pod, name: str) -> str:
        """Return why a pod should not be bound to a node; empty if it may."""
        node = self._nodes.get(name)
        if node is None or not node.is_usable:
            return f"node {name} is not in use any more"
        if pod.is_leaving:
            return "it is about to be deleted"
        if pod.aside or not allows(pod, node):
            return f"it may not run on node {name} any more"
        held = self._held.get(name, {})
        lacks = [*_lacking(pod, node, [each for uid, each in held.items() if uid != pod.uid])]
        return f"node {name} has too little {lacks[0]} left" if lacks else ""

    def _take_refusals(self) -> list[SeenJob]:
        """Take note of pods that were not bound; returns their jobs."""
        found = []
        while self._binder.not_bound:
            pod, attempt, why = self._binder.not_bound.popleft()
            entry = self._entry(pod)
            if entry is None or entry.is_said or entry.attempts != attempt:
                continue
            self._held.get(entry.chosen.pop(pod.uid, ""), {}).pop(pod.uid, None)
            entry.why = why
            found.append(entry)
        return found

    def _of_start_in_part(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job was not started, once all is known of its pods; see to its other half.

        What of a group is not bound though other pods are is bound where room is, or else these
        are evicted.
        """
        pods = entry.present
        waiting = [each for each in pods if not each.node]
        if not all(map(self._is_to_bind, entry.pods.values())):
            yield from self._of_gates(entry, now)
            return
        if any(each.uid in entry.chosen for each in waiting):
            return  # answers are still to come
        bound = [each for each in pods if each.node]
        if not bound and not entry.over:
            entry.half_since = None
            yield from self._not_started(entry, now)
            return
        if not waiting and not self._is_short(entry):
            return  # it is about to be said that it has begun
        if entry.half_since is None:
            entry.half_since = now
        homes = [] if self._is_short(entry) else self._homes(waiting)
        if homes:
            entry.chosen |= {pod.uid: node for pod, node in homes}
            self._bind_all(entry)
        elif now - entry.half_since >= _HALF_SECONDS:
            for each in bound:
                self._to_evict.setdefault(each.uid, now)
            yield from self._not_started(entry, now)

    def _not_started(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a start was none, if there was one."""
        if not entry.runs:
            return
        entry.runs = entry.ours = False
        count = self._refusals[entry.job_id] = self._refusals.get(entry.job_id, 0) + 1
        pause = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2.0 ** min(count - 1, 9))
        yield news.NotStarted(now, PREFIX + entry.job_id, entry.attempts, entry.why, pause)
        if entry.group and entry.pods:
            self._count_load(entry)
            yield from self._of_aside(entry, now)

    def _of_gates(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        """Yield that a job was not started if no gate of it is open; open all if one is."""
        gated = [each for each in entry.pods.values() if self._is_gated(each)]
        if gated and len(gated) < len(entry.pods) and entry.attempts:
            if entry.half_since is None or now - entry.half_since >= _HALF_SECONDS:
                entry.half_since = now
                self._bind_all(entry)
        elif gated and entry.why:
            yield from self._not_started(entry, now)

    def _homes(self, pods: Sequence[Pod]) -> list[tuple[Pod, str]]:
        """Return nodes that have room for all of some pods; none if there are none."""
        found: list[tuple[Pod, str]] = []
        for pod in pods:
            node = next((name for name in self._nodes if not self._hold([(pod, name)])), "")
            if not node:
                break
            found.append((pod, node))
        for pod, node in found:
            del self._held[node][pod.uid]
        return found if len(found) == len(pods) else []

    def _evict(self, now: float) -> None:
        """Ask for evictions, again and again as long as they are to be and are not under way."""
        while self._binder.not_evicted:
            pod, why = self._binder.not_evicted.popleft()
            if now - self._noted.get(pod.uid, 0.0) > NOTES_SECONDS:
                self._noted[pod.uid] = now
                self._note(f"{PREFIX}{pod.job_id} is not evicted yet: {why}")
        for uid, at in [*self._to_evict.items()]:
            there = self._mirror.pod(uid)
            entry = there and self._entry(there)
            if not there or there.is_leaving or not entry or (entry.is_said and not entry.stops):
                del self._to_evict[uid]  # it goes, or its group was completed
            elif now >= at and there.node:
                self._to_evict[uid] = now + _EVICT_AGAIN_SECONDS
                self._mirror.call(self._binder.evict(there))

    def _left(self, entry: SeenJob, now: float) -> Iterator[news.Event]:
        self._refusals.pop(entry.job_id, None)
        for uid, node in entry.chosen.items():
            self._held.get(node, {}).pop(uid, None)
        yield from super()._left(entry, now)


def _lacking(pod: Pod, node: KubernetesNode, others: Sequence[Pod]) -> Iterator[str]:
    """Yield resources of which a node has too little for a pod beside others, pods among them."""
    held = added(each.needs for each in others)
    for name, amount in {**pod.needs, "pods": Fraction(1)}.items():
        taken = Fraction(len(others)) if name == "pods" else held.get(name, Fraction())
        if amount and taken + amount > node.has.get(name, Fraction()):
            yield name
