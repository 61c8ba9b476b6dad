"""Jobs of a trace on fixed machines, with the rest rented: one waiting policy, event by event."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import part, unlocked_kernel
from foresail.kernels.heaps import Links, Timetable, enter, leave_first, melded, without_root
from foresail.kernels.packing import Machines, best_fit, take
from foresail.kernels.wait_model import (
    CORES,
    CPU_USE,
    MEMORY_USE,
    RUNNING,
    RUNNING_CORES,
    RUNNING_SECONDS,
    WAITING,
    WAITING_CORES,
    WAITING_SECONDS,
    WaitModel,
    predict_wait,
)
from foresail.kernels.waiting_choice import (
    RENT,
    SPECULATE,
    START,
    WAIT,
    Rules,
    Stakes,
    choose,
    choose_again,
)
from foresail.kernels.waiting_forecast import QUEUED, Forecaster, forecast, join_line
from foresail.kernels.waiting_plan import Plan, catch_up, extend, start_behind

FIXED: Final = 0
RENTED: Final = 1
EXPIRED: Final = 2
TRIED: Final = 3
"""Where a job ran: a fixed machine; a rented one, chosen on arrival; a rented one after it had
waited as long as it might; a rented one on which it was only tried, and ended."""
AFTER_TRIAL: Final = 4
"""Added to the first three where the job was tried before, in vain."""
_QUEUED_AFTER_TRIAL: Final = QUEUED + AFTER_TRIAL


class TraceColumns(NamedTuple):
    """Jobs in order of submission.

    Parameters
    ----------
    submit, runtime
        Seconds; the runtime is the truth, and only ends jobs.
    shape
        Row in ``Shapes`` of what the job asks for.
    estimate
        Seconds that the job is believed to run for.
    wait
        Seconds that it is believed to wait for (NaN: to be forecast), or nothing at all where no
        job has such a belief.
    delay
        Money that an hour's delay of it costs, or nothing at all where none costs any.
    lost
        Seconds of its trial that are lost because a machine was taken back, or nothing at all.
    """

    submit: NDArray[np.float64]
    runtime: NDArray[np.float64]
    shape: NDArray[np.int32]
    estimate: NDArray[np.float64]
    wait: NDArray[np.float64]
    delay: NDArray[np.float64]
    lost: NDArray[np.float64]


class Shapes(NamedTuple):
    """The distinct requests, by cores: cores, bytes, thousandths of gpus, and what they cost.

    ``rent`` is money per hour for the rented machine, ``work`` what a second of the job counts for
    where shares of the work are told. ``head`` is the first waiting job of each, or -1.
    """

    cores: NDArray[np.int64]
    memory: NDArray[np.float64]
    gpus: NDArray[np.float64]
    rent: NDArray[np.float64]
    work: NDArray[np.float64]
    head: NDArray[np.int32]


class Outcomes(NamedTuple):
    """What happened: when each job started its last run, where, and on which fixed machine or -1.

    ``features`` has the cluster's state at the submission of every ``stride``-th job, or no rows.
    """

    start: NDArray[np.float64]
    place: NDArray[np.int8]
    machine: NDArray[np.int32]
    features: NDArray[np.float64]


class Room(NamedTuple):
    """What the simulation works with; ``tally`` and ``features`` are its state for beliefs."""

    releases: Timetable
    trials: Timetable
    expiries: Timetable
    links: Links
    tally: NDArray[np.float64]
    features: NDArray[np.float64]
    waits: NDArray[np.float64]


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


@part
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
    shape = jobs.shape[job]
    take(machines, machine, shapes.cores[shape], shapes.memory[shape], shapes.gpus[shape])
    outcomes.start[job] = now
    outcomes.machine[job] = machine
    enter(room.releases, now + jobs.runtime[job], job)
    room.tally[_RUNNING] += 1.0
    room.tally[_RUNNING_CORES] += shapes.cores[shape]
    room.tally[_RUNNING_MEMORY] += shapes.memory[shape]
    room.tally[_RUNNING_STARTS] += now


@part
def _release(
    job: int,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
) -> None:
    shape = jobs.shape[job]
    take(
        machines,
        outcomes.machine[job],
        -shapes.cores[shape],
        -shapes.memory[shape],
        -shapes.gpus[shape],
    )
    room.tally[_RUNNING] -= 1.0
    room.tally[_RUNNING_CORES] -= shapes.cores[shape]
    room.tally[_RUNNING_MEMORY] -= shapes.memory[shape]
    room.tally[_RUNNING_STARTS] -= outcomes.start[job]


@part
def _queue(job: int, now: float, jobs: TraceColumns, shapes: Shapes, room: Room) -> None:
    shape = jobs.shape[job]
    room.links.child[job] = -1
    room.links.sibling[job] = -1
    shapes.head[shape] = melded(room.links, shapes.head[shape], job)
    room.tally[_WAITING] += 1.0
    room.tally[_WAITING_CORES] += shapes.cores[shape]
    room.tally[_WAITING_SINCE] += now


@part
def _unqueue(job: int, since: float, jobs: TraceColumns, shapes: Shapes, room: Room) -> None:
    """Count a job as waiting no more; its place in the queue is skipped later."""
    room.tally[_WAITING] -= 1.0
    room.tally[_WAITING_CORES] -= shapes.cores[jobs.shape[job]]
    room.tally[_WAITING_SINCE] -= since


@part
def _queued_since(job: int, jobs: TraceColumns, outcomes: Outcomes, rules: Rules) -> float:
    """When a waiting job entered the queue."""
    since = jobs.submit[job]
    if outcomes.place[job] == _QUEUED_AFTER_TRIAL:
        if jobs.lost.size > 0:
            since += jobs.lost[job]
        since += rules.speculation_seconds
    return float(since)


@part
def _dispatch(
    now: float,
    strict: bool,
    rules: Rules,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
) -> None:
    """Start waiting jobs while any fits: the first in the queue's order each time.

    ``strict``: nobody starts before who is ahead in the queue.
    """
    rank = room.links.rank
    while room.tally[_WAITING] > 0.0:
        chosen, chosen_machine = -1, -1
        for shape in range(shapes.cores.size):
            if not strict and shapes.cores[shape] > machines.highest[0]:
                break
            head = shapes.head[shape]
            while head >= 0 and outcomes.place[head] < QUEUED:  # its wait has expired
                head = without_root(room.links, head)
                shapes.head[shape] = head
            if head < 0:
                continue
            if chosen >= 0 and (
                rank[chosen] < rank[head] or (rank[chosen] == rank[head] and chosen < head)
            ):
                continue
            machine = best_fit(
                machines, shapes.cores[shape], shapes.memory[shape], shapes.gpus[shape]
            )
            if machine >= 0 or strict:
                chosen, chosen_machine = head, machine
        if chosen_machine < 0:
            return
        shape = jobs.shape[chosen]
        shapes.head[shape] = without_root(room.links, chosen)
        _unqueue(chosen, _queued_since(chosen, jobs, outcomes, rules), jobs, shapes, room)
        outcomes.place[chosen] -= QUEUED  # FIXED, perhaps after a trial
        _start_on(chosen, chosen_machine, now, jobs, shapes, machines, outcomes, room)


@part
def _note_features(
    now: float, cores: int, tally: NDArray[np.float64], row: NDArray[np.float64]
) -> None:
    running, waiting = tally[_RUNNING], tally[_WAITING]
    row[CPU_USE] = tally[_RUNNING_CORES] / max(tally[TOTAL_CORES], 1.0)
    row[MEMORY_USE] = tally[_RUNNING_MEMORY] / max(tally[TOTAL_MEMORY], 1.0)
    row[RUNNING] = running
    row[WAITING] = waiting
    row[RUNNING_CORES] = tally[_RUNNING_CORES] / max(running, 1.0)
    row[RUNNING_SECONDS] = now - tally[_RUNNING_STARTS] / running if running > 0.0 else 0.0
    row[WAITING_CORES] = tally[_WAITING_CORES] / max(waiting, 1.0)
    row[WAITING_SECONDS] = now - tally[_WAITING_SINCE] / waiting if waiting > 0.0 else 0.0
    row[CORES] = cores


@part
def _asks_for_waits(job: int, after_trial: bool, rules: Rules, jobs: TraceColumns) -> bool:
    """Whether the choice for a job that finds no machine depends on its wait."""
    if rules.waiting_seconds == np.inf and rules.weighing == 0:
        return False
    if after_trial:
        return True
    tried = rules.speculation_seconds > 0.0 and jobs.estimate[job] < rules.untried_seconds
    return not tried and jobs.estimate[job] >= rules.short_seconds


@part
def _place(
    job: int,
    now: float,
    after_trial: bool,
    strict: bool,
    own_price: float,
    rules: Rules,
    model: WaitModel,
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
    ahead: Forecaster | None,
    plan: Plan | None,
) -> None:
    """Choose where a job goes that has arrived, or come back from a trial in vain."""
    shape = jobs.shape[job]
    cores = shapes.cores[shape]
    machine = -1
    if not (strict and room.tally[_WAITING] > 0.0):
        machine = best_fit(machines, cores, shapes.memory[shape], shapes.gpus[shape])
    waits = room.waits
    if jobs.wait.size > 0:
        waits[0] = jobs.wait[job]
    elif model.base.size > 0 and not (machine >= 0 and rules.conserving == 1):
        _note_features(now, cores, room.tally, room.features)
        predict_wait(model, room.features, waits)
    if ahead is not None and np.isnan(waits[0]):
        waits[0] = 0.0
        if machine < 0 and _asks_for_waits(job, after_trial, rules, jobs):
            waits[0] = forecast(
                job,
                now,
                max(rules.waiting_seconds, rules.patience_seconds),
                strict,
                room.links.rank,
                jobs.shape,
                shapes.cores,
                shapes.memory,
                shapes.gpus,
                outcomes.place,
                outcomes.start,
                outcomes.machine,
                machines,
                room.releases,
                ahead,
            )
            ahead.wait[job] = waits[0]
    if plan is not None:
        if room.tally[_WAITING] == 0.0:
            catch_up(now, jobs.shape, shapes.cores, shapes.memory, shapes.gpus, plan)
        if np.isnan(waits[0]):
            waits[0] = 0.0
            if machine < 0 and _asks_for_waits(job, after_trial, rules, jobs):
                begins = start_behind(
                    shape,
                    now + max(rules.waiting_seconds, rules.patience_seconds),
                    jobs.shape,
                    shapes.cores,
                    shapes.memory,
                    shapes.gpus,
                    plan,
                )
                waits[0] = begins - now
                plan.wait[job] = waits[0]
    delay = jobs.delay[job] if jobs.delay.size > 0 else 0.0
    stakes = Stakes(shapes.rent[shape], own_price * cores, delay)
    if after_trial:
        choice = choose_again(rules, stakes, machine >= 0, jobs.estimate[job], waits)
    else:
        choice = choose(rules, stakes, machine >= 0, jobs.estimate[job], waits)
    if plan is not None and choice in (START, WAIT):
        leaving = now + rules.patience_seconds if choice == WAIT else np.inf
        extend(job, leaving, jobs.shape, shapes.cores, shapes.memory, shapes.gpus, plan)
    later = AFTER_TRIAL if after_trial else 0
    outcomes.machine[job] = -1
    if choice == START:
        outcomes.place[job] = FIXED + later
        _start_on(job, machine, now, jobs, shapes, machines, outcomes, room)
    elif choice == RENT:
        outcomes.place[job] = RENTED + later
        outcomes.start[job] = now
    elif choice == SPECULATE:
        lost = jobs.lost[job] if jobs.lost.size > 0 else 0.0
        outcomes.place[job] = TRIED
        outcomes.start[job] = now + lost
        if jobs.runtime[job] > rules.speculation_seconds:
            enter(room.trials, now + lost + rules.speculation_seconds, job)
    else:
        outcomes.place[job] = QUEUED + later
        _queue(job, now, jobs, shapes, room)
        if ahead is not None:
            join_line(job, now + rules.patience_seconds, room.links.rank, ahead)
        if rules.patience_seconds < np.inf:
            enter(room.expiries, now + rules.patience_seconds, job)
        if strict and after_trial:  # it came before those who wait, and may be the first of them
            _dispatch(now, strict, rules, jobs, shapes, machines, outcomes, room)


@part
def _fits_somewhere(shape: int, shapes: Shapes, sizes: NDArray[np.float64]) -> bool:
    """Whether an idle machine could hold this; ``sizes`` has cores, bytes and gpus of each."""
    for i in range(sizes.shape[0]):
        if (
            sizes[i, 0] >= shapes.cores[shape]
            and sizes[i, 1] >= shapes.memory[shape]
            and sizes[i, 2] >= shapes.gpus[shape]
        ):
            return True
    return False


@unlocked_kernel
def simulate_waiting(
    strict: bool,
    own_price: float,
    stride: int,
    rules: Rules,
    model: WaitModel,
    sizes: NDArray[np.float64],
    jobs: TraceColumns,
    shapes: Shapes,
    machines: Machines,
    outcomes: Outcomes,
    room: Room,
    ahead: Forecaster | None,
    plan: Plan | None,
) -> None:
    """Fill in ``outcomes``.

    At one instant, releases come first, then jobs that come back from trials, new jobs, and waits
    that expire. ``strict``: no job starts before who is ahead in the queue. ``own_price`` is what
    a core-hour of a fixed machine costs beyond what is paid anyway. ``sizes`` are the distinct
    machines: cores, bytes, thousandths of gpus. What fits no idle machine is rented one. ``ahead``
    forecasts the waits that ``jobs`` leaves open, or ``plan`` does, where the queue is strict, the
    runtimes are known and no job is tried; without them (None), the kernel is compiled without any
    of that.
    """
    tally = room.tally
    following = 0
    count = jobs.submit.size
    while True:
        arrival = jobs.submit[following] if following < count else np.inf
        release = room.releases.times[0] if room.releases.size[0] > 0 else np.inf
        trial = room.trials.times[0] if room.trials.size[0] > 0 else np.inf
        expiry = room.expiries.times[0] if room.expiries.size[0] > 0 else np.inf
        now = min(min(arrival, release), min(trial, expiry))
        if now == np.inf:
            return
        if release == now:
            while room.releases.size[0] > 0 and room.releases.times[0] == now:
                _release(leave_first(room.releases), jobs, shapes, machines, outcomes, room)
            if tally[_WAITING] > 0.0:
                _dispatch(now, strict, rules, jobs, shapes, machines, outcomes, room)
        elif trial == now:
            job = leave_first(room.trials)
            _place(
                job,
                now,
                True,
                strict,
                own_price,
                rules,
                model,
                jobs,
                shapes,
                machines,
                outcomes,
                room,
                ahead,
                plan,
            )
        elif arrival == now:
            job = following
            following += 1
            if outcomes.features.shape[0] > 0 and job % stride == 0:
                cores = shapes.cores[jobs.shape[job]]
                _note_features(now, cores, tally, outcomes.features[job // stride])
            if _fits_somewhere(jobs.shape[job], shapes, sizes):
                _place(
                    job,
                    now,
                    False,
                    strict,
                    own_price,
                    rules,
                    model,
                    jobs,
                    shapes,
                    machines,
                    outcomes,
                    room,
                    ahead,
                    plan,
                )
            else:
                outcomes.place[job] = RENTED
                outcomes.start[job] = now
                outcomes.machine[job] = -1
        else:
            job = leave_first(room.expiries)
            if outcomes.place[job] >= QUEUED:
                since = _queued_since(job, jobs, outcomes, rules)
                _unqueue(job, since, jobs, shapes, room)
                outcomes.place[job] += EXPIRED - QUEUED
                outcomes.start[job] = now
                if strict:
                    _dispatch(now, strict, rules, jobs, shapes, machines, outcomes, room)
