"""Jobs of a trace on fixed machines, with the rest rented: one waiting policy, event by event."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels import placing
from foresail.cloud.waiting.kernels.waiting_choice import CORES as CORES_ASKED
from foresail.cloud.waiting.kernels.waiting_choice import (
    CPU_USE,
    MEMORY_USE,
    RUNNING,
    RUNNING_CORES,
    RUNNING_SECONDS,
    SPECULATE,
    START,
    WAIT,
    WAITING,
    WAITING_CORES,
    WAITING_SECONDS,
    DelayCosts,
    WaitingRules,
    WaitModel,
    choose,
    choose_again,
    predict_wait,
)
from foresail.cloud.waiting.kernels.waiting_choice import RENT as RENTS
from foresail.cloud.waiting.kernels.waiting_plan import MachinePlan, catch_up, extend, start_behind
from foresail.kernels.compile import Floats, Integers, merged_part, part, unlocked_kernel

FIXED: Final = 0
RENTED: Final = 1
EXPIRED: Final = 2
TRIED: Final = 3
"""Place where a job ran: a fixed machine; a rented one, chosen on arrival; a rented one after it
had waited as long as it might; a rented one on which it was only tried, and ended."""
AFTER_TRIAL: Final = 4
"""Added to the first three where speculation failed before."""
QUEUED: Final = 8
"""A job whose place has this code or a higher one is waiting."""
_QUEUED_AFTER_TRIAL: Final = QUEUED + AFTER_TRIAL


class TraceColumns(NamedTuple):
    """Jobs in order of submission."""

    submit: Floats
    runtime: Floats
    """Seconds; the runtime is the truth, and only ends jobs."""
    shape: NDArray[np.int32]
    """Row in ``Shapes`` of what the job asks for."""
    estimate: Floats
    """Seconds that the job is believed to run for."""
    wait: Floats
    """Seconds that it is believed to wait (NaN: as planned); empty where no job has a belief."""
    delay: Floats
    """Money that an hour's delay of it costs, or nothing at all where none costs any."""
    lost: Floats
    """Seconds of its trial that are lost because a machine was taken back, or nothing at all."""


RENT: Final = 3
WORK_OF: Final = 4
"""Columns of ``Shapes.asked`` behind those of ``kernels.placing``: money per hour for the
rented machine, and what a second of the job counts for where shares of the work are counted."""


class Shapes(NamedTuple):
    """The distinct requests, by cores: what they ask for, and the first waiting job of each, or -1.

    ``asked`` has five columns: cores, bytes, thousandths of gpus, RENT and WORK_OF.
    """

    asked: Floats
    head: Integers


class Outcomes(NamedTuple):
    """Outcome of jobs: start and place of the last run, and the fixed machine or -1.

    ``features`` has the cluster's state at the submission of every ``stride``-th job, or no rows.
    """

    start: Floats
    place: NDArray[np.int8]
    machine: Integers
    features: Floats


class Room(NamedTuple):
    """Working arrays of the simulation; ``tally`` and ``features`` are its state for beliefs."""

    releases: placing.Timetable
    trials: placing.Timetable
    expiries: placing.Timetable
    links: placing.Links
    tally: Floats
    features: Floats
    waits: Floats


class SimulationTables(NamedTuple):
    """Jobs and machines of one simulation, how it decides, and where it stands."""

    strict: bool
    """No job starts before one that is ahead in the queue."""
    own_price: float
    """Money that a core-hour of a fixed machine costs beyond what is paid anyway."""
    stride: int
    """Number of jobs of which one has its features kept."""
    rules: WaitingRules
    model: WaitModel
    sizes: Floats
    """The distinct machines: cores, bytes, thousandths of gpus."""
    jobs: TraceColumns
    shapes: Shapes
    machines: placing.Machines
    outcomes: Outcomes
    room: Room


_RUNNING: Final = 0
_RUNNING_CORES: Final = 1
_RUNNING_MEMORY: Final = 2
_RUNNING_STARTS: Final = 3
_WAITING: Final = 4
_WAITING_CORES: Final = 5
_WAITING_SINCE: Final = 6
TOTAL_CORES: Final = 7
TOTAL_MEMORY: Final = 8
TALLY: Final = 9
"""Counts and sums over jobs that run on fixed machines and that wait, and the machines' sizes."""


@merged_part
def _start_on(at: SimulationTables, job: int, machine: int, now: float) -> None:
    asked = at.shapes.asked[at.jobs.shape[job]]
    placing.take(at.machines, machine, asked, 1.0)
    at.outcomes.start[job] = now
    at.outcomes.machine[job] = machine
    placing.enter(at.room.releases, now + at.jobs.runtime[job], job)
    _count_running(at.room.tally, asked, now, 1.0)


@merged_part
def _release(at: SimulationTables) -> None:
    """End the first that runs on a fixed machine."""
    job = placing.leave_first(at.room.releases)
    asked = at.shapes.asked[at.jobs.shape[job]]
    placing.take(at.machines, at.outcomes.machine[job], asked, -1.0)
    _count_running(at.room.tally, asked, at.outcomes.start[job], -1.0)


@part
def _count_running(tally: Floats, asked: Floats, start: float, times: float) -> None:
    tally[_RUNNING] += times
    tally[_RUNNING_CORES] += times * asked[placing.CORES]
    tally[_RUNNING_MEMORY] += times * asked[placing.MEMORY]
    tally[_RUNNING_STARTS] += times * start


@merged_part
def _queue(at: SimulationTables, job: int, now: float) -> None:
    shape, links, head = at.jobs.shape[job], at.room.links, at.shapes.head
    links.of[job, 0] = -1
    links.of[job, 1] = -1
    head[shape] = placing.melded(links, head[shape], job)
    _count_waiting(at.room.tally, at.shapes.asked[shape, placing.CORES], now, 1.0)


@part
def _count_waiting(tally: Floats, cores: float, since: float, times: float) -> None:
    """Count a job as waiting, or (-1) no more; its place in the queue is then skipped later."""
    tally[_WAITING] += times
    tally[_WAITING_CORES] += times * cores
    tally[_WAITING_SINCE] += times * since


@part
def _unqueue(at: SimulationTables, job: int) -> None:
    """Count a job as waiting no more, since when it entered the queue."""
    since = at.jobs.submit[job]
    if at.outcomes.place[job] == _QUEUED_AFTER_TRIAL:
        if at.jobs.lost.size > 0:
            since += at.jobs.lost[job]
        since += at.rules.speculation_seconds
    _count_waiting(at.room.tally, at.shapes.asked[at.jobs.shape[job], placing.CORES], since, -1.0)


@merged_part
def _dispatch(at: SimulationTables, now: float) -> None:
    """Start waiting jobs while any fits: the first in the queue's order each time."""
    while at.room.tally[_WAITING] > 0.0:
        job, machine = _first_to_start(at)
        if machine < 0:
            return
        at.shapes.head[at.jobs.shape[job]] = placing.without_root(at.room.links, job)
        _unqueue(at, job)
        at.outcomes.place[job] -= QUEUED  # FIXED, perhaps after a trial
        _start_on(at, job, machine, now)


@merged_part
def _first_to_start(at: SimulationTables) -> tuple[int, int]:
    """The first job in the queue for which there is room, and its machine, or -1.

    In a strict queue it is the first of all, whether or not there is.
    """
    links, rank, shapes, place = at.room.links, at.room.links.rank, at.shapes, at.outcomes.place
    chosen, chosen_machine = -1, -1
    most = np.inf if at.strict else float(placing.highest(at.machines))
    for shape in range(shapes.head.size):
        head = shapes.head[shape]
        if head < 0:
            continue
        if shapes.asked[shape, placing.CORES] > most:
            break
        while head >= 0 and place[head] < QUEUED:  # its wait has expired
            head = placing.without_root(links, head)
            shapes.head[shape] = head
        if head < 0:
            continue
        if chosen >= 0 and (
            rank[chosen] < rank[head] or (rank[chosen] == rank[head] and chosen < head)
        ):
            continue
        machine = placing.best_fit(at.machines, shapes.asked[shape])
        if machine >= 0 or at.strict:
            chosen, chosen_machine = head, machine
    return chosen, chosen_machine


@part
def _note_features(now: float, cores: float, tally: Floats, row: Floats) -> None:
    running, waiting = tally[_RUNNING], tally[_WAITING]
    row[CPU_USE] = tally[_RUNNING_CORES] / max(tally[TOTAL_CORES], 1.0)
    row[MEMORY_USE] = tally[_RUNNING_MEMORY] / max(tally[TOTAL_MEMORY], 1.0)
    row[RUNNING] = running
    row[WAITING] = waiting
    row[RUNNING_CORES] = tally[_RUNNING_CORES] / max(running, 1.0)
    row[RUNNING_SECONDS] = now - tally[_RUNNING_STARTS] / running if running > 0.0 else 0.0
    row[WAITING_CORES] = tally[_WAITING_CORES] / max(waiting, 1.0)
    row[WAITING_SECONDS] = now - tally[_WAITING_SINCE] / waiting if waiting > 0.0 else 0.0
    row[CORES_ASKED] = cores


@part
def _asks_for_waits(job: int, rules: WaitingRules, estimate: Floats) -> bool:
    """True if the choice for a job that finds no machine depends on its wait."""
    if rules.waiting_seconds == np.inf and rules.weighing == 0:
        return False
    return bool(estimate[job] >= rules.short_seconds)


@merged_part
def _free_machine(at: SimulationTables, asked: Floats) -> int:
    """The machine on which a job may start that has come, or -1."""
    if at.strict and at.room.tally[_WAITING] > 0.0:
        return -1
    return placing.best_fit(at.machines, asked)


@merged_part
def _believe(at: SimulationTables, job: int, now: float, fits: bool) -> None:
    """Fill in what is believed of a job's wait without looking ahead."""
    room = at.room
    if at.jobs.wait.size > 0:
        room.waits[0] = at.jobs.wait[job]
    elif at.model.base.size > 0 and not (fits and at.rules.conserving == 1):
        _note_features(
            now, at.shapes.asked[at.jobs.shape[job], placing.CORES], room.tally, room.features
        )
        predict_wait(at.model, room.features, room.waits)


@merged_part
def _choice(at: SimulationTables, job: int, after_trial: bool, fits: bool) -> int:
    asked, estimate = at.shapes.asked[at.jobs.shape[job]], at.jobs.estimate[job]
    delay = at.jobs.delay[job] if at.jobs.delay.size > 0 else 0.0
    delay_costs = DelayCosts(asked[RENT], at.own_price * asked[placing.CORES], delay)
    if after_trial:
        return choose_again(at.rules, delay_costs, fits, estimate, at.room.waits)
    return choose(at.rules, delay_costs, fits, estimate, at.room.waits)


@merged_part
def _settle(
    at: SimulationTables, job: int, machine: int, choice: int, now: float, after_trial: bool
) -> None:
    """Send a job where it was decided that it goes."""
    jobs, outcomes, rules = at.jobs, at.outcomes, at.rules
    later = AFTER_TRIAL if after_trial else 0
    outcomes.machine[job] = -1
    if choice == START:
        outcomes.place[job] = FIXED + later
        _start_on(at, job, machine, now)
    elif choice == RENTS:
        outcomes.place[job] = RENTED + later
        outcomes.start[job] = now
    elif choice == SPECULATE:
        lost = jobs.lost[job] if jobs.lost.size > 0 else 0.0
        outcomes.place[job] = TRIED
        outcomes.start[job] = now + lost
        # Shorter ones end within their trial.
        if jobs.runtime[job] > rules.speculation_seconds:
            placing.enter(at.room.trials, now + lost + rules.speculation_seconds, job)
    else:
        outcomes.place[job] = QUEUED + later
        _queue(at, job, now)
        if rules.patience_seconds < np.inf:
            placing.enter(at.room.expiries, now + rules.patience_seconds, job)


@merged_part
def _place(
    at: SimulationTables, plan: MachinePlan | None, job: int, now: float, after_trial: bool
) -> None:
    """Choose where a job goes that has arrived, or come back from a failed speculative run."""
    jobs, shapes, rules, asked, waits = (
        at.jobs,
        at.shapes,
        at.rules,
        at.shapes.asked[at.jobs.shape[job]],
        at.room.waits,
    )
    machine = _free_machine(at, asked)
    _believe(at, job, now, machine >= 0)
    limit = max(rules.waiting_seconds, rules.patience_seconds)
    # A wait that is open is that of the plan, which is asked only where the choice depends on it.
    if plan is not None:
        if at.room.tally[_WAITING] == 0.0:
            catch_up(now, jobs.shape, shapes.asked, plan)
        if np.isnan(waits[0]):
            waits[0] = 0.0
            if machine < 0 and _asks_for_waits(job, rules, jobs.estimate):
                waits[0] = start_behind(asked, now + limit, jobs.shape, shapes.asked, plan) - now
                plan.wait[job] = waits[0]
    choice = _choice(at, job, after_trial, machine >= 0)
    if plan is not None and choice in (START, WAIT):
        leaving = now + rules.patience_seconds if choice == WAIT else np.inf
        extend(job, leaving, jobs.shape, shapes.asked, plan)
    _settle(at, job, machine, choice, now, after_trial)


@part
def _fits_somewhere(asked: Floats, sizes: Floats) -> bool:
    """True if an idle machine could hold this; ``sizes`` has cores, bytes and gpus of each."""
    for i in range(sizes.shape[0]):  # noqa: SIM110 - compiled
        if placing.holds(sizes[i], asked):
            return True
    return False


@merged_part
def _expire(at: SimulationTables, now: float) -> bool:
    """Rent a machine for the first whose wait expires; whether it was still waiting."""
    job = placing.leave_first(at.room.expiries)
    if at.outcomes.place[job] < QUEUED:
        return False
    _unqueue(at, job)
    at.outcomes.place[job] += EXPIRED - QUEUED
    at.outcomes.start[job] = now
    return True


@unlocked_kernel
def simulate_waiting(at: SimulationTables, plan: MachinePlan | None) -> None:
    """Fill in the ``outcomes``.

    At one instant, releases come first, then jobs that come back from trials, new jobs, and waits
    that expire. What fits no idle machine is rented one. ``plan`` has the waits that ``jobs``
    leaves open, where the queue is strict, the runtimes are known and no job is tried; without it
    (None), the kernel is compiled without any of that.
    """
    submit, room, outcomes = at.jobs.submit, at.room, at.outcomes
    coming = submit.size
    while True:
        following = submit.size - coming
        arrival = submit[following] if coming > 0 else np.inf
        release, trial = placing.first_time(room.releases), placing.first_time(room.trials)
        expiry = placing.first_time(room.expiries)
        now = min(min(arrival, release), min(trial, expiry))
        if now == np.inf:
            return
        dispatches = False
        if release == now:
            while placing.first_time(room.releases) == now:
                _release(at)
            dispatches = True
        elif trial == now or arrival == now:
            after_trial = trial == now
            if after_trial:
                job = placing.leave_first(room.trials)
            else:
                job = following
                coming -= 1
                if outcomes.features.shape[0] > 0 and job % at.stride == 0:
                    row = outcomes.features[job // at.stride]
                    _note_features(
                        now, at.shapes.asked[at.jobs.shape[job], placing.CORES], room.tally, row
                    )
            if after_trial or _fits_somewhere(at.shapes.asked[at.jobs.shape[job]], at.sizes):
                _place(at, plan, job, now, after_trial)
                # It came before those that wait, and may be the first of them.
                dispatches = at.strict and after_trial and outcomes.place[job] >= QUEUED
            else:
                outcomes.place[job] = RENTED
                outcomes.start[job] = now
                outcomes.machine[job] = -1
        elif _expire(at, now):
            dispatches = at.strict
        if dispatches:
            _dispatch(at, now)
