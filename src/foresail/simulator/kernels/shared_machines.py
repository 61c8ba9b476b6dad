"""Machines on which tasks share cpu and memory, from one instant at which use changes to the next.

Times are multiples of ``GRAIN_SECONDS``, so that what ends together in truth does so in numbers.
Everything is a row of a table: machines, tasks, and segments of use, which are the truth.

A task needs the cpus of its segment to go at full pace. Given less, it is slower in proportion, so
that the work of the segment (seconds times cpus) is the same; given all again, it is as fast as
before. Source: paper 000, section 5.4.1.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GRAIN_SECONDS: Final = 2.0**-20
NONE: Final = -1

CPUS: Final = 0
EVICTS_AT: Final = 1
NEXT: Final = 2
MACHINE_COLUMNS: Final = 3
"""A row of machines: its cpus, the memory (bytes) from which on tasks are evicted, and when
something happens there next (seconds)."""

FIRST: Final = 0
PLACE: Final = 1
MACHINE_LINKS: Final = 2
"""A row of machine links: the first of its tasks, and its place in the heap of machines."""

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


@part
def _sooner(machines: Floats, machine: int, other: int) -> bool:
    at, other_at = machines[machine, NEXT], machines[other, NEXT]
    return bool(at < other_at or (at == other_at and machine < other))


@part
def _put(links: Integers, heap: Integers, place: int, machine: int) -> None:
    heap[place] = machine
    links[machine, PLACE] = place


@part
def _expect(machines: Floats, links: Integers, heap: Integers, machine: int, time: float) -> None:
    """Let the next event of a machine be at a time, and put the heap in order."""
    machines[machine, NEXT] = time
    at = links[machine, PLACE]
    while at > 0 and _sooner(machines, machine, heap[(at - 1) >> 1]):
        _put(links, heap, at, heap[(at - 1) >> 1])
        at = (at - 1) >> 1
    while 2 * at + 1 < heap.size:
        child = 2 * at + 1
        if child + 1 < heap.size and _sooner(machines, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(machines, heap[child], machine):
            break
        _put(links, heap, at, heap[child])
        at = child
    _put(links, heap, at, machine)


@part
def _tasks_on(machine_links: Integers, task_links: Integers, machine: int, on: Integers) -> int:
    """Return how many tasks are on a machine; ``on`` begins with them, in order of start."""
    count = 0
    task = machine_links[machine, FIRST]
    while task != NONE:
        on[count] = task
        count += 1
        task = task_links[task, AFTER]
    return count


@part
def _unlink(machine_links: Integers, task_links: Integers, task: int) -> None:
    before, after = task_links[task, BEFORE], task_links[task, AFTER]
    if before == NONE:
        machine_links[task_links[task, ON], FIRST] = after
    else:
        task_links[before, AFTER] = after
    if after != NONE:
        task_links[after, BEFORE] = before
    task_links[task, ON] = NONE


@part
def _tell(
    news: Floats,
    count: int,
    now: float,
    kind: int,
    task: int,
    machine: int,
    tasks: Floats,
    task_links: Integers,
) -> int:
    news[count, NEWS_TIME] = now
    news[count, NEWS_KIND] = kind
    news[count, NEWS_TASK] = task_links[task, NUMBER]
    news[count, NEWS_MACHINE] = machine
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
def begin(
    machines: Floats,
    machine_links: Integers,
    heap: Integers,
    tasks: Floats,
    task_links: Integers,
    task: int,
    machine: int,
    begins: float,
    on: Integers,
) -> None:
    """Put a task on a machine, whose first segment begins at a time; its row is made already.

    Until then it uses nothing. Tasks of a machine are in order of their start. ``on`` is room for
    the number of every task.
    """
    tasks[task, CHANGES] = begins
    tasks[task, PACE] = 0.0
    there = _tasks_on(machine_links, task_links, machine, on)
    # Behind the one that started last: evictions go by the order of starts.
    last = on[there - 1] if there else NONE
    task_links[task, ON] = machine
    task_links[task, BEFORE] = last
    task_links[task, AFTER] = NONE
    if last == NONE:
        machine_links[machine, FIRST] = task
    else:
        task_links[last, AFTER] = task
    if begins < machines[machine, NEXT]:
        _expect(machines, machine_links, heap, machine, begins)


@bare_kernel
def leave(
    machines: Floats,
    machine_links: Integers,
    heap: Integers,
    tasks: Floats,
    task_links: Integers,
    task: int,
    now: float,
) -> None:
    """Take a task off its machine, if it still is on one; what it leaves is shared out now."""
    machine = task_links[task, ON]
    if machine != NONE:
        _work_until(tasks, task, now)
        _unlink(machine_links, task_links, task)
        _expect(machines, machine_links, heap, machine, now)


@bare_kernel
def relieve(
    machines: Floats, machine_links: Integers, heap: Integers, machine: int, now: float
) -> None:
    """See to a machine now: it offers something else than before."""
    _expect(machines, machine_links, heap, machine, now)


@bare_kernel
def arrange(machines: Floats, machine_links: Integers, heap: Integers) -> None:
    """Make the heap of machines anew: some have come."""
    for machine in range(heap.size):
        _put(machine_links, heap, machine, machine)
    for machine in range(heap.size):
        _expect(machines, machine_links, heap, machine, machines[machine, NEXT])


@part
def _next_segment(
    tasks: Floats, task_links: Integers, segments: Floats, task: int, now: float
) -> None:
    """The task's next segment begins; what it gets is to be seen."""
    tasks[task, WORK] += tasks[task, DEMAND] * tasks[task, REMAINING]
    segment = task_links[task, SEGMENT] + 1
    task_links[task, SEGMENT] = segment
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


@part
def _evict(
    machines: Floats,
    machine_links: Integers,
    tasks: Floats,
    task_links: Integers,
    machine: int,
    on: Integers,
    there: int,
    now: float,
    news: Floats,
    count: int,
) -> int:
    """Evict tasks of a machine until less memory is held than it evicts at."""
    held = 0.0
    # Tasks without memory are spared: their eviction frees nothing.
    for at in range(there):
        task = on[at]
        held += tasks[task, MEMORY]
    while held >= machines[machine, EVICTS_AT]:
        victim = NONE
        for at in range(there):
            task = on[at]
            holds = task_links[task, ON] == machine and tasks[task, MEMORY] > 0.0
            if holds and (victim == NONE or _goes_first(tasks, task, victim)):
                victim = task
        if victim == NONE:
            break
        held -= tasks[victim, MEMORY]
        _work_until(tasks, victim, now)
        _unlink(machine_links, task_links, victim)
        count = _tell(news, count, now, EVICTED, victim, machine, tasks, task_links)
    return count


@part
def _reallocate(
    machines: Floats,
    tasks: Floats,
    task_links: Integers,
    machine: int,
    on: Integers,
    there: int,
    now: float,
    news: Floats,
    count: int,
) -> int:
    """Share out the cpus of a machine anew, and time the ends of its tasks' segments by that."""
    for at in range(there):
        task = on[at]
        tasks[task, HAD] = tasks[task, ALLOCATED]
    _share_cpus(machines[machine, CPUS], tasks, on, there)
    soonest = np.inf
    for at in range(there):
        task = on[at]
        demand, allocated, had = tasks[task, DEMAND], tasks[task, ALLOCATED], tasks[task, HAD]
        # A pace of exactly 1 keeps ends where they were: no rounding moves them.
        pace = 1.0 if allocated == demand else allocated / demand
        if pace != tasks[task, PACE] and task_links[task, SEGMENT] >= task_links[task, BEGIN]:
            _set_pace(tasks, task, pace, now)
        if allocated < had:
            count = _tell(news, count, now, THROTTLED, task, machine, tasks, task_links)
        elif allocated > had:
            count = _tell(news, count, now, RELEASED, task, machine, tasks, task_links)
        soonest = min(soonest, tasks[task, CHANGES])
    machines[machine, NEXT] = soonest
    return count


@bare_kernel
def advance(
    machines: Floats,
    machine_links: Integers,
    heap: Integers,
    tasks: Floats,
    task_links: Integers,
    segments: Floats,
    now: float,
    due: Integers,
    on: Integers,
    news: Floats,
    totals: Integers,
) -> int:
    """Let everything happen that happens up to now on machines, and report it.

    First tasks complete, then the use of others changes, then every machine concerned is relieved,
    once: of memory by evictions, then of cpu demand by throttling. Nothing may have been due at an
    earlier instant.

    Parameters
    ----------
    machines, machine_links, tasks, task_links, segments
        Tables, rows as above.
    heap
        All machines, the one where something happens first at the top.
    now
        Seconds.
    due
        Room for the number of every machine.
    on
        Room for the number of every task.
    news
        Room for ``MOST_NEWS_OF_A_TASK`` rows of every task that is on a machine.
    totals
        Counts, added to.

    Returns
    -------
    int
        How many rows of news there are.
    """
    count = 0
    due_machines = 0
    # All machines where something is due first: what one does must not depend on the heap's order.
    while machines[heap[0], NEXT] <= now:
        due[due_machines] = heap[0]
        due_machines += 1
        _expect(machines, machine_links, heap, heap[0], np.inf)
    for i in range(due_machines):
        for at in range(_tasks_on(machine_links, task_links, due[i], on)):
            task = on[at]
            last = task_links[task, SEGMENT] + 1 == task_links[task, SEGMENTS_END]
            if last and tasks[task, CHANGES] <= now:
                tasks[task, WORK] += tasks[task, DEMAND] * tasks[task, REMAINING]
                _unlink(machine_links, task_links, task)
                count = _tell(news, count, now, COMPLETED, task, due[i], tasks, task_links)
    for i in range(due_machines):
        for at in range(_tasks_on(machine_links, task_links, due[i], on)):
            task = on[at]
            if tasks[task, CHANGES] <= now:
                _next_segment(tasks, task_links, segments, task, now)
                count = _tell(news, count, now, CHANGED, task, due[i], tasks, task_links)
    for i in range(due_machines):
        machine = due[i]
        there = _tasks_on(machine_links, task_links, machine, on)
        evicted = _evict(
            machines, machine_links, tasks, task_links, machine, on, there, now, news, count
        )
        if evicted > count:
            there = _tasks_on(machine_links, task_links, machine, on)
        count = _reallocate(machines, tasks, task_links, machine, on, there, now, news, evicted)
        _expect(machines, machine_links, heap, machine, machines[machine, NEXT])
    for row in range(count):
        kind = news[row, NEWS_KIND]
        if kind == THROTTLED:
            totals[THROTTLES] += 1
        elif kind == EVICTED:
            totals[EVICTIONS] += 1
        totals[ENDS] += kind in (EVICTED, COMPLETED)
    return count
