"""Which waiting jobs a cycle looks at, where more wait than its work allows: by worth, and in turn.

A quarter of what may be looked at is for jobs that the last cycle planned, the soonest first, so
that a wide job keeps its start. Half is for those worth most for what they need, counting what they
lose by waiting. What is left goes through all the others in order of arrival, on from where the
last cycle stopped: none is left out for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.model.reservation import Rejection
from foresail.model.value import DeadlineValue
from foresail.model.view import ClusterView, PendingJob
from foresail.schedulers._planning.cell_map import CellMap
from foresail.schedulers._planning.parameters import PlanAheadParameters
from foresail.schedulers._planning.spreading import most_spaces
from foresail.schedulers._planning.valuing import fall_of, least_worth
from foresail.schedulers._planning.work import groups_within

_PLANNED_UP_TO: Final = 0.25
_WORTHIEST_UP_TO: Final = 0.75


@dataclass(frozen=True, slots=True)
class Turn:
    """How far a round through the queue has come: by number of arrival."""

    last: int = -1
    """Which job was looked at last."""
    until: int = -1
    """The job that the round ends with; later ones wait for the next, lest it never end."""


@dataclass(frozen=True, slots=True)
class Triaged:
    """Which jobs a cycle looks at, which it leaves out, and how far that comes in the round."""

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
    """Which jobs a cycle looks at: all that wait, if its work allows.

    Parameters
    ----------
    view, places, parameters
        What there is, where, and how to plan.
    factors
        What the worth of jobs is multiplied by, by job id; 1 where nothing is said.
    planned
        Starts that the last cycle planned, by job id.
    turn
        How far the round has come.
    """
    pending = view.pending
    soft = parameters.soft_constraints
    groups = np.array([most_spaces(each.job, places, soft) for each in pending], np.int64)
    most = groups_within(parameters.work_seconds, parameters.window_slots)
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
    """Which job goes first where jobs are placed in order; within a kind, the one that came first.

    0 for jobs with a deadline, and those that one waits for; 1 for jobs that have a deadline and
    are promised nothing; 2 for others.
    """
    if is_awaited:
        return 0
    if not isinstance(pending.job.value, DeadlineValue):
        return 2
    return 1 if isinstance(pending.reservation, Rejection) else 0


class _Queue:
    """Which of the waiting jobs are chosen, and how many groups these have."""

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
    """What each job is worth now, and loses in a window, for a cpu and second that it holds.

    By the mean of its runtime alone: what a plan knows of the rest takes longer to find out.
    """
    pending = view.pending
    falls = [fall_of(each, parameters) for each in pending]
    means = np.array([each.prediction.mean() for each in pending])
    full = np.array([fall.full for fall in falls])
    full *= [factors.get(each.job.job_id, 1.0) for each in pending]
    begin = np.array([fall.begin_seconds for fall in falls]) - view.now
    end = np.array([fall.end_seconds for fall in falls]) - view.now
    least = np.array(
        [least_worth(each, fall, parameters) for each, fall in zip(pending, falls, strict=True)]
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
    """What is left of a worth that falls from begin to end, if a job starts now.

    Of one that falls at once, the share of its runtime that there is time for: it may be shorter.
    """
    falls = np.isfinite(end) & (end > begin)
    left = np.clip(begin / np.maximum(means, 1e-9), 0.0, 1.0)
    left[falls] = np.clip((end - means)[falls] / (end[falls] - begin[falls]), 0.0, 1.0)
    return left
