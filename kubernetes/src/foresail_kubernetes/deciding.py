"""A Kubernetes cluster whose pods of one scheduler name are bound from here, by a policy.

A start counts as it is instructed, and is confirmed by the watch; what is not bound waits again.
Pods of other schedulers are left to these, and hold their room once they are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.decision import Instruction, Start
from foresail.model.job import Job
from foresail_kubernetes.adapters.kubernetes import DECIDES
from foresail_kubernetes.binding import Binder, NotBound
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror
from foresail_kubernetes.observing import PREFIX, KubernetesAdapter, SeenPod
from foresail_kubernetes.quantities import added
from foresail_kubernetes.records import KubernetesNode, Pod, allows

_EVERY_SECONDS: Final = 0.2
_PAUSE_SECONDS: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
"""A pod that was not bound is tried again after so long, and longer each time."""
_GIVING_UP_SECONDS: Final = 3.0


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
        scheduler: str,
        lease: Lease,
    ) -> None:
        super().__init__(mirror, folder, note)
        self._scheduler = scheduler
        self._lease = lease
        assert mirror.connection is not None
        self._binder = Binder(mirror.connection, lease)
        self._refusals: dict[str, int] = {}
        """Number of times in a row that a job was not bound."""
        mirror.call(lease.keep())

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        """Report what is new to the log; bind what was to start and is bound nowhere."""
        events = super().resume(running, known, now)
        pods = self._mirror.all_pods()
        for each in running:
            entry = self._entries.get(each.job_id.removeprefix(PREFIX))
            if entry is not None and entry.ours and not entry.is_said and entry.uid in pods:
                self._bind(pods[entry.uid], entry)
        return events

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:  # noqa: ARG002
        """Bind a pod, once for each attempt; raises ``ConnectionError`` without the lease."""
        self.capabilities.require(instruction)
        if not isinstance(instruction, Start):
            return
        self._require_sight()
        entry = self._entries.get(instruction.job_id.removeprefix(PREFIX))
        if entry is None or instruction.attempt <= entry.attempts:
            return
        entry.attempts, entry.runs, entry.ours = instruction.attempt, True, True
        entry.chosen = instruction.placement.tasks_by_node[0][0]
        self.next_seconds = 0.0
        pod = self._mirror.pod(entry.uid)
        if pod is not None:  # else that it has gone is news to come
            self._bind(pod, entry)

    def reports(self, now: float) -> Sequence[news.Event]:
        """Return what was not bound, then what is new."""
        events = super().reports(now)
        self.next_seconds = now + _EVERY_SECONDS
        return [*events, *self._of_refusals(now)]

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

    def _why_aside(self, pod: Pod) -> str:
        if pod.scheduler != self._scheduler:
            return f"is for the scheduler {pod.scheduler[:60]}"
        return super()._why_aside(pod)

    def _instructed(self, running: Sequence[Start], now: float) -> None:
        there = {each.job_id: each for each in self._mirror.all_pods().values()}
        for each in running:
            job_id = each.job_id.removeprefix(PREFIX)
            pod = there.get(job_id)
            job = Job.gang(each.job_id, now, 1) if pod is None else self._job(pod, now)
            entry = SeenPod(job, "" if pod is None else pod.uid, runs=True, ours=True)
            entry.attempts, entry.chosen = each.attempt, each.placement.tasks_by_node[0][0]
            self._entries[job_id] = entry

    def _bind(self, pod: Pod, entry: SeenPod) -> None:
        """Bind a pod to the node that was chosen, unless that is known to be of no use."""
        why = self._obstacle(pod, entry.chosen)
        if why:
            self._binder.not_bound.append(NotBound(pod.job_id, entry.attempts, why))
            return
        self._held.setdefault(entry.chosen, {})[pod.uid] = pod
        self._mirror.call(self._binder.bind(pod, entry.chosen, entry.attempts))

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

    def _of_refusals(self, now: float) -> Iterator[news.NotStarted]:
        """Yield starts that were not carried out."""
        while self._binder.not_bound:
            job_id, attempt, why = self._binder.not_bound.popleft()
            entry = self._entries.get(job_id)
            if entry is None or entry.is_said or not entry.ours or entry.attempts != attempt:
                continue
            entry.runs = entry.ours = False
            self._held.get(entry.chosen, {}).pop(entry.uid, None)
            count = self._refusals[job_id] = self._refusals.get(job_id, 0) + 1
            pause = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2.0 ** min(count - 1, 9))
            yield news.NotStarted(now, entry.job.job_id, attempt, why, pause)

    def _left(self, entry: SeenPod, pod: Pod | None, now: float) -> Iterator[news.Event]:
        self._refusals.pop(entry.job.job_id.removeprefix(PREFIX), None)
        self._held.get(entry.chosen, {}).pop(entry.uid, None)
        yield from super()._left(entry, pod, now)


def _lacking(pod: Pod, node: KubernetesNode, others: Sequence[Pod]) -> Iterator[str]:
    """Yield resources of which a node has too little for a pod beside others, pods among them."""
    held = added(each.needs for each in others)
    for name, amount in {**pod.needs, "pods": Fraction(1)}.items():
        taken = Fraction(len(others)) if name == "pods" else held.get(name, Fraction())
        if amount and taken + amount > node.has.get(name, Fraction()):
            yield name
