"""The scheduler that plans ahead: one class, of which published systems are parameter settings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final

import numpy as np

from foresail.milp.solver import find_solver
from foresail.model import decision as decisions
from foresail.model.cluster import Cluster
from foresail.model.job import Job
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._planning.assigning import Starting, likely_placement, starting
from foresail.schedulers._planning.cell_map import CellMap
from foresail.schedulers._planning.demands import (
    Demands,
    demands_of,
    require_numbers,
    require_runtimes,
)
from foresail.schedulers._planning.problem import PlanChoice, filled, value_of
from foresail.schedulers._planning.solving import Effort, SolvedChoice, SolveRecord, solve_problem
from foresail.schedulers._planning.triage import (
    Carried,
    Turn,
    carried_from,
    carried_of,
    hint_from,
    kind_in_order,
    moved_on,
    triaged,
)
from foresail.schedulers._planning.valuing import PlanAheadParameters, longest_seconds
from foresail.schedulers._planning.weighing import Ledger
from foresail.schedulers._reserving import CapacityAdmission, ReservingScheduler


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CycleRecord(SolveRecord):
    """One decision of a scheduler that plans ahead."""

    now: float
    """Time of the decision, in the time of the view."""
    pending: int
    left_out: int
    running: int
    """Numbers of jobs that waited, of these that it did not look at, and that ran."""
    options: int
    """Starts that were worth something."""
    cycle_seconds: float
    """Duration of the whole decision, on the wall."""


_HOPELESS: Final = "it can gain nothing any more, and hopeless_jobs=drop"
_OVER: Final = "no start that its STRL is worth something for is left"


class PlanAhead(ReservingScheduler):
    """Chooses starts, now and later, of all waiting jobs together by their expected value.

    It begins each cycle with the plan and the prices of the last one. The same views one after the
    other get the same decisions, on fast machines and slow ones. ``last`` says what the last
    decision cost; None if no job waited. Jobs with options of their own run in these only.

    Source: TetriSched (EuroSys 2016) and 3Sigma (2019, chapter 4).
    """

    places_by_options = True
    last: CycleRecord | None = None

    def __init__(self, parameters: PlanAheadParameters) -> None:
        self.parameters = parameters
        self._places = CellMap(Cluster(()))
        self._carried: tuple[Carried, ...] = ()
        find_solver(parameters.solver)
        self._ledger = Ledger(parameters)
        admission = None
        if parameters.reservations != "off":
            admission = CapacityAdmission(parameters.reservations, parameters.cycle_seconds)
        super().__init__(admission)

    def memory(self) -> Mapping[str, Any]:
        """Return what it hands from one cycle to the next, and what users have had."""
        memory: dict[str, Any] = {
            "carried": [each.plain() for each in self._carried],
            "accounts": self._ledger.plain() if self.parameters.fair_share else None,
        }
        if self._places.named_sets:
            memory["told"] = [sorted(each) for each in self._places.named_sets]
        return memory

    def remember(self, memory: Mapping[str, Any], cluster: Cluster) -> None:
        """Go on from what was handed on before a run was interrupted."""
        self._places = CellMap(cluster, memory.get("told", ()))
        self._carried = tuple(map(carried_of, memory["carried"]))
        if memory["accounts"] is not None:
            self._ledger.restore(memory["accounts"])

    def planned_seconds(self, pending: PendingJob) -> float:
        """The estimate whose expiry a correction answers: the longest runtime believed possible."""
        if self.parameters.distribution:
            return longest_seconds(pending.prediction)
        return pending.prediction.mean()

    def decide(self, view: ClusterView) -> decisions.Decision:
        """Start what is to start now, plan other jobs, and stop those that have to make room."""
        if not view.pending:
            self.last = None
            return decisions.Decision()
        began = time.perf_counter()
        require_runtimes(view)
        self._look_at(view)
        earlier = self._earlier(view.now)
        factors = self._factors(view)
        triage = triaged(
            view,
            self._places,
            self.parameters,
            factors,
            {} if earlier is None else earlier.starts,
            Turn() if earlier is None else earlier.turn,
        )
        whole, view = view, replace(view, pending=triage.considered)
        demands = demands_of(view, self._places, self.parameters, factors)
        require_numbers(demands)
        solved = self.solved(demands, self.carried(view.now))
        slot_seconds = self.parameters.slot_seconds
        carried = carried_from(demands, solved, view.now, slot_seconds, triage.turn)
        self._carried = (carried,) if earlier is None else (earlier, carried)
        begun = starting(view, demands, self._places, solved.choice)
        decision = self._decision(view, demands, begun, triage.left_out)
        if self.parameters.fair_share:
            planned = {each.job.job_id: each for each in view.pending}
            for start in decision.starts:
                started = planned[start.job_id]
                self._ledger.started(started.job, started.planned_seconds)
        self.last = CycleRecord(
            now=view.now,
            pending=len(whole.pending),
            left_out=len(triage.left_out),
            running=len(view.running),
            options=int(np.count_nonzero(demands.problem.worth)),
            cycle_seconds=time.perf_counter() - began,
            **{each.name: getattr(solved, each.name) for each in fields(SolveRecord)},
        )
        return decision

    def _earlier(self, now: float) -> Carried | None:
        """Plan and prices of the last cycle before now; at the same moment always the same."""
        earlier = [each for each in self._carried if each.now < now]
        return earlier[-1] if earlier else None

    def carried(self, now: float) -> Carried | None:
        """Plan and prices of the last cycle, as they are seen from now; None from nothing."""
        earlier = self._earlier(now)
        return None if earlier is None else moved_on(earlier, now, self.parameters.slot_seconds)

    def demands(self, view: ClusterView) -> Demands:
        """The question that a view asks, about all that wait."""
        self._look_at(view)
        return demands_of(view, self._places, self.parameters, self._factors(view))

    def _look_at(self, view: ClusterView) -> None:
        """Know the cells of the cluster, and such that distinguish nodes as waiting jobs do."""
        named_sets = _named_sets(view.pending)
        if self._places.cluster is not view.cluster:
            self._places = CellMap(view.cluster)
            self._carried = ()
        if not all(map(self._places.separates, named_sets)):
            self._places = CellMap(view.cluster, named_sets)
            self._carried = ()

    def _factors(self, view: ClusterView) -> Mapping[str, float]:
        """Return what the worth of jobs is multiplied by for what their users have had."""
        if not self.parameters.fair_share:
            return {}
        self._ledger.note(view)
        return self._ledger.factors([each.job for each in view.pending])

    @property
    def effort(self) -> Effort:
        """Return how hard it tries."""
        parameters = self.parameters
        return Effort(
            parameters.solver,
            parameters.work_seconds,
            parameters.relative_gap,
            parameters.best_effort_value,
        )

    def solved(self, demands: Demands, earlier: Carried | None = None) -> SolvedChoice:
        """The best choice that is found, from scratch or from what an earlier cycle handed on."""
        if self.parameters.placing == "in_order":
            return self._one_by_one(demands)
        if earlier is None:
            return solve_problem(demands.problem, self.effort)
        hint = partial(hint_from, earlier, demands)
        return solve_problem(demands.problem, self.effort, hint, earlier.in_vain)

    def _one_by_one(self, demands: Demands) -> SolvedChoice:
        """Each job the best that those before it have left: by kind, then by arrival.

        Jobs that a deadline waits for go with those that have one.
        """
        queue = [
            kind_in_order(each, bool(claims))
            for each, claims in zip(demands.pending, demands.claims, strict=True)
        ]
        order, problem = np.argsort(queue, kind="stable"), demands.problem
        choice = filled(problem, order, problem.worth, PlanChoice.nothing(problem))
        value = value_of(problem, choice)
        return SolvedChoice(choice=choice, value=value, bound=np.inf, greedy_value=value)

    def _decision(
        self, view: ClusterView, demands: Demands, begun: Starting, left_out: Sequence[PendingJob]
    ) -> decisions.Decision:
        places, pending, choice = self._places, demands.pending, begun.choice
        starts = [
            (job, decisions.Start(pending[job].job.job_id, placement))
            for job, placement in zip(begun.jobs, begun.found, strict=True)
            if placement is not None
        ]
        started = {job for job, _ in starts}
        later = [job for job in choice.planned.tolist() if job not in started]
        later.sort(key=lambda job: int(choice.slot[job]))
        plan = tuple(
            decisions.PlannedStart(
                pending[job].job.job_id,
                view.now + float(choice.slot[job]) * self.parameters.slot_seconds,
                likely_placement(pending[job].job, demands.spaces[int(choice.group[job])], places),
            )
            for job in later
        )
        begins = {each.job_id: each.start_seconds for each in plan}
        hopeless = self._hopeless(demands, view.now)
        gone = {*started, *hopeless}
        waiting = [each for job, each in enumerate(pending) if job not in gone]
        reasons = self._reasons(view, waiting, begins)
        return decisions.Decision(
            tuple(start for _, start in starts),
            tuple(decisions.Preempt(job_id) for job_id in begun.stopped),
            plan,
            reasons if not left_out else reasons | self._reasons_of_others(view, left_out),
            tuple(
                decisions.Withdraw(
                    pending[job].job.job_id, _OVER if pending[job].job.options else _HOPELESS
                )
                for job in hopeless
            ),
            _ticks([pending[job].job for job in range(len(pending)) if job not in gone], view.now),
        )

    def _hopeless(self, demands: Demands, now: float) -> list[int]:
        """Jobs that are to be dropped: those whose options are over, others if that is chosen."""
        drops = self.parameters.hopeless_jobs == "drop"
        hopeless = []
        for number in demands.hopeless:
            job = demands.pending[number].job
            waited = now - job.submit_seconds
            worth = [value for each in job.options for _, value in each.values_after(waited)]
            if not drops:
                worth += [each.value_at(waited) for each in job.options]
            if (drops or job.options) and not any(worth):
                hopeless.append(number)
        return hopeless

    def _reasons(
        self, view: ClusterView, waiting: Sequence[PendingJob], begins: Mapping[str, float]
    ) -> dict[str, decisions.Reason]:
        """Return why jobs wait that were looked at, by id."""
        free = sum(room.cpus for room in view.free.values())
        arrivals = np.sort([each.arrival for each in view.pending])
        ahead = np.searchsorted(arrivals, [each.arrival for each in waiting]).tolist()
        reasons: dict[str, decisions.Reason] = {}
        for pending, before in zip(waiting, ahead, strict=True):
            job = pending.job
            if job.job_id in begins:
                numbers = {"cpus": job.cpus, "start": begins[job.job_id]}
                reason = decisions.Reason(decisions.ReasonCode.RESERVED, numbers)
            elif not self._places.spaces(job, self.parameters.soft_constraints):
                reason = self._too_wide(job)
            elif job.cpus > free:
                reason = decisions.Reason(
                    decisions.ReasonCode.NO_ROOM, {"cpus": job.cpus, "free": free}
                )
            else:
                reason = decisions.Reason(decisions.ReasonCode.NOT_CHOSEN, {"ahead": float(before)})
            reasons[job.job_id] = reason
        return reasons

    def _reasons_of_others(
        self, view: ClusterView, left_out: Sequence[PendingJob]
    ) -> dict[str, decisions.Reason]:
        """Return why jobs wait that were not looked at, by id."""
        considered = len(view.pending)
        numbers = {"considered": considered, "waiting": considered + len(left_out)}
        unseen = decisions.Reason(decisions.ReasonCode.LEFT_OUT, numbers)
        soft = self.parameters.soft_constraints
        return {
            each.job.job_id: unseen
            if self._places.spaces(each.job, soft)
            else self._too_wide(each.job)
            for each in left_out
        }

    def _too_wide(self, job: Job) -> decisions.Reason:
        total = self._places.cluster.total.cpus
        return decisions.Reason(decisions.ReasonCode.TOO_WIDE, {"cpus": job.cpus, "total": total})


def _named_sets(pending: Iterable[PendingJob]) -> list[tuple[str, ...]]:
    """The sets of nodes that the options of jobs name."""
    parts = (part for each in pending for option in each.job.options for part in option.parts)
    return list(dict.fromkeys(part.nodes for part in parts))


def _ticks(jobs: Iterable[Job], now: float) -> tuple[decisions.TickAt, ...]:
    """Ticks to be asked again at: where a waiting job's next start is."""
    ticks = []
    for job in jobs:
        waited = now - job.submit_seconds
        starts = [start for each in job.options for start, _ in each.values_after(waited)]
        if starts:
            ticks.append(decisions.TickAt(job.job_id, job.submit_seconds + min(starts)))
    return tuple(ticks)
