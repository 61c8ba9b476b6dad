"""Machines on which tasks share cpu and memory, from one instant at which use changes to the next.

Times are multiples of ``GRAIN_SECONDS``, so that what ends together in truth does so in numbers.
Everything is a row of a table: machines, tasks, and segments of use, which are the truth.

A task needs the cpus of its segment to go at full pace. Given less, it is slower in proportion, so
that the work of the segment (seconds times cpus) is the same; given all again, it is as fast as
before. Source: Park's dissertation, section 5.4.1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from foresail.kernels.borrowed import arrays_at
from foresail.kernels.compile import bare_kernel, merged_part, part
from foresail.kernels.heaps import move, put

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GRAIN_SECONDS: Final = 2.0**-20
NONE: Final = -1

CPUS: Final = 0
EVICTS_AT: Final = 1
NEXT: Final = 2
PLACE: Final = 3
MACHINE_COLUMNS: Final = 4
"""A row of machines: its cpus, the memory (bytes) from which on tasks are evicted, when something
happens there next (seconds), and its place in the heap of machines."""

REMAINING: Final = 0
SINCE: Final = 1
PACE: Final = 2
CHANGES: Final = 3
DEMAND: Final = 4
ALLOCATED: Final = 5
MEMORY: Final = 6
CPU_REQUEST: Final = 7
MEMORY_REQUEST: Final = 8
PRIORITY: Final = 9
STRETCH: Final = 10
WORK: Final = 11
HAD: Final = 12
TASK_COLUMNS: Final = 13
"""A row of tasks. Seconds of its segment that were left at full pace, at a time since which it has
had this pace (1 is full); when the segment ends, if nothing changes. Cpus that it needs and has,
memory that it holds (bytes), what it asked for of both; those of the lowest priority are evicted
first. By what factor its segments last longer than the table has it, and the work (cpu
seconds) that it had done by the time above. What it was given of cpus before that."""

ON: Final = 0
BEFORE: Final = 1
AFTER: Final = 2
SEGMENT: Final = 3
BEGIN: Final = 4
SEGMENTS_END: Final = 5
NUMBER: Final = 6
TASK_LINKS: Final = 7
"""A row of task links: its machine, its neighbours in the machine's list, its segment (before the
first: one less), the first and the end of its segments, and the number that it is known by."""

SEGMENT_SECONDS: Final = 0
SEGMENT_CPUS: Final = 1
SEGMENT_MEMORY: Final = 2
SEGMENT_COLUMNS: Final = 3
"""A row of segments: how long it lasts at full pace, and what is used meanwhile (cpus, bytes)."""

COMPLETED: Final = 0
CHANGED: Final = 1
EVICTED: Final = 2
THROTTLED: Final = 3
RELEASED: Final = 4
KIND_NAMES: Final = ("completed", "changed", "evicted", "throttled", "released")
"""What happens to a task: its last segment ends; the next one begins; there is no memory for it; it
gets fewer cpus than it needs, or than before; it gets more again, or all that it needs."""

NEWS_TIME: Final = 0
NEWS_KIND: Final = 1
NEWS_TASK: Final = 2
NEWS_MACHINE: Final = 3
NEWS_DEMAND: Final = 4
NEWS_ALLOCATED: Final = 5
NEWS_MEMORY: Final = 6
NEWS_COLUMNS: Final = 7
"""A row of news: when, what, the task's number, the machine, cpus needed and given, memory."""

MOST_NEWS_OF_A_TASK: Final = 3
"""At one instant."""

ENDS: Final = 0
EVICTIONS: Final = 1
THROTTLES: Final = 2
TOTALS: Final = 3
"""What is counted of all instants: tasks that completed or were evicted; tasks that were evicted;
how often one was throttled, or more than before."""


class SharedTables(NamedTuple):
    """Machines and the tasks on them; kernels are told where these are (``borrowed.Places``).

    ``first`` is the first task of every machine, ``heap`` has all machines, the one where something
    happens first at the top. ``on`` is room for the number of every task, ``due`` for that of every
    machine, ``news`` for ``MOST_NEWS_OF_A_TASK`` rows of every task that is on one. ``totals`` are
    added to.
    """

    machines: Floats
    first: Integers
    heap: Integers
    due: Integers
    tasks: Floats
    links: Integers
    on: Integers
    news: Floats
    segments: Floats
    totals: Integers


_F = types.float64[:, ::1]
_I = types.int64[::1]
_tables_at: Final = arrays_at(
    types.NamedTuple((_F, _I, _I, _I, _F, types.int64[:, ::1], _I, _F, _F, _I), SharedTables)
)


@part
def _expect(machines: Floats, heap: Integers, machine: int, time: float) -> None:
    """Let the next event of a machine be at a time, and put the heap in order."""
    machines[machine, NEXT] = time
    move(heap, heap.size, machines, NEXT, PLACE, int(machines[machine, PLACE]))


@part
def _tasks_on(first: Integers, links: Integers, machine: int, on: Integers) -> int:
    """Return how many tasks are on a machine; ``on`` begins with them, in order of start."""
    count = 0
    task = first[machine]
    while task != NONE:
        on[count] = task
        count += 1
        task = links[task, AFTER]
    return count


@part
def _unlink(first: Integers, links: Integers, task: int) -> None:
    before, after = links[task, BEFORE], links[task, AFTER]
    if before == NONE:
        first[links[task, ON]] = after
    else:
        links[before, AFTER] = after
    if after != NONE:
        links[after, BEFORE] = before
    links[task, ON] = NONE


@part
def _tell(
    news: Floats, count: int, now: float, kind: int, task: int, tasks: Floats, links: Integers
) -> int:
    """Report what happens to a task on its machine; returns how many rows of news there are."""
    news[count, NEWS_TIME] = now
    news[count, NEWS_KIND] = kind
    news[count, NEWS_TASK] = links[task, NUMBER]
    news[count, NEWS_MACHINE] = links[task, ON]
    news[count, NEWS_DEMAND] = tasks[task, DEMAND]
    news[count, NEWS_ALLOCATED] = tasks[task, ALLOCATED]
    news[count, NEWS_MEMORY] = tasks[task, MEMORY]
    return count + 1


@part
def _work_until(tasks: Floats, task: int, now: float) -> None:
    """Count what a task has done of its segment by now."""
    done = min((now - tasks[task, SINCE]) * tasks[task, PACE], tasks[task, REMAINING])
    tasks[task, WORK] += done * tasks[task, DEMAND]
    tasks[task, REMAINING] -= done
    tasks[task, SINCE] = now


@bare_kernel
def begin(places: Floats, task: int, machine: int, begins: float) -> None:
    """Put a task on a machine, whose first segment begins at a time; its row is made already.

    Until then it uses nothing. Tasks of a machine are in order of their start.
    """
    at = _tables_at(places, 0)
    tasks, links = at.tasks, at.links
    tasks[task, CHANGES] = begins
    tasks[task, PACE] = 0.0
    there = _tasks_on(at.first, links, machine, at.on)
    # Behind the one that started last: evictions go by the order of starts.
    last = at.on[there - 1] if there else NONE
    links[task, ON] = machine
    links[task, BEFORE] = last
    links[task, AFTER] = NONE
    if last == NONE:
        at.first[machine] = task
    else:
        links[last, AFTER] = task
    if begins < at.machines[machine, NEXT]:
        _expect(at.machines, at.heap, machine, begins)


@bare_kernel
def leave(places: Floats, task: int, now: float) -> None:
    """Take a task off its machine, if it still is on one; what it leaves is shared out now."""
    at = _tables_at(places, 0)
    machine = at.links[task, ON]
    if machine != NONE:
        _work_until(at.tasks, task, now)
        _unlink(at.first, at.links, task)
        _expect(at.machines, at.heap, machine, now)


@bare_kernel
def relieve(places: Floats, machine: int, now: float) -> None:
    """See to a machine now: it offers something else than before."""
    at = _tables_at(places, 0)
    _expect(at.machines, at.heap, machine, now)


@bare_kernel
def arrange(places: Floats) -> None:
    """Make the heap of machines anew: some have come."""
    at = _tables_at(places, 0)
    for machine in range(at.heap.size):
        put(at.heap, machine, at.machines, NEXT, PLACE, machine)


@part
def _next_segment(tasks: Floats, links: Integers, segments: Floats, task: int, now: float) -> None:
    """The task's next segment begins; what it gets is to be seen."""
    tasks[task, WORK] += tasks[task, DEMAND] * tasks[task, REMAINING]
    segment = links[task, SEGMENT] + 1
    links[task, SEGMENT] = segment
    tasks[task, REMAINING] = segments[segment, SEGMENT_SECONDS] * tasks[task, STRETCH]
    tasks[task, SINCE] = now
    tasks[task, PACE] = 0.0
    tasks[task, DEMAND] = segments[segment, SEGMENT_CPUS]
    tasks[task, ALLOCATED] = tasks[task, DEMAND]
    tasks[task, MEMORY] = segments[segment, SEGMENT_MEMORY]


@part
def _goes_first(tasks: Floats, task: int, other: int) -> bool:
    """Return whether a task is evicted before one that has started earlier.

    The lowest priority first; then what holds most above its request, then most; then the latest.
    """
    if tasks[task, PRIORITY] != tasks[other, PRIORITY]:
        return bool(tasks[task, PRIORITY] < tasks[other, PRIORITY])
    over = tasks[task, MEMORY] - tasks[task, MEMORY_REQUEST]
    other_over = tasks[other, MEMORY] - tasks[other, MEMORY_REQUEST]
    if over != other_over:
        return bool(over > other_over)
    return bool(tasks[task, MEMORY] >= tasks[other, MEMORY])


@part
def _share_cpus(cpus: float, tasks: Floats, on: Integers, there: int) -> None:
    """Give every task of a machine what it needs, or its share by request if that is less.

    What some do not need of their shares goes to the others by request (weighted water filling).
    Products are compared, not quotients: what is just enough is enough.
    """
    left, weight, needed = cpus, 0.0, 0.0
    for at in range(there):
        task = on[at]
        needed += tasks[task, DEMAND]
        weight += tasks[task, CPU_REQUEST]
        tasks[task, ALLOCATED] = -1.0
    found = True
    # Each round gives the satisfied what they need and raises the level for the others.
    while found:
        found = False
        level, by_weight = left, weight
        for at in range(there):
            task = on[at]
            demand, request = tasks[task, DEMAND], tasks[task, CPU_REQUEST]
            if tasks[task, ALLOCATED] < 0.0 and (
                needed <= cpus or demand * by_weight <= level * request
            ):
                tasks[task, ALLOCATED] = demand
                left -= demand
                weight -= request
                found = True
    for at in range(there):
        task = on[at]
        if tasks[task, ALLOCATED] < 0.0:
            tasks[task, ALLOCATED] = left * tasks[task, CPU_REQUEST] / weight


@part
def _set_pace(tasks: Floats, task: int, pace: float, now: float) -> None:
    """Let a task go on at another pace: the rest of its segment takes longer, or less long."""
    _work_until(tasks, task, now)
    tasks[task, PACE] = pace
    ends = np.rint((now + tasks[task, REMAINING] / pace) / GRAIN_SECONDS) * GRAIN_SECONDS
    tasks[task, CHANGES] = max(ends, now + GRAIN_SECONDS)


@merged_part
def _evict(at: SharedTables, machine: int, there: int, now: float, count: int) -> int:
    """Evict tasks of a machine until less memory is held than it evicts at."""
    tasks, links, news, held = at.tasks, at.links, at.news, 0.0
    for i in range(there):
        task = at.on[i]
        held += tasks[task, MEMORY]
    while held >= at.machines[machine, EVICTS_AT]:
        victim = NONE
        # Tasks without memory are spared: their eviction frees nothing.
        for i in range(there):
            task = at.on[i]
            holds = links[task, ON] == machine and tasks[task, MEMORY] > 0.0
            if holds and (victim == NONE or _goes_first(tasks, task, victim)):
                victim = task
        if victim == NONE:
            break
        held -= tasks[victim, MEMORY]
        _work_until(tasks, victim, now)
        count = _tell(news, count, now, EVICTED, victim, tasks, links)
        _unlink(at.first, links, victim)
    return count


@merged_part
def _reallocate(at: SharedTables, machine: int, there: int, now: float, count: int) -> int:
    """Share out the cpus of a machine anew, and time the ends of its tasks' segments by that."""
    tasks, links, news = at.tasks, at.links, at.news
    for i in range(there):
        task = at.on[i]
        tasks[task, HAD] = tasks[task, ALLOCATED]
    _share_cpus(at.machines[machine, CPUS], tasks, at.on, there)
    soonest = np.inf
    for i in range(there):
        task = at.on[i]
        demand, allocated, had = tasks[task, DEMAND], tasks[task, ALLOCATED], tasks[task, HAD]
        # A pace of exactly 1 keeps ends where they were: no rounding moves them.
        pace = 1.0 if allocated == demand else allocated / demand
        if pace != tasks[task, PACE] and links[task, SEGMENT] >= links[task, BEGIN]:
            _set_pace(tasks, task, pace, now)
        if allocated < had:
            count = _tell(news, count, now, THROTTLED, task, tasks, links)
        elif allocated > had:
            count = _tell(news, count, now, RELEASED, task, tasks, links)
        soonest = min(soonest, tasks[task, CHANGES])
    _expect(at.machines, at.heap, machine, soonest)
    return count


@bare_kernel
def advance(places: Floats, now: float) -> int:
    """Let everything happen that happens up to now on machines; returns how many news there are.

    First tasks complete, then the use of others changes, then every machine concerned is relieved,
    once: of memory by evictions, then of cpu demand by throttling. Nothing may have been due at an
    earlier instant.
    """
    at = _tables_at(places, 0)
    machines, heap, tasks, links = at.machines, at.heap, at.tasks, at.links
    due, news, totals, count = at.due, at.news, at.totals, 0
    due_machines = 0
    # All machines where something is due first: what one does must not depend on the heap's order.
    while machines[heap[0], NEXT] <= now:
        due[due_machines] = heap[0]
        due_machines += 1
        _expect(machines, heap, heap[0], np.inf)
    for number in range(due_machines):
        for i in range(_tasks_on(at.first, links, due[number], at.on)):
            task = at.on[i]
            last = links[task, SEGMENT] + 1 == links[task, SEGMENTS_END]
            if last and tasks[task, CHANGES] <= now:
                tasks[task, WORK] += tasks[task, DEMAND] * tasks[task, REMAINING]
                count = _tell(news, count, now, COMPLETED, task, tasks, links)
                _unlink(at.first, links, task)
    for number in range(due_machines):
        for i in range(_tasks_on(at.first, links, due[number], at.on)):
            task = at.on[i]
            if tasks[task, CHANGES] <= now:
                _next_segment(tasks, links, at.segments, task, now)
                count = _tell(news, count, now, CHANGED, task, tasks, links)
    for number in range(due_machines):
        machine = due[number]
        there = _tasks_on(at.first, links, machine, at.on)
        evicted = _evict(at, machine, there, now, count)
        if evicted > count:
            there = _tasks_on(at.first, links, machine, at.on)
        count = _reallocate(at, machine, there, now, evicted)
    for row in range(count):
        kind = news[row, NEWS_KIND]
        if kind == THROTTLED:
            totals[THROTTLES] += 1
        elif kind == EVICTED:
            totals[EVICTIONS] += 1
        totals[ENDS] += kind in (EVICTED, COMPLETED)
    return count
