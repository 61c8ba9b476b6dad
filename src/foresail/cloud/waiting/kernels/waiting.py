"""Jobs of a trace on fixed machines, with the rest rented: one waiting policy, event by event."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.placing import (
    CORES,
    MEMORY,
    Links,
    Machines,
    Timetable,
    best_fit,
    enter,
    first_time,
    highest,
    holds,
    leave_first,
    melded,
    take,
    without_root,
)
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
"""Where a job ran: a fixed machine; a rented one, chosen on arrival; a rented one after it had
waited as long as it might; a rented one on which it was only tried, and ended."""
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
    """Seconds that it is believed to wait for (NaN: as planned), or nothing at all where no job has
    such a belief."""
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

    releases: Timetable
    trials: Timetable
    expiries: Timetable
    links: Links
    tally: Floats
    features: Floats
    waits: Floats


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
"""Counts and sums over the jobs that run on fixed machines and that wait, and those machines'
cores and bytes."""


@merged_part
def _start_on(
    job: int,
    machine: int,
    now: float,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
) -> None:
    asked = shapes.asked[jobs.shape[job]]
    take(machines, machine, asked, 1.0)
    outcomes.start[job] = now
    outcomes.machine[job] = machine
    enter(room.releases, now + jobs.runtime[job], job)
    _count_running(room.tally, asked, now, 1.0)


@merged_part
def _release(
    jobs: TraceColumns, shapes: Shapes, machines: Machines, outcomes: Outcomes, room: Room
) -> None:
    """End the first that runs on a fixed machine."""
    job = leave_first(room.releases)
    asked = shapes.asked[jobs.shape[job]]
    take(machines, outcomes.machine[job], asked, -1.0)
    _count_running(room.tally, asked, outcomes.start[job], -1.0)


@part
def _count_running(tally: Floats, asked: Floats, start: float, times: float) -> None:
    tally[_RUNNING] += times
    tally[_RUNNING_CORES] += times * asked[CORES]
    tally[_RUNNING_MEMORY] += times * asked[MEMORY]
    tally[_RUNNING_STARTS] += times * start


@merged_part
def _queue(job: int, now: float, jobs: TraceColumns, shapes: Shapes, room: Room) -> None:
    shape = jobs.shape[job]
    room.links.of[job, 0] = -1
    room.links.of[job, 1] = -1
    shapes.head[shape] = melded(room.links, shapes.head[shape], job)
    _count_waiting(room.tally, shapes.asked[shape, CORES], now, 1.0)


@part
def _count_waiting(tally: Floats, cores: float, since: float, times: float) -> None:
    """Count a job as waiting, or (-1) no more; its place in the queue is then skipped later."""
    tally[_WAITING] += times
    tally[_WAITING_CORES] += times * cores
    tally[_WAITING_SINCE] += times * since


@part
def _unqueue(
    job: int,
    jobs: TraceColumns,
    shapes: Shapes,
    outcomes: Outcomes,
    rules: WaitingRules,
    room: Room,
) -> None:
    """Count a job as waiting no more, since when it entered the queue."""
    since = jobs.submit[job]
    if outcomes.place[job] == _QUEUED_AFTER_TRIAL:
        if jobs.lost.size > 0:
            since += jobs.lost[job]
        since += rules.speculation_seconds
    _count_waiting(room.tally, shapes.asked[jobs.shape[job], CORES], since, -1.0)


@merged_part
def _dispatch(
    now: float,
    strict: bool,
    rules: WaitingRules,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
) -> None:
    """Start waiting jobs while any fits: the first in the queue's order each time.

    ``strict``: no job starts before one that is ahead in the queue.
    """
    while room.tally[_WAITING] > 0.0:
        job, machine = _first_to_start(strict, shapes, machines, outcomes.place, room.links)
        if machine < 0:
            return
        shape = jobs.shape[job]
        shapes.head[shape] = without_root(room.links, job)
        _unqueue(job, jobs, shapes, outcomes, rules, room)
        outcomes.place[job] -= QUEUED  # FIXED, perhaps after a trial
        _start_on(job, machine, now, jobs, shapes, machines, outcomes, room)


@merged_part
def _first_to_start(
    strict: bool, shapes: Shapes, machines: Machines, place: NDArray[np.int8], links: Links
) -> tuple[int, int]:
    """The first job in the queue for which there is room, and its machine, or -1.

    ``strict``: the first of all, whether or not there is.
    """
    rank = links.rank
    chosen, chosen_machine = -1, -1
    most = np.inf if strict else float(highest(machines))
    for shape in range(shapes.head.size):
        head = shapes.head[shape]
        if head < 0:
            continue
        if shapes.asked[shape, CORES] > most:
            break
        while head >= 0 and place[head] < QUEUED:  # its wait has expired
            head = without_root(links, head)
            shapes.head[shape] = head
        if head < 0:
            continue
        if chosen >= 0 and (
            rank[chosen] < rank[head] or (rank[chosen] == rank[head] and chosen < head)
        ):
            continue
        machine = best_fit(machines, shapes.asked[shape])
        if machine >= 0 or strict:
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
def _asks_for_waits(job: int, rules: WaitingRules, jobs: TraceColumns) -> bool:
    """True if the choice for a job that finds no machine depends on its wait."""
    if rules.waiting_seconds == np.inf and rules.weighing == 0:
        return False
    return bool(jobs.estimate[job] >= rules.short_seconds)


@merged_part
def _free_machine(
    job: int, strict: bool, jobs: TraceColumns, shapes: Shapes, machines: Machines, room: Room
) -> int:
    """The machine on which a job may start that has come, or -1."""
    if strict and room.tally[_WAITING] > 0.0:
        return -1
    return best_fit(machines, shapes.asked[jobs.shape[job]])


@merged_part
def _believe(
    job: int,
    now: float,
    fits: bool,
    rules: WaitingRules,
    model: WaitModel,
    jobs: TraceColumns,
    shapes: Shapes,
    room: Room,
) -> None:
    """Fill in what is believed of a job's wait without looking ahead."""
    if jobs.wait.size > 0:
        room.waits[0] = jobs.wait[job]
    elif model.base.size > 0 and not (fits and rules.conserving == 1):
        _note_features(now, shapes.asked[jobs.shape[job], CORES], room.tally, room.features)
        predict_wait(model, room.features, room.waits)


@merged_part
def _choice(
    job: int,
    after_trial: bool,
    fits: bool,
    own_price: float,
    rules: WaitingRules,
    jobs: TraceColumns,
    asked: Floats,
    waits: Floats,
) -> int:
    delay = jobs.delay[job] if jobs.delay.size > 0 else 0.0
    delay_costs = DelayCosts(asked[RENT], own_price * asked[CORES], delay)
    if after_trial:
        return choose_again(rules, delay_costs, fits, jobs.estimate[job], waits)
    return choose(rules, delay_costs, fits, jobs.estimate[job], waits)


@merged_part
def _settle(
    job: int,
    machine: int,
    choice: int,
    now: float,
    after_trial: bool,
    rules: WaitingRules,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
) -> None:
    """Send a job where it was decided that it goes."""
    later = AFTER_TRIAL if after_trial else 0
    outcomes.machine[job] = -1
    if choice == START:
        outcomes.place[job] = FIXED + later
        _start_on(job, machine, now, jobs, shapes, machines, outcomes, room)
    elif choice == RENTS:
        outcomes.place[job] = RENTED + later
        outcomes.start[job] = now
    elif choice == SPECULATE:
        lost = jobs.lost[job] if jobs.lost.size > 0 else 0.0
        outcomes.place[job] = TRIED
        outcomes.start[job] = now + lost
        # Shorter ones end within their trial.
        if jobs.runtime[job] > rules.speculation_seconds:
            enter(room.trials, now + lost + rules.speculation_seconds, job)
    else:
        outcomes.place[job] = QUEUED + later
        _queue(job, now, jobs, shapes, room)
        if rules.patience_seconds < np.inf:
            enter(room.expiries, now + rules.patience_seconds, job)


@merged_part
def _place(
    job: int,
    now: float,
    after_trial: bool,
    strict: bool,
    own_price: float,
    rules: WaitingRules,
    model: WaitModel,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
    plan: MachinePlan | None,
) -> None:
    """Choose where a job goes that has arrived, or come back from a failed speculative run."""
    asked, waits = shapes.asked[jobs.shape[job]], room.waits
    machine = _free_machine(job, strict, jobs, shapes, machines, room)
    _believe(job, now, machine >= 0, rules, model, jobs, shapes, room)
    limit = max(rules.waiting_seconds, rules.patience_seconds)
    # A wait that is open is that of the plan, which is asked only where the choice depends on it.
    if plan is not None:
        if room.tally[_WAITING] == 0.0:
            catch_up(now, jobs.shape, shapes.asked, plan)
        if np.isnan(waits[0]):
            waits[0] = 0.0
            if machine < 0 and _asks_for_waits(job, rules, jobs):
                waits[0] = start_behind(asked, now + limit, jobs.shape, shapes.asked, plan) - now
                plan.wait[job] = waits[0]
    choice = _choice(job, after_trial, machine >= 0, own_price, rules, jobs, asked, waits)
    if plan is not None and choice in (START, WAIT):
        leaving = now + rules.patience_seconds if choice == WAIT else np.inf
        extend(job, leaving, jobs.shape, shapes.asked, plan)
    _settle(job, machine, choice, now, after_trial, rules, jobs, shapes, machines, outcomes, room)


@part
def _fits_somewhere(asked: Floats, sizes: Floats) -> bool:
    """True if an idle machine could hold this; ``sizes`` has cores, bytes and gpus of each."""
    for i in range(sizes.shape[0]):  # noqa: SIM110 - compiled
        if holds(sizes[i], asked):
            return True
    return False


@merged_part
def _expire(
    now: float,
    rules: WaitingRules,
    jobs: TraceColumns,
    shapes: Shapes,
    outcomes: Outcomes,
    room: Room,
) -> bool:
    """Rent a machine for the first whose wait expires; whether it was still waiting."""
    job = leave_first(room.expiries)
    if outcomes.place[job] < QUEUED:
        return False
    _unqueue(job, jobs, shapes, outcomes, rules, room)
    outcomes.place[job] += EXPIRED - QUEUED
    outcomes.start[job] = now
    return True


@unlocked_kernel
def simulate_waiting(
    strict: bool,
    own_price: float,
    stride: int,
    rules: WaitingRules,
    model: WaitModel,
    sizes: Floats,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
    plan: MachinePlan | None,
) -> None:
    """Fill in ``outcomes``.

    At one instant, releases come first, then jobs that come back from trials, new jobs, and waits
    that expire. ``strict``: no job starts before one ahead in the queue. ``own_price`` is what
    a core-hour of a fixed machine costs beyond what is paid anyway. ``sizes`` are the distinct
    machines: cores, bytes, thousandths of gpus. What fits no idle machine is rented one. ``plan``
    has the waits that ``jobs`` leaves open, where the queue is strict, the runtimes are known and
    no job is tried; without it (None), the kernel is compiled without any of that.
    """
    coming = jobs.submit.size
    while True:
        following = jobs.submit.size - coming
        arrival = jobs.submit[following] if coming > 0 else np.inf
        release, trial = first_time(room.releases), first_time(room.trials)
        expiry = first_time(room.expiries)
        now = min(min(arrival, release), min(trial, expiry))
        if now == np.inf:
            return
        dispatches = False
        if release == now:
            while first_time(room.releases) == now:
                _release(jobs, shapes, machines, outcomes, room)
            dispatches = True
        elif trial == now or arrival == now:
            after_trial = trial == now
            if after_trial:
                job = leave_first(room.trials)
            else:
                job = following
                coming -= 1
                if outcomes.features.shape[0] > 0 and job % stride == 0:
                    cores = shapes.asked[jobs.shape[job], CORES]
                    _note_features(now, cores, room.tally, outcomes.features[job // stride])
            if after_trial or _fits_somewhere(shapes.asked[jobs.shape[job]], sizes):
                _place(
                    job,
                    now,
                    after_trial,
                    strict,
                    own_price,
                    rules,
                    model,
                    jobs,
                    shapes,
                    machines,
                    outcomes,
                    room,
                    plan,
                )
                # It came before those that wait, and may be the first of them.
                dispatches = strict and after_trial and outcomes.place[job] >= QUEUED
            else:
                outcomes.place[job] = RENTED
                outcomes.start[job] = now
                outcomes.machine[job] = -1
        elif _expire(now, rules, jobs, shapes, outcomes, room):
            dispatches = strict
        if dispatches:
            _dispatch(now, strict, rules, jobs, shapes, machines, outcomes, room)
