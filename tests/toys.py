"""Small policies that several tests use: obvious, slow, and free of Foresail's own families."""

from __future__ import annotations

from collections.abc import Mapping

from foresail.distributions.basic import Point
from foresail.model.decision import (
    Decision,
    Placement,
    PlannedStart,
    Preempt,
    Reason,
    ReasonCode,
    Start,
)
from foresail.model.distribution import Distribution
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor, Scheduler
from foresail.model.view import ClusterView


def _others(view: ClusterView) -> set[str]:
    return {each.name for each in view.cluster.partitions} - {"all"}


class Fcfs(Scheduler):
    """Starts jobs in order of arrival until one does not fit; all in one partition ``all``."""

    def decide(self, view: ClusterView) -> Decision:
        free = view.free["all"].cpus
        starts, waiting, is_full, others = [], [], False, _others(view)
        for pending in view.pending:
            is_elsewhere = pending.job.partition in others
            is_full = is_full or (pending.job.cpus > free and not is_elsewhere)
            if is_full or is_elsewhere:
                waiting.append(pending)
                continue
            free -= pending.job.cpus
            starts.append(Start(pending.job.job_id, Placement.whole("all", pending.job.tasks)))
        reasons = {
            pending.job.job_id: Reason(ReasonCode.BEHIND, {"ahead": float(ahead)})
            for ahead, pending in enumerate(waiting)
        }
        return Decision(tuple(starts), reasons=reasons)


class Easy(Scheduler):
    """EASY backfilling as the textbook has it, with its reservation as the plan."""

    def decide(self, view: ClusterView) -> Decision:
        free = view.free["all"].cpus
        releases = [
            (max(running.expected_end_seconds, view.now), running.job.cpus)
            for running in view.running
        ]
        starts = []
        queue = [each for each in view.pending if each.job.partition not in _others(view)]

        def start(pending) -> None:
            nonlocal free
            free -= pending.job.cpus
            releases.append((view.now + pending.planned_seconds, pending.job.cpus))
            starts.append(Start(pending.job.job_id, Placement.whole("all", pending.job.tasks)))
            queue.remove(pending)

        while queue and queue[0].job.cpus <= free:
            start(queue[0])
        if not queue:
            return Decision(tuple(starts))
        head = queue[0]
        room = free
        shadow = view.now
        for end in sorted({end for end, _ in releases}):
            room += sum(cpus for other, cpus in releases if other == end)
            shadow = end
            if room >= head.job.cpus:
                break
        extra = room - head.job.cpus
        for pending in queue[1:]:
            if pending.job.cpus > free:
                continue
            if view.now + pending.planned_seconds <= shadow:
                start(pending)
            elif pending.job.cpus <= extra:
                extra -= pending.job.cpus
                start(pending)
        numbers = {"cpus": head.job.cpus, "start": shadow}
        plan = PlannedStart(head.job.job_id, shadow, Placement.whole("all", head.job.tasks))
        return Decision(
            tuple(starts),
            plan=(plan,),
            reasons={head.job.job_id: Reason(ReasonCode.RESERVED, numbers)},
        )


class Scripted(Scheduler):
    """Gives prepared decisions, one per pass, and nothing after them."""

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = list(decisions)
        self.views: list[ClusterView] = []

    def decide(self, view: ClusterView) -> Decision:
        self.views.append(view)
        return self.decisions.pop(0) if self.decisions else Decision()


class PreemptsOnce(Scheduler):
    """FCFS that stops the running jobs it is told to, once each, when somebody waits."""

    def __init__(self, *job_ids: str) -> None:
        self.left = set(job_ids)

    def decide(self, view: ClusterView) -> Decision:
        decision = Fcfs().decide(view)
        running = {job.job.job_id for job in view.running}
        stop = tuple(Preempt(job_id) for job_id in sorted(self.left & running))
        self.left -= running
        return Decision(decision.starts, stop, reasons=decision.reasons)


class Requested(Predictor):
    """Believes the user's limit, and a day without one."""

    def predict(self, job: Job, now: float) -> Distribution:
        return Point(86400.0 if job.requested_seconds is None else job.requested_seconds)

    def observe(self, job: Job, outcome: Outcome) -> None:
        pass


class Constant(Predictor):
    """Believes one number, and notes in ``heard`` what it is told."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.heard: list[tuple[str, str, float]] = []

    def predict(self, job: Job, now: float) -> Distribution:
        self.heard.append(("predict", job.job_id, now))
        return Point(self.seconds)

    def started(self, job: Job, now: float) -> None:
        self.heard.append(("started", job.job_id, now))

    def observe(self, job: Job, outcome: Outcome) -> None:
        kind = "preempted" if outcome.ended_because is EndedBecause.PREEMPTED else "ended"
        self.heard.append((kind, job.job_id, outcome.end_seconds))


class Oracle(Predictor):
    """Knows the truth, openly."""

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        self.runtime_seconds = runtime_seconds

    def predict(self, job: Job, now: float) -> Distribution:
        return Point(self.runtime_seconds[job.job_id])

    def observe(self, job: Job, outcome: Outcome) -> None:
        pass


class Doubling:
    """Twice as long as it has run, at most the request."""

    def correct(
        self, job: Job, prediction: Distribution, initial: float, current: float, count: int
    ) -> float:
        limit = float("inf") if job.requested_seconds is None else job.requested_seconds
        return min(2 * max(current, 1.0), max(limit, current))
