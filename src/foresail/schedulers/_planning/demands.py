"""From a view to the arrays of a problem: options, expected consumption, expected capacity."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.distribution import Distribution
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._planning.beliefs import RuntimeBeliefs, as_point
from foresail.schedulers._planning.cell_map import CellMap, Space, membership, unions_of
from foresail.schedulers._planning.chains import ChainWorth, claimed_worth, claims_of
from foresail.schedulers._planning.parameters import PlanAheadParameters
from foresail.schedulers._planning.problem import Problem
from foresail.schedulers._planning.valuing import (
    Fall,
    expected_worth,
    fall_of,
    least_worth,
    may_be_stopped,
    stopping_cost,
)

Floats = NDArray[np.float64]

_ALL_ALIKE: Final[Mapping[str, float]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """A problem, and what its numbers stand for.

    Parameters
    ----------
    problem
        The arrays.
    pending, victims
        The jobs and the running jobs that it numbers.
    spaces
        Where each group runs.
    falls, claims
        What each pending job is worth by when it ends, and to deadlines further on.
    held, running_on, victim_at
        What running jobs hold of the rows' cpus, and their probability to hold it in a slot;
        shapes (running, rows) and (running, slots). Which of them the victims are.
    unions
        The set of places of every row, as bits of cells.
    free_cells
        Free cpus of every cell; shape (cells,).
    """

    problem: Problem
    pending: Sequence[PendingJob]
    victims: Sequence[RunningJob]
    spaces: Sequence[Space]
    falls: Sequence[Fall]
    claims: Sequence[Sequence[ChainWorth]]
    held: Floats
    running_on: Floats
    victim_at: NDArray[np.int64]
    unions: Sequence[int]
    free_cells: Floats

    @property
    def hopeless(self) -> list[int]:
        """Numbers of the jobs that might run somewhere, and gain nothing by any start."""
        first, worth = self.problem.first_group, self.problem.worth
        gains = [worth[begin:end].any() for begin, end in pairwise(first.tolist())]
        widths = np.diff(first)
        return [job for job, gain in enumerate(gains) if widths[job] and not gain]


def demands_of(
    view: ClusterView,
    places: CellMap,
    parameters: PlanAheadParameters,
    factors: Mapping[str, float] = _ALL_ALIKE,
) -> Demands:
    """The question that a view asks.

    Parameters
    ----------
    view, places, parameters
        What there is, where, and how to plan.
    factors
        What the worth of jobs is multiplied by, by job id; 1 where nothing is said.
    """
    pending = [_as_planned(each, parameters) for each in view.pending]
    spaces = [places.spaces(each.job, parameters.soft_constraints) for each in pending]
    flat = [space for each in spaces for space in each]
    group_job = np.repeat(np.arange(len(pending)), [len(each) for each in spaces])
    sets = list(dict.fromkeys(space.cells for space in flat))
    number = {cells: at for at, cells in enumerate(sets)}
    unions = unions_of(sets)
    claimed = claims_of(view, parameters) if parameters.end_to_end else {}
    by_job = [factors.get(each.job.job_id, 1.0) for each in pending]
    falls = [
        fall_of(each, parameters).times(factor)
        for each, factor in zip(pending, by_job, strict=True)
    ]
    claims = [
        [claim.times(factor) for claim in claimed.get(each.job.job_id, ())]
        for each, factor in zip(pending, by_job, strict=True)
    ]
    consumption, worth = _curves(pending, group_job, flat, falls, claims, view.now, parameters)
    rows = membership(unions, places.totals.size)
    inside = membership(sets, places.totals.size)
    held, running_on = _running(view, places, parameters)
    free_cells = _free_cells(view, places)
    capacity = free_cells[:, np.newaxis] + held.T @ (1.0 - running_on)
    at = _victims(view, claimed, parameters)
    victims = [view.running[each] for each in at]
    credit = (held[at] @ rows.T)[:, :, np.newaxis] * running_on[at][:, np.newaxis, :]
    problem = Problem(
        first_group=np.concatenate(([0], np.cumsum([len(each) for each in spaces]))).astype(
            np.int64
        ),
        group_set=np.array([number[space.cells] for space in flat], np.int64),
        consumption=consumption,
        worth=worth,
        cover=np.asarray((~inside[:, np.newaxis, :] | rows).all(axis=2)),
        capacity=rows @ capacity,
        victim_cost=stopping_cost(victims, view.now, parameters),
        victim_credit=credit,
    )
    of_rows = held @ rows.T
    return Demands(
        problem, pending, victims, flat, falls, claims, of_rows, running_on, at, unions, free_cells
    )


def _as_planned(pending: PendingJob, parameters: PlanAheadParameters) -> PendingJob:
    if parameters.distribution:
        return pending
    point = as_point(pending.prediction)
    return replace(pending, prediction=point)


def _curves(
    pending: Sequence[PendingJob],
    group_job: NDArray[np.int64],
    spaces: Sequence[Space],
    falls: Sequence[Fall],
    claims: Sequence[Sequence[ChainWorth]],
    now: float,
    parameters: PlanAheadParameters,
) -> tuple[Floats, Floats]:
    """Consumption and worth of every group; both of shape (groups, slots)."""
    slots = parameters.window_slots
    consumption, worth = np.zeros((2, len(spaces), slots))
    offsets = np.arange(slots, dtype=np.float64) * parameters.slot_seconds
    slowdowns = np.array([space.slowdown for space in spaces])
    for slowdown in np.unique(slowdowns).tolist():
        groups = np.flatnonzero(slowdowns == slowdown)
        jobs, back = np.unique(group_job[groups], return_inverse=True)
        beliefs = RuntimeBeliefs([pending[job].prediction for job in jobs])
        held = beliefs.still_running(slowdown, offsets)
        held[:, 0] = 1.0
        held *= np.array([pending[job].job.cpus for job in jobs])[:, np.newaxis]
        consumption[groups] = held[back]
        of_jobs = [falls[job] for job in jobs]
        least = np.array([least_worth(pending[job], falls[job], parameters) for job in jobs])
        of_starts = expected_worth(beliefs, of_jobs, least, slowdown, now, parameters)
        if any(claims[job] for job in jobs):
            of_starts += claimed_worth(
                [pending[job].prediction for job in jobs],
                [claims[job] for job in jobs],
                slowdown,
                now,
                parameters,
            )
        worth[groups] = of_starts[back]
    return consumption, worth


def _running(
    view: ClusterView, places: CellMap, parameters: PlanAheadParameters
) -> tuple[Floats, Floats]:
    """Cpus of every cell that running jobs hold, and their probability to hold them in a slot.

    Shapes (running, cells) and (running, slots). A job that has outlived its belief holds them
    until its corrected end, or for one more cycle (3Sigma section 4.3.5).
    """
    slots = parameters.window_slots
    held = np.zeros((len(view.running), places.totals.size))
    probability = np.ones((len(view.running), slots))
    if not view.running:
        return held, probability
    offsets = np.arange(slots, dtype=np.float64) * parameters.slot_seconds
    slowdowns = np.array([_slowdown(each, places) for each in view.running])
    elapsed = np.array([max(each.elapsed_seconds(view.now), 0.0) for each in view.running])
    for at, each in enumerate(view.running):
        held[at] = places.held(each.job, each.placement)
    for slowdown in np.unique(slowdowns).tolist():
        group = np.flatnonzero(slowdowns == slowdown)
        beliefs = RuntimeBeliefs([_belief(view.running[int(at)], parameters) for at in group])
        probability[group] = beliefs.still_running(slowdown, offsets, elapsed[group])
    ends = np.array([each.expected_end_seconds - view.now for each in view.running])
    outlived = probability[:, 0] == 0.0
    until = np.maximum(ends, parameters.cycle_seconds)[:, np.newaxis]
    probability[outlived] = (offsets < until)[outlived]
    return held, probability


def running_left(
    view: ClusterView, places: CellMap, parameters: PlanAheadParameters, levels: Floats
) -> Floats:
    """Seconds that running jobs have left at the levels of their beliefs; shapes (running, n)."""
    slowdowns = np.array([_slowdown(each, places) for each in view.running])
    elapsed = np.array([max(each.elapsed_seconds(view.now), 0.0) for each in view.running])
    beliefs = RuntimeBeliefs([_belief(each, parameters) for each in view.running])
    totals = beliefs.quantiles(levels, elapsed / slowdowns) * slowdowns[:, np.newaxis]
    ends = np.array([each.expected_end_seconds - view.now for each in view.running])
    left: Floats = totals - elapsed[:, np.newaxis]
    outlived = left.max(axis=1, initial=0.0) <= 0.0
    left[outlived] = np.maximum(ends, parameters.cycle_seconds)[outlived, np.newaxis]
    return left


def _belief(running: RunningJob, parameters: PlanAheadParameters) -> Distribution:
    return running.prediction if parameters.distribution else as_point(running.prediction)


def _slowdown(running: RunningJob, places: CellMap) -> float:
    """How many times longer a running job runs where it is than where it likes best."""
    preference = running.job.preference
    if preference is None or not places.has_nodes:
        return 1.0
    return 1.0 if places.prefers(preference, running.placement) else preference.slowdown


def _free_cells(view: ClusterView, places: CellMap) -> Floats:
    """Free cpus of every cell; shape (cells,)."""
    rooms = view.free_nodes
    cells = np.fromiter(map(places.cell_of_node.__getitem__, rooms), np.int64, len(rooms))
    cpus = np.fromiter((room.cpus for room in rooms.values()), np.float64, len(rooms))
    free = np.bincount(cells, cpus, places.totals.size)
    for name, cell in places.cell_of_partition.items():
        free[cell] = view.free[name].cpus
    return np.maximum(free, 0.0)


def _victims(
    view: ClusterView, claimed: Container[str], parameters: PlanAheadParameters
) -> NDArray[np.int64]:
    """Places among the running jobs of those that may be stopped; no deadline waits for them."""
    stoppable = [
        parameters.preemption and each.job.job_id not in claimed and may_be_stopped(each, view.now)
        for each in view.running
    ]
    return np.flatnonzero(stoppable)
