"""From a view to the arrays of a problem: options, expected consumption, expected capacity.

Rows are those of cpus, for every union of sets; then as many for memory, and for gpus, if a waiting
job asks for some.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import numpy as np

from foresail.model.cluster import Resources
from foresail.model.distribution import Booleans, Distribution, Floats, Integers
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.preference import PreferenceKind, option_of
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.schedulers._planning.cell_map import (
    AMOUNTS,
    RESOURCES,
    CellMap,
    Space,
    bits,
    chosen_parts,
    membership,
    most_asked,
    spread_spaces,
    unions_of,
)
from foresail.schedulers._planning.problem import Problem, credits_within
from foresail.schedulers._planning.valuing import (
    PlanAheadParameters,
    RuntimeBeliefs,
    UtilityDecay,
    as_point,
    expected_worth,
    least_worth,
    may_be_stopped,
    stopping_cost,
    utility_decay,
)
from foresail.schedulers._planning.weighing import ChainWorth, claimed_worth, claims_of

_ROUNDING = 1e-9


def _fits_now(
    jobs: Sequence[Job],
    spaces: Sequence[Space],
    view: ClusterView,
    victims: Sequence[RunningJob],
    places: CellMap,
) -> Booleans:
    """Return whether the tasks of each job fit in its set of places, with all victims stopped.

    That is about each job alone, and about those of one stage on named nodes; True for all others.
    """
    room = dict(view.free_nodes)
    for victim in victims:
        request = victim.job.stages[0].request
        for name, tasks in victim.placement.tasks_by_node:
            if name in room:
                room[name] += request * tasks
    fitting = _TasksOnNodes(room, places)
    return np.array(
        [
            len(job.stages) > 1
            or not places.has_nodes
            or fitting.within(job.stages[0].request, space) >= job.tasks
            for job, space in zip(jobs, spaces, strict=True)
        ],
        np.bool_,
    )


class _TasksOnNodes:
    """Counts of tasks of a kind that fit on nodes with so much room."""

    def __init__(self, room: Mapping[str, Resources], places: CellMap) -> None:
        self._cells = places.cells_of(room)
        self._room = np.array([[amount(each) for each in room.values()] for amount in AMOUNTS])
        self._count = places.totals.size
        self._known: dict[Resources, Sequence[float]] = {}

    def within(self, request: Resources, space: Space) -> float:
        """Tasks that ask for so much each, in a set of places."""
        if request not in self._known:
            self._known[request] = self._by_cell(request)
        known = self._known[request]
        if space.parts:
            return sum(any(known[cell] for cell in bits(part)) for part in space.parts)
        return sum(known[cell] for cell in bits(space.cells))

    def _by_cell(self, request: Resources) -> Sequence[float]:
        asked = [(row, amount(request)) for row, amount in enumerate(AMOUNTS)]
        rooms = [self._room[row] / need for row, need in asked if need > 0.0]
        tasks = np.floor(np.min(rooms, axis=0) * (1.0 + _ROUNDING))
        by_cell: list[float] = np.bincount(
            self._cells, np.maximum(tasks, 0.0), self._count
        ).tolist()
        return by_cell


_ALL_ALIKE: Final[Mapping[str, float]] = MappingProxyType({})
_ONLY_CPUS: Final = (0,)
_LIKE_CPUS: Final = (1.0,)
_SUFFIXES: Final = ("", *(f" {name}" for name in RESOURCES[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """A problem, and what its numbers stand for."""

    problem: Problem
    """The arrays."""
    pending: Sequence[PendingJob]
    victims: Sequence[RunningJob]
    """The jobs and the running jobs that it numbers."""
    spaces: Sequence[Space]
    """Nodes where each group runs."""
    claims: Sequence[Sequence[ChainWorth]]
    """Worth of each pending job to deadlines further on."""
    rows: Sequence[str]
    """Name of every row: its set of places, as bits of cells, and its resource if not cpus."""
    resources: Sequence[int]
    """Numbers of the resources that have rows."""
    free_cells: Floats
    """Free amount of these in every cell; shape (resources, cells)."""

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

    ``factors`` are what the worth of jobs is multiplied by, by job id; 1 where nothing is said.
    """
    pending = [_as_planned(each, parameters) for each in view.pending]
    resources, sizes, mixes = _asked(pending, places)
    free_cells = _free_cells(view, places, resources)
    spaces = [_spaces(each.job, places, free_cells, parameters) for each in pending]
    flat = [space for each in spaces for space in each]
    group_job = np.repeat(np.arange(len(pending)), [len(each) for each in spaces])
    kinds = [
        (space.parts or (space.cells,), mixes[job])
        for job, each in enumerate(spaces)
        for space in each
    ]
    number = {kind: at for at, kind in enumerate(dict.fromkeys(kinds))}
    asked: dict[int, float] = {}
    for (parts, _), job in zip(kinds, group_job.tolist(), strict=True):
        for part in parts:
            asked[part] = asked.get(part, 0.0) + float(sizes[job]) / len(parts)
    sets = list(asked)
    unions = unions_of(most_asked(sets, list(asked.values()), places.totals))
    claimed = claims_of(view, parameters) if parameters.end_to_end else {}
    by_job = [factors.get(each.job.job_id, 1.0) for each in pending]
    decays = [
        utility_decay(each, parameters).times(factor)
        for each, factor in zip(pending, by_job, strict=True)
    ]
    claims = [
        [claim.times(factor) for claim in claimed.get(each.job.job_id, ())]
        for each, factor in zip(pending, by_job, strict=True)
    ]
    consumption, worth = _curves(
        pending, sizes, group_job, flat, decays, claims, view.now, parameters
    )
    rows = membership(unions, places.totals.size)
    inside = membership(sets, places.totals.size)
    within = inside.astype(np.float64) @ ~rows.T == 0.0
    of_sets = dict(zip(sets, within, strict=True))
    shares = [np.mean([of_sets[part] for part in parts], axis=0) for parts, _ in number]
    held, running_on = _running(view, places, resources, parameters)
    given_back = held.reshape(-1, free_cells.size).T @ (1.0 - running_on)
    capacity = free_cells[:, :, np.newaxis] + given_back.reshape(*free_cells.shape, -1)
    of_rows = (held @ rows.T).reshape(len(view.running), len(resources) * len(unions))
    at = _victims(view, claimed, parameters)
    cost = stopping_cost([view.running[each] for each in at], view.now, parameters)
    most = credits_within(parameters.work_seconds) // max(
        of_rows.shape[1] * parameters.window_slots, 1
    )
    kept = _easiest(of_rows[at].sum(axis=1) * running_on[at].sum(axis=1), cost, most)
    at, cost = at[kept], cost[kept]
    victims = [view.running[each] for each in at]
    credit = of_rows[at][:, :, np.newaxis] * running_on[at][:, np.newaxis, :]
    if len(resources) > 1:
        jobs = [pending[job].job for job in group_job]
        worth[~_fits_now(jobs, flat, view, victims, places), 0] = 0.0
    problem = Problem(
        first_group=np.concatenate(([0], np.cumsum([len(each) for each in spaces]))).astype(
            np.int64
        ),
        group_set=np.array([number[kind] for kind in kinds], np.int64),
        consumption=consumption,
        worth=worth,
        cover=_cover(np.array(shares), np.array([mix for _, mix in number]), len(of_rows.T)),
        capacity=(rows @ capacity).reshape(-1, parameters.window_slots),
        victim_cost=cost,
        victim_credit=credit,
    )
    return Demands(
        problem,
        pending,
        victims,
        flat,
        claims,
        [f"{union}{_SUFFIXES[resource]}" for resource in resources for union in unions],
        resources,
        free_cells,
    )


def _asked(
    pending: Sequence[PendingJob], places: CellMap
) -> tuple[tuple[int, ...], Floats, Sequence[tuple[float, ...]]]:
    """Resources that jobs ask for, the cpus of every job, and what it needs for each of them.

    Of a job without cpus, another resource is given as cpus.
    """
    cpus = np.array([each.job.cpus for each in pending])
    if all(each.job.cpus > 0.0 and _only_cpus(each.job) for each in pending):
        return _ONLY_CPUS, cpus, [_LIKE_CPUS] * len(pending)
    amounts = np.array([places.measured(each.job.total) for each in pending])
    resources = tuple(at for at in range(len(RESOURCES)) if at == 0 or amounts[:, at].any())
    sizes = np.where(cpus > 0.0, cpus, amounts.max(axis=1))
    sizes[sizes <= 0.0] = 1.0
    shares = amounts[:, resources] / sizes[:, np.newaxis]
    return resources, sizes, list(map(tuple, shares.tolist()))


def _only_cpus(job: Job) -> bool:
    return all(
        stage.request.memory_bytes <= 0.0 and stage.request.gpus <= 0.0 for stage in job.stages
    )


def _spaces(
    job: Job, places: CellMap, free_cells: Floats, parameters: PlanAheadParameters
) -> list[Space]:
    """Return where a job may run, the best first."""
    anywhere = places.spaces(job, parameters.soft_constraints)
    if job.options:
        return [
            each for space in anywhere for each in chosen_parts(space, job, places, free_cells[0])
        ]
    preference = job.preference
    if preference is None or preference.kind is not PreferenceKind.SPREAD:
        return anywhere
    if not parameters.soft_constraints:
        return anywhere
    return [*spread_spaces(job, places, free_cells[0]), *anywhere]


def _cover(shares: Floats, mixes: Floats, rows: int) -> Floats:
    """Amounts that each kind of group takes of every row; ``shares`` of it lie in each union."""
    if not mixes.size:
        return np.zeros((0, rows))
    cover: Floats = mixes[:, :, np.newaxis] * shares[:, np.newaxis, :]
    return cover.reshape(len(mixes), rows)


def _as_planned(pending: PendingJob, parameters: PlanAheadParameters) -> PendingJob:
    if parameters.distribution:
        return pending
    point = as_point(pending.prediction)
    return replace(pending, prediction=point)


def _curves(
    pending: Sequence[PendingJob],
    sizes: Floats,
    group_job: Integers,
    spaces: Sequence[Space],
    decays: Sequence[UtilityDecay],
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
        held *= sizes[jobs, np.newaxis]
        consumption[groups] = held[back]
        of_jobs = [decays[job] for job in jobs]
        least = np.array([least_worth(pending[job], decays[job], parameters) for job in jobs])
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
    for group, space in enumerate(spaces):
        if space.option is not None:
            job = pending[group_job[group]].job
            waited = (now - job.submit_seconds + offsets).tolist()
            best = max(option.value for option in job.options)
            worth[group] *= [space.option.value_at(each) / best for each in waited]
    return consumption, worth


def _running(
    view: ClusterView, places: CellMap, resources: Sequence[int], parameters: PlanAheadParameters
) -> tuple[Floats, Floats]:
    """Return what running jobs hold of every cell, and their probability to hold it in a slot.

    Shapes (running, resources, cells) and (running, slots). A job that has outlived its belief
    holds it until its corrected end, or for one more cycle (3Sigma section 4.3.5).
    """
    slots = parameters.window_slots
    held = np.zeros((len(view.running), len(resources), places.totals.size))
    probability = np.ones((len(view.running), slots))
    if not view.running:
        return held, probability
    offsets = np.arange(slots, dtype=np.float64) * parameters.slot_seconds
    slowdowns = np.array([_slowdown(each, places) for each in view.running])
    elapsed = np.array([max(each.elapsed_seconds(view.now), 0.0) for each in view.running])
    chosen = slice(1) if len(resources) == 1 else list(resources)
    for at, each in enumerate(view.running):
        held[at] = places.held(each.job, each.placement)[chosen]
    for slowdown in np.unique(slowdowns).tolist():
        group = np.flatnonzero(slowdowns == slowdown)
        beliefs = RuntimeBeliefs([_belief(view.running[int(at)], parameters) for at in group])
        probability[group] = beliefs.still_running(slowdown, offsets, elapsed[group])
    ends = np.array([each.expected_end_seconds - view.now for each in view.running])
    outlived = probability[:, 0] == 0.0
    until = np.maximum(ends, parameters.cycle_seconds)[:, np.newaxis]
    probability[outlived] = (offsets < until)[outlived]
    return held, probability


def _belief(running: RunningJob, parameters: PlanAheadParameters) -> Distribution:
    return running.prediction if parameters.distribution else as_point(running.prediction)


def _slowdown(running: RunningJob, places: CellMap) -> float:
    """Return how many times longer a running job runs where it is than where it likes best."""
    if running.job.options:
        option = option_of(running.job.options, running.placement.places)
        return 1.0 if option is None else option.slowdown
    preference = running.job.preference
    if preference is None or not places.has_nodes:
        return 1.0
    return 1.0 if places.prefers(preference, running.placement) else preference.slowdown


def _free_cells(view: ClusterView, places: CellMap, resources: Sequence[int]) -> Floats:
    """Return what is free of every cell; shape (resources, cells)."""
    rooms = view.free_nodes
    cells = places.cells_of(rooms)
    free = np.empty((len(resources), places.totals.size))
    for row, resource in enumerate(resources):
        amounts = np.fromiter(map(AMOUNTS[resource], rooms.values()), np.float64, len(rooms))
        free[row] = np.bincount(cells, amounts, places.totals.size) / places.units[resource]
    for name, cell in places.cell_of_partition.items():
        free[:, cell] = places.measured(view.free[name])[[*resources]]
    return np.maximum(free, 0.0)


def _victims(
    view: ClusterView, claimed: Container[str], parameters: PlanAheadParameters
) -> Integers:
    """Places among the running jobs of those that may be stopped; no deadline waits for them."""
    stoppable = [
        parameters.preemption
        and each.job.job_id not in claimed
        and may_be_stopped(each, view.now, parameters.back_off_seconds)
        for each in view.running
    ]
    return np.flatnonzero(stoppable)


def _easiest(gives_back: Floats, cost: Floats, most: int) -> Integers:
    """Places of so many victims that give back most for what stopping them costs, in order."""
    easiest = np.argsort(-gives_back / np.maximum(cost, 1e-300), kind="stable")
    return np.sort(easiest[:most])


def require_runtimes(view: ClusterView) -> None:
    """Every waiting job has a runtime to plan with.

    Raises ``InputError`` if one is not a number; the message names the job.
    """
    seconds = np.array([each.planned_seconds for each in view.pending])
    job_ids = [each.job.job_id for each in view.pending]
    _require("predicted runtime", ~np.isnan(seconds), seconds, job_ids)


def require_numbers(demands: Demands) -> None:
    """Every expected worth and consumption is a finite number.

    Raises ``InputError`` if one is not; the message names the job.
    """
    problem = demands.problem
    job_ids = [demands.pending[at].job.job_id for at in problem.group_job]
    for what, numbers in (
        ("expected worth", problem.worth),
        ("expected consumption", problem.consumption),
    ):
        _require(what, np.isfinite(numbers), numbers, job_ids)


def _require(what: str, are_right: Booleans, numbers: Floats, job_ids: Sequence[str]) -> None:
    """Require numbers to be right, of which the first axis is of jobs or their groups."""
    if not are_right.all():
        first = np.argwhere(~are_right)[0]
        raise InputError(
            f"nothing can be planned for job {job_ids[first[0]]}",
            field=what,
            value=float(numbers[tuple(first)]),
            expected="a finite number",
        )
