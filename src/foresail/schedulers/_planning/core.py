"""The scheduler that plans ahead: one class, of which published systems are parameter settings."""

from __future__ import annotations

import numpy as np

from foresail.model.cluster import Cluster
from foresail.model.decision import Decision, PlannedStart, Preempt, Start
from foresail.model.reason import Reason, ReasonCode
from foresail.model.value import DeadlineValue
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._planning.assigning import likely_placement, placements
from foresail.schedulers._planning.beliefs import longest_seconds
from foresail.schedulers._planning.cell_map import CellMap
from foresail.schedulers._planning.demands import Demands, demands_of, free_cells_of
from foresail.schedulers._planning.filling import filled, needed_now
from foresail.schedulers._planning.parameters import PlanAheadParameters
from foresail.schedulers._planning.problem import Choice, value_of
from foresail.schedulers._planning.solving import Solved, solve_problem


class PlanAhead:
    """Chooses starts, now and later, of all waiting jobs together by their expected value.

    Source: TetriSched (EuroSys 2016) and 3Sigma (2019, chapter 4); spec 3sigma-distsched section 5.
    """

    def __init__(self, parameters: PlanAheadParameters) -> None:
        self.parameters = parameters
        self._places = CellMap(Cluster(()))

    def planned_seconds(self, pending: PendingJob) -> float:
        """The estimate whose expiry a correction answers: the longest runtime believed possible."""
        if self.parameters.distribution:
            return longest_seconds(pending.prediction)
        return pending.prediction.mean()

    def decide(self, view: ClusterView) -> Decision:
        """Start who is to start now, plan the others, and stop those who have to make room."""
        if not view.pending:
            return Decision()
        demands = self.demands(view)
        return self._decision(view, demands, self.solved(demands).choice)

    def demands(self, view: ClusterView) -> Demands:
        """The question that a view asks."""
        if self._places.cluster is not view.cluster:
            self._places = CellMap(view.cluster)
        return demands_of(view, self._places, self.parameters)

    def solved(self, demands: Demands) -> Solved:
        """The best choice that is found in time."""
        parameters = self.parameters
        if parameters.placing == "in_order":
            return self._one_by_one(demands)
        return solve_problem(
            demands.problem,
            parameters.solver,
            parameters.cycle_seconds * parameters.solver_share,
            parameters.relative_gap,
        )

    def _one_by_one(self, demands: Demands) -> Solved:
        """Each job the best that those before it have left: by kind, then by arrival."""
        problem = demands.problem
        patient = [not _has_deadline(each) for each in demands.pending]
        order = np.argsort(patient, kind="stable")
        choice = filled(problem, order, problem.worth, Choice.nothing(problem))
        value = value_of(problem, choice)
        return Solved(choice, value, np.inf, value)

    def _decision(self, view: ClusterView, demands: Demands, choice: Choice) -> Decision:
        places, pending = self._places, demands.pending
        now = [job for job in choice.planned.tolist() if choice.slot[job] == 0]
        groups = choice.group[now]
        stopped = [
            demands.victims[at].job.job_id
            for at in np.flatnonzero(needed_now(demands.problem, choice)).tolist()
        ]
        freed = [
            places.held(each.job, each.placement)
            for each in view.running
            if each.job.job_id in stopped
        ]
        found = placements(
            [pending[job].job for job in now],
            [demands.spaces[group] for group in groups],
            demands.problem.worth[groups, 0],
            free_cells_of(view, places),
            np.sum([np.zeros(places.totals.size), *freed], axis=0),
            view,
            places,
        )
        starts = [
            (job, Start(pending[job].job.job_id, placement))
            for job, placement in zip(now, found, strict=True)
            if placement is not None
        ]
        started = {job for job, _ in starts}
        later = [job for job in choice.planned.tolist() if job not in started]
        later.sort(key=lambda job: int(choice.slot[job]))
        plan = tuple(
            PlannedStart(
                pending[job].job.job_id,
                view.now + float(choice.slot[job]) * self.parameters.slot_seconds,
                likely_placement(pending[job].job, demands.spaces[int(choice.group[job])], places),
            )
            for job in later
        )
        begins = {each.job_id: each.start_seconds for each in plan}
        waiting = [each for job, each in enumerate(pending) if job not in started]
        return Decision(
            tuple(start for _, start in starts),
            tuple(Preempt(job_id) for job_id in stopped),
            plan,
            {each.job.job_id: self._reason(view, each, begins) for each in waiting},
        )

    def _reason(self, view: ClusterView, pending: PendingJob, begins: dict[str, float]) -> Reason:
        job = pending.job
        if job.job_id in begins:
            numbers = {"cpus": job.cpus, "start": begins[job.job_id]}
            return Reason(ReasonCode.RESERVED, numbers)
        if not self._places.spaces(job, self.parameters.soft_constraints):
            total = view.cluster.total.cpus
            return Reason(ReasonCode.TOO_WIDE, {"cpus": job.cpus, "total": total})
        free = sum(room.cpus for room in view.free.values())
        if job.cpus > free:
            return Reason(ReasonCode.NO_ROOM, {"cpus": job.cpus, "free": free})
        ahead = sum(other.arrival < pending.arrival for other in view.pending)
        return Reason(ReasonCode.NOT_CHOSEN, {"ahead": float(ahead)})


def _has_deadline(pending: PendingJob) -> bool:
    return isinstance(pending.job.value, DeadlineValue)
