"""Choice of the waiting jobs that a cycle looks at, and the plan and prices that it hands on.

A quarter of what may be looked at is for jobs that the last cycle planned, the soonest first, so
that a wide job keeps its start. Half is for those worth most for what they need, counting what they
lose by waiting. What is left goes through all the others in order of arrival, on from where the
last cycle stopped: none is left out for ever. Plans and prices are handed on to the next cycle,
moved on by the time that passed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.job import DeadlineValue
from foresail.model.view import ClusterView, PendingJob, Rejection
from foresail.schedulers._planning import problem as problems
from foresail.schedulers._planning.cell_map import CellMap, most_spaces
from foresail.schedulers._planning.demands import Demands
from foresail.schedulers._planning.solving import Hint, SolvedChoice
from foresail.schedulers._planning.valuing import PlanAheadParameters, least_worth, utility_decay

_PLANNED_UP_TO: Final = 0.25
_WORTHIEST_UP_TO: Final = 0.75


@dataclass(frozen=True, slots=True)
class Turn:
    """Progress of a round through the queue: by number of arrival."""

    last: int = -1
    """Number of the job that was looked at last."""
    until: int = -1
    """The job that the round ends with; later ones wait for the next, lest it never end."""


@dataclass(frozen=True, slots=True)
class Triaged:
    """Jobs that a cycle looks at, those that it leaves out, and how far that comes in the round."""

    considered: Sequence[PendingJob]
    left_out: Sequence[PendingJob]
    turn: Turn


def triaged(
    view: ClusterView,
    places: CellMap,
    parameters: PlanAheadParameters,
    factors: Mapping[str, float],
    planned: Mapping[str, float],
    turn: Turn,
) -> Triaged:
    """Return which jobs a cycle looks at: all that wait, if its work allows.

    ``factors`` are what the worth of jobs is multiplied by, ``planned`` the starts that the last
    cycle planned, both by job id; the round has come as far as ``turn``.
    """
    pending = view.pending
    soft = parameters.soft_constraints
    groups = np.array([most_spaces(each.job, places, soft) for each in pending], np.int64)
    most = problems.groups_within(parameters.work_seconds, parameters.window_slots)
    if groups.sum() <= most:
        return Triaged(pending, (), turn)
    queue = _Queue(groups)
    awaited = _awaited(view) if parameters.end_to_end else frozenset()
    if parameters.placing == "in_order":
        kinds = [kind_in_order(each, each.job.job_id in awaited) for each in pending]
        queue.take(np.argsort(kinds, kind="stable"), most)
    else:
        starts = np.array([planned.get(each.job.job_id, np.inf) for each in pending])
        soonest = np.argsort(starts, kind="stable")
        queue.take(soonest[np.isfinite(starts[soonest])], _PLANNED_UP_TO * most)
        scores = _scores(view, parameters, factors, awaited)
        queue.take(np.argsort(-scores, kind="stable"), _WORTHIEST_UP_TO * most)
        turn = queue.take_in_turn(np.array([each.arrival for each in pending]), turn, most)
    chosen = queue.chosen.tolist()
    return Triaged(
        [each for each, taken in zip(pending, chosen, strict=True) if taken],
        [each for each, taken in zip(pending, chosen, strict=True) if not taken],
        turn,
    )


def kind_in_order(pending: PendingJob, is_awaited: bool) -> int:
    """Rank a job where jobs are placed in order; within a kind, the one that came first goes first.

    0 for jobs with a deadline, and those that one waits for; 1 for jobs that have a deadline and
    are promised nothing; 2 for others.
    """
    if is_awaited:
        return 0
    if not isinstance(pending.job.value, DeadlineValue):
        return 2
    return 1 if isinstance(pending.reservation, Rejection) else 0


class _Queue:
    """Choice among the waiting jobs, and how many groups these have."""

    def __init__(self, groups: Integers) -> None:
        self._groups = groups
        self._taken = 0
        self.chosen: Booleans = np.zeros(groups.size, np.bool_)

    def take(self, order: Integers, most: float) -> Integers:
        """Choose jobs in an order while fewer than so many groups are chosen; which they are."""
        order = order[~self.chosen[order]]
        ends = np.cumsum(self._groups[order])
        taken = order[ends - self._groups[order] + self._taken < most]
        self.chosen[taken] = True
        self._taken += int(self._groups[taken].sum())
        return taken

    def take_in_turn(self, arrivals: Integers, turn: Turn, most: float) -> Turn:
        """Choose on from where a round stands, and begin the next one where it ends."""
        by_arrival = np.argsort(arrivals, kind="stable")
        ahead = (arrivals > turn.last) & (arrivals <= turn.until)
        most = max(most, self._taken + 1.0)  # one at least, whichever job came first
        taken = self.take(by_arrival[ahead[by_arrival]], most)
        if not self.chosen[ahead].all():
            return Turn(int(arrivals[taken].max(initial=turn.last)), turn.until)
        taken = self.take(by_arrival, most)
        return Turn(int(arrivals[taken].max(initial=-1)), int(arrivals.max(initial=-1)))


def _awaited(view: ClusterView) -> frozenset[str]:
    """Ids of the jobs that others with a deadline wait for."""
    return frozenset(
        job_id
        for each in view.blocked
        if isinstance(each.job.value, DeadlineValue)
        for job_id in each.job.after
    )


def _scores(
    view: ClusterView,
    parameters: PlanAheadParameters,
    factors: Mapping[str, float],
    awaited: Collection[str],
) -> Floats:
    """Return what each job is worth now, and loses in a window, for a cpu and second that it holds.

    By the mean of its runtime alone: what a plan knows of the rest takes longer to find out.
    """
    pending = view.pending
    decays = [utility_decay(each, parameters) for each in pending]
    means = np.array([each.prediction.mean() for each in pending])
    full = np.array([decay.full for decay in decays])
    full *= [factors.get(each.job.job_id, 1.0) for each in pending]
    begin = np.array([decay.begin_seconds for decay in decays]) - view.now
    end = np.array([decay.end_seconds for decay in decays]) - view.now
    least = np.array(
        [least_worth(each, decay, parameters) for each, decay in zip(pending, decays, strict=True)]
    )
    if awaited:
        is_awaited = np.array([each.job.job_id in awaited for each in pending])
        full[is_awaited] = np.maximum(full[is_awaited], parameters.slo_value)
        end[is_awaited] = begin[is_awaited] = np.inf
    window = parameters.window_slots * parameters.slot_seconds
    worth, later = (
        np.maximum(full * _share_left(begin - after, end - after, means), least)
        for after in (0.0, window)
    )
    cpus = np.array([max(each.job.cpus, 1.0) for each in pending])
    held = cpus * (parameters.slot_seconds + np.minimum(means, window))
    scores: Floats = (2.0 * worth - later) / held
    return scores


def _share_left(begin: Floats, end: Floats, means: Floats) -> Floats:
    """Return what is left of a worth that decays from begin to end, if a job starts now.

    Of one that decays at once, the share of its runtime that there is time for: it may be shorter.
    """
    decays = np.isfinite(end) & (end > begin)
    left = np.clip(begin / np.maximum(means, 1e-9), 0.0, 1.0)
    left[decays] = np.clip((end - means)[decays] / (end[decays] - begin[decays]), 0.0, 1.0)
    return left


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A plan and prices, by what they are about instead of by number."""

    now: float
    """Time at which they were made."""
    starts: Mapping[str, float]
    """Planned start (seconds) by job id."""
    stopped: frozenset[str]
    """Ids of the running jobs that are to be stopped."""
    prices: Mapping[str, Floats]
    """Worth of a unit of every row in every slot, by the row's name."""
    gap: float
    """Distance of a plan from the bound when these prices were new."""
    in_vain: float
    """Value that programs have looked for lately without finding any."""
    turn: Turn
    """Progress of the round through a queue that is too long."""

    def plain(self) -> dict[str, Any]:
        """Plain values that ``carried_of`` makes the same of."""
        return {
            "now": self.now,
            "starts": self.starts,
            "stopped": sorted(self.stopped),
            "prices": {row: prices.tolist() for row, prices in self.prices.items()},
            "gap": self.gap,
            "in_vain": self.in_vain,
            "turn": [self.turn.last, self.turn.until],
        }


def carried_of(plain: Mapping[str, Any]) -> Carried:
    """Return what was handed on, from plain values."""
    return Carried(
        plain["now"],
        plain["starts"],
        frozenset(plain["stopped"]),
        {row: np.array(prices) for row, prices in plain["prices"].items()},
        plain["gap"],
        plain.get("in_vain", 0.0),  # logs of earlier versions have neither this
        Turn(*plain.get("turn", ())),  # nor that
    )


def carried_from(
    demands: Demands, solved: SolvedChoice, now: float, slot_seconds: float, turn: Turn
) -> Carried:
    """Return what a cycle hands on."""
    choice, prices = solved.choice, solved.prices
    planned = choice.planned.tolist()
    return Carried(
        now,
        {demands.pending[at].job.job_id: now + choice.slot[at] * slot_seconds for at in planned},
        frozenset(demands.victims[at].job.job_id for at in np.flatnonzero(choice.stopped).tolist()),
        {} if prices is None else dict(zip(demands.rows, prices, strict=True)),
        solved.priced_gap,
        solved.in_vain,
        turn,
    )


def moved_on(carried: Carried, now: float, slot_seconds: float) -> Carried:
    """Move the plan on to a later moment: prices are those of the slots that begin then."""
    passed = now - carried.now
    prices = {}
    for row, earlier in carried.prices.items():
        moments = np.arange(earlier.size) * slot_seconds
        prices[row] = np.interp(moments + passed, moments, earlier)
    return replace(carried, now=now, prices=prices)


def hint_from(carried: Carried, demands: Demands, problem: problems.Problem) -> Hint:
    """Return what was handed on as a plan and prices of a problem of this moment.

    Jobs are planned again in order of their starts, new ones after them.
    """
    jobs = [each.job.job_id for each in demands.pending]
    starts = np.array([carried.starts.get(job_id, np.inf) for job_id in jobs])
    order = np.lexsort((-problems.densities(problem), starts))
    stopped = np.array([each.job.job_id in carried.stopped for each in demands.victims], np.bool_)
    nothing = replace(problems.PlanChoice.nothing(problem), stopped=stopped)
    choice = problems.improved(problem, problems.filled(problem, order, problem.worth, nothing))
    if not carried.prices:
        return Hint(choice, None, 0.0)
    unknown = np.zeros(problem.slots)
    prices = [carried.prices.get(row, unknown) for row in demands.rows]
    return Hint(choice, np.array(prices).reshape(problem.capacity.shape), carried.gap)
