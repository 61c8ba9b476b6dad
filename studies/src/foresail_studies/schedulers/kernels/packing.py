"""Packing tasks onto machines by the distributions of what they use: 3Sigma's chapter on DistSched.

What is used of a resource is a certain amount, the least that is possible, and an excess above it,
which is a distribution on multiples of a step (``masses``; what is missing from 1 lies beyond the
last). So points are exact, and machines of different sizes have one step.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, merged_part, part
from foresail.model.distribution import Floats, Integers

CPU: Final = 0
MEMORY: Final = 1
RESOURCES: Final = 2

CAPACITY: Final = 0
LEAST: Final = 2
EXPECTED: Final = 4
HIGHEST: Final = 6
REQUESTED: Final = 8
MACHINE_COLUMNS: Final = 9
"""A row of machines, of cpu and of memory each: the capacity (that of memory is where it evicts);
the least that its tasks use together, what they are expected to use, and the highest step of their
excess. What its tasks asked for of cpus."""

TASK_LEAST: Final = 0
TASK_EXPECTED: Final = 2
TASK_HIGHEST: Final = 4
TASK_REQUEST: Final = 6
TASK_COLUMNS: Final = 7
"""A row of tasks: as of machines, of one task."""

WORK: Final = 0
TASKS: Final = 1
VALUE: Final = 2
FULL_UNTIL: Final = 3
ZERO_FROM: Final = 4
LEAST_VALUE: Final = 5
JOB_COLUMNS: Final = 6
"""A row of jobs: cpu seconds of each task, how many tasks it has, what it is worth if it ends
within so many seconds from now, after how many that has fallen to zero, straight (at once if they
are the same), and what is left of it in any case."""

NOWHERE: Final = -1
_ROUNDING: Final = 1e-9
_MILLIONTHS: Final = 1e6
_IMPOSSIBLE: Final = np.iinfo(np.int32).max
_GONE: Final = 1


class MachineTables(NamedTuple):
    """Machines: their rows, the masses of what is used, and the probability of as much or less.

    Shapes (machines, MACHINE_COLUMNS) and twice (machines, resources, steps).
    """

    table: Floats
    masses: Floats
    reached: Floats


class TaskUse(NamedTuple):
    """A task: its row, and the masses of what it uses, of shape (resources, steps)."""

    row: Floats
    masses: Floats


class RiskLimits(NamedTuple):
    """Risks of cpu and of memory that a task must stay below, or be without; and their steps."""

    most: Floats
    steps: Floats


class PlacingRoom(NamedTuple):
    """Room for as many machines as the widest job has tasks.

    The numbers of those that a job is put on, and how many tasks go to each; their rows and risks,
    to be put back; and four numbers of each.
    """

    used: Integers
    counts: Integers
    kept: MachineTables
    risks: NDArray[np.int32]
    pending: Floats


@part
def _steps_within(room: float, step: float) -> int:
    """Return how many whole steps there is room for; below 0: not even for none."""
    if room < -_ROUNDING * step:
        return -1
    return int(min(room / step + _ROUNDING * 1e3, 1e9))


@part
def _add(
    machine: Floats, machine_masses: Floats, task: Floats, task_masses: Floats, resource: int
) -> None:
    """Add what a task uses of a resource to what a machine's tasks do (equation 5.2)."""
    highest = int(task[TASK_HIGHEST + resource])
    masses, more = machine_masses[resource], task_masses[resource]
    bins = masses.size
    reached = min(int(machine[HIGHEST + resource]) + highest, bins - 1)
    for at in range(reached, -1, -1):
        total = 0.0
        for step in range(min(at, highest) + 1):
            total += more[step] * masses[at - step]
        masses[at] = total
    machine[HIGHEST + resource] = reached
    machine[LEAST + resource] += task[TASK_LEAST + resource]
    machine[EXPECTED + resource] += task[TASK_EXPECTED + resource]


@part
def _copy_row(row: Floats, to_row: Floats) -> None:
    for at in range(row.size):
        to_row[at] = row[at]


@part
def _add_task(machine: Floats, masses: Floats, task: Floats, task_masses: Floats) -> None:
    """Let one more task run on a machine."""
    for resource in range(RESOURCES):
        _add(machine, masses, task, task_masses, resource)


@bare_kernel
def add_tasks(
    machine: Floats, machine_masses: Floats, task: Floats, task_masses: Floats, tasks: int
) -> None:
    """Let more tasks of one job run on a machine: rows, and masses of shape (resources, steps)."""
    for _ in range(tasks):
        _add_task(machine, machine_masses, task, task_masses)
        machine[REQUESTED] += task[TASK_REQUEST]


@part
def _exceeds(
    machine: Floats,
    reached: Floats,
    task: Floats,
    task_masses: Floats,
    resource: int,
    tasks: int,
    step: float,
) -> float:
    """Probability that some tasks that all use the same, and a machine's others, use too much.

    ``reached`` is the probability of each excess of the machine's tasks or less. Just as much as
    there is is not too much (equation 5.1).
    """
    room = machine[CAPACITY + resource] - machine[LEAST + resource]
    steps = _steps_within(room - tasks * task[TASK_LEAST + resource], step)
    highest = int(task[TASK_HIGHEST + resource])
    there = int(machine[HIGHEST + resource])
    top = reached[resource, there]
    # Even all of the most fits: no sum is needed, and none may round to a risk.
    if steps >= there + tasks * highest and top > 1.0 - _ROUNDING:
        within = 0.0
        for at in range(highest + 1):
            within += task_masses[resource, at]
        return 1.0 - within if within < 1.0 - _ROUNDING else 0.0
    fits = 0.0
    for at in range(min(highest, steps // tasks) + 1 if steps >= 0 else 0):
        fits += task_masses[resource, at] * reached[resource, min(steps - tasks * at, there)]
    return max(1.0 - fits, 0.0)


@bare_kernel
def actual_cpus(
    capacity: float, request: float, requested: float, cpus: float, used: float, tasks: int
) -> float:
    """Return what each of so many equal tasks gets of a machine's cpus (section 7.2).

    Parameters
    ----------
    capacity
        Cpus of the machine.
    request, cpus
        What a task asked for, and would use alone.
    requested, used
        What the machine's other tasks asked for, and use.
    tasks
        How many tasks of the job are put there.
    """
    share = capacity * request / (tasks * request + requested)
    if cpus <= share:
        return cpus
    if used > capacity - tasks * share:
        return share
    return min(cpus, (capacity - used) / tasks)


@part
def _worth(job: Floats, seconds: float) -> float:
    """Return what a job is worth that ends so long from now."""
    if seconds <= job[FULL_UNTIL]:
        return float(job[VALUE])
    falls = job[ZERO_FROM] - job[FULL_UNTIL]
    if falls <= 0.0:
        return float(job[LEAST_VALUE])
    left = 1.0 - (seconds - job[FULL_UNTIL]) / falls
    return float(max(job[VALUE] * left, job[LEAST_VALUE]))


@part
def _outcome(
    machine: Floats,
    reached: Floats,
    request: float,
    cpus: float,
    tasks: int,
    at: int,
    step: float,
    found: Floats,
) -> int:
    """The next more favourable outcome of what a task gets on a machine, from the worst one on.

    ``at`` is where to go on: -1 at first. ``found`` is given the cpus and the probability; the
    answer is where to go on from then, or -2: that was the last.
    """
    capacity, least = machine[CAPACITY + CPU], machine[LEAST + CPU]
    there = int(machine[HIGHEST + CPU])
    share = capacity * request / (tasks * request + machine[REQUESTED])
    if cpus <= share:
        found[0], found[1] = cpus, 1.0
        return -2
    shared = _steps_within(capacity - tasks * share - least, step)
    free = _steps_within(capacity - tasks * cpus - least, step)
    # All outcomes in which the machine is so full that the share is all there is are one.
    if at == -1:
        crowded = 1.0 - (reached[CPU, min(shared, there)] if shared >= 0 else 0.0)
        at = min(shared, there)
        if crowded > _ROUNDING:
            found[0], found[1] = share, crowded
            return at if at >= 0 else -2
    if at <= free:
        found[0], found[1] = cpus, reached[CPU, at]
        return -2
    used = least + at * step
    found[0] = actual_cpus(capacity, request, machine[REQUESTED], cpus, used, tasks)
    found[1] = reached[CPU, at] - (reached[CPU, at - 1] if at > 0 else 0.0)
    return at - 1 if at > 0 else -2


@bare_kernel
def expected_worth(
    at: MachineTables,
    room: PlacingRoom,
    used_machines: int,
    job: Floats,
    task: TaskUse,
    steps: Floats,
) -> float:
    """Expected worth of starting a job now, its tasks on these machines (section 7.5).

    Its tasks all use the same; given that, what they get on different machines is independent, so
    that the probability that the least of it exceeds an amount is a product.

    Parameters
    ----------
    at
        The machines as they are without the job.
    room, used_machines
        Which machines, and how many of them there are.
    job, task
        A row, and one of its tasks.
    steps
        Of cpu and memory.
    """
    stays = 1.0
    for i in range(used_machines):
        number, step = room.used[i], steps[MEMORY]
        row, reached = at.table[number], at.reached[number]
        stays *= 1.0 - _exceeds(row, reached, task.row, task.masses, MEMORY, room.counts[i], step)
    total = 0.0
    for step_number in range(int(task.row[TASK_HIGHEST + CPU]) + 1):
        # Tasks use the same: sum over that, and let machines differ given it.
        mass = task.masses[CPU, step_number]
        if mass <= 0.0:
            continue
        cpus = task.row[TASK_LEAST + CPU] + step_number * steps[CPU]
        total += mass * _worth_given(at, room, used_machines, job, task, cpus, steps[CPU])
    return stays * total


@part
def _worth_given(
    at: MachineTables,
    room: PlacingRoom,
    used_machines: int,
    job: Floats,
    task: TaskUse,
    cpus: float,
    step: float,
) -> float:
    """Return what a job is worth whose tasks would use so many cpus alone."""
    request, pending, counts = task.row[TASK_REQUEST], room.pending, room.counts
    for i in range(used_machines):
        row, reached = at.table[room.used[i]], at.reached[room.used[i]]
        pending[i, 3] = _outcome(row, reached, request, cpus, counts[i], -1, step, pending[i])
        pending[i, 2] = 1.0
    total = 0.0
    exceeds = 1.0
    # Walk through the amounts that any machine gives, the least first: a gang is as slow as its
    # slowest task.
    while exceeds > _ROUNDING:
        worst = 0
        for i in range(1, used_machines):
            if pending[i, 0] < pending[worst, 0]:
                worst = i
        gets = pending[worst, 0]
        pending[worst, 2] -= pending[worst, 1]
        begin = int(pending[worst, 3])
        if begin == -2:
            pending[worst, 2] = 0.0
        else:
            row, reached = at.table[room.used[worst]], at.reached[room.used[worst]]
            pending[worst, 3] = _outcome(
                row, reached, request, cpus, counts[worst], begin, step, pending[worst]
            )
        still = 1.0
        for i in range(used_machines):
            still *= pending[i, 2]
        seconds = job[WORK] / gets if gets > 0.0 else np.inf
        total += (exceeds - still) * _worth(job, seconds if job[WORK] > 0.0 else 0.0)
        exceeds = still
    return total


@part
def _most_worth(job: Floats, task: Floats, task_masses: Floats, step: float) -> float:
    """Return what starting a job now is worth on average where nothing is in its way."""
    total = 0.0
    for at in range(int(task[TASK_HIGHEST + CPU]) + 1):
        cpus = task[TASK_LEAST + CPU] + at * step
        seconds = job[WORK] / cpus if cpus > 0.0 else np.inf
        total += task_masses[CPU, at] * _worth(job, seconds if job[WORK] > 0.0 else 0.0)
    return total


@part
def _accumulate(machine: Floats, masses: Floats, reached: Floats) -> None:
    """The probabilities of each excess or less, from its masses."""
    for resource in range(RESOURCES):
        total = 0.0
        for at in range(int(machine[HIGHEST + resource]) + 1):
            total += masses[resource, at]
            reached[resource, at] = total


@bare_kernel
def accumulate(machines: Floats, masses: Floats, reached: Floats) -> None:
    """The probabilities of each excess or less, of all machines."""
    for machine in range(machines.shape[0]):
        _accumulate(machines[machine], masses[machine], reached[machine])


@part
def _risk(
    machine: Floats,
    reached: Floats,
    task: Floats,
    task_masses: Floats,
    resource: int,
    most: float,
    step: float,
) -> int:
    """Probability of too much use with one more task, in millionths; or that it is too high."""
    risk = _exceeds(machine, reached, task, task_masses, resource, 1, step)
    if risk > _ROUNDING and risk >= most:
        return _IMPOSSIBLE
    return int(np.rint(risk * _MILLIONTHS))


@part
def _is_full(
    machine: Floats, reached: Floats, task: Floats, resource: int, most: float, step: float
) -> bool:
    """Return whether the risk is too high even if one more task used no more than its least."""
    room = machine[CAPACITY + resource] - machine[LEAST + resource] - task[TASK_LEAST + resource]
    steps = _steps_within(room, step)
    if steps < 0:
        return True
    within = reached[resource, min(steps, int(machine[HIGHEST + resource]))]
    return bool(1.0 - within >= max(most, _ROUNDING))


@part
def _comes_first(
    risks: NDArray[np.int32], machines: Floats, ranks: Integers, machine: int, best: int
) -> bool:
    """Return whether a machine is before another: the five keys (section 7.7, ascending).

    Risk of memory, risk of cpu, available memory, available cpu (what is expected to be free), and
    a rank drawn by lot.
    """
    for key in range(RESOURCES):
        one, other = risks[machine, key], risks[best, key]
        if one != other:
            return bool(one < other)
    for resource in (MEMORY, CPU):
        capacity, expected = CAPACITY + resource, EXPECTED + resource
        one_free = machines[machine, capacity] - machines[machine, expected]
        other_free = machines[best, capacity] - machines[best, expected]
        if one_free != other_free:
            return bool(one_free < other_free)
    return bool(ranks[machine] < ranks[best])


@merged_part
def _set_risks(
    risks: NDArray[np.int32], at: MachineTables, number: int, task: TaskUse, limits: RiskLimits
) -> None:
    """Both risks of one more task on a machine, that of memory first as it counts first."""
    most, steps = limits.most, limits.steps
    row, reached = at.table[number], at.reached[number]
    risks[number, 0] = risks[number, 1] = _IMPOSSIBLE
    for resource in range(RESOURCES):
        if _is_full(row, reached, task.row, resource, most[resource], steps[resource]):
            return
    cpu = _risk(row, reached, task.row, task.masses, CPU, most[CPU], steps[CPU])
    if cpu == _IMPOSSIBLE:
        return
    memory = _risk(row, reached, task.row, task.masses, MEMORY, most[MEMORY], steps[MEMORY])
    if memory == _IMPOSSIBLE:
        return
    risks[number, 0], risks[number, 1] = memory, cpu


@part
def _add_and_accumulate(at: MachineTables, number: int, task: TaskUse) -> None:
    """Let one more task run on a machine, whose requests stay as they are."""
    _add_task(at.table[number], at.masses[number], task.row, task.masses)
    _accumulate(at.table[number], at.masses[number], at.reached[number])


@bare_kernel
def tasks_that_fit(
    at: MachineTables, task: TaskUse, tasks: int, limits: RiskLimits, risks: NDArray[np.int32]
) -> int:
    """Count the tasks that the first machine takes, one after the other; its rows are changed.

    ``risks`` is room for one more machine.
    """
    _accumulate(at.table[0], at.masses[0], at.reached[0])
    for placed in range(tasks):
        _set_risks(risks, at, 0, task, limits)
        if risks[0, 0] == _IMPOSSIBLE:
            return placed
        _add_and_accumulate(at, 0, task)
    return tasks


@part
def _copy(
    at: MachineTables,
    number: int,
    risks: NDArray[np.int32],
    to: MachineTables,
    to_number: int,
    to_risks: NDArray[np.int32],
) -> None:
    """Copy all rows of a machine."""
    _copy_row(at.table[number], to.table[to_number])
    for resource in range(RESOURCES):
        to_risks[to_number, resource] = risks[number, resource]
        _copy_row(at.masses[number, resource], to.masses[to_number, resource])
        _copy_row(at.reached[number, resource], to.reached[to_number, resource])


@part
def _best_machine(risks: NDArray[np.int32], machines: Floats, ranks: Integers) -> int:
    """The machine where a task goes first; ``NOWHERE`` if none has room."""
    best = NOWHERE
    for machine in range(machines.shape[0]):
        if risks[machine, 0] == _IMPOSSIBLE:
            continue
        if best == NOWHERE or _comes_first(risks, machines, ranks, machine, best):
            best = machine
    return best


@part
def _place(
    at: MachineTables,
    risks: NDArray[np.int32],
    ranks: Integers,
    tasks: int,
    task: TaskUse,
    limits: RiskLimits,
    places: Integers,
    room: PlacingRoom,
) -> int:
    """Place the tasks of a job one by one, each where it goes first; how many machines that takes.

    0 if there is no room for all. The machines are as before afterwards: their rows
    are kept and put back. ``places`` has the machine of each task.
    """
    used_machines = 0
    placed = 0
    while placed < tasks:
        best = _best_machine(risks, at.table, ranks)
        if best == NOWHERE:
            break
        places[placed] = best
        placed += 1
        where = 0
        while where < used_machines and room.used[where] != best:
            where += 1
        if where == used_machines:
            room.used[where] = best
            room.counts[where] = 0
            used_machines += 1
            # Kept before the first task changes it.
            _copy(at, best, risks, room.kept, where, room.risks)
        room.counts[where] += 1
        if placed < tasks:
            _add_and_accumulate(at, best, task)
            _set_risks(risks, at, best, task, limits)
    for where in range(used_machines if tasks > 1 else 0):
        _copy(room.kept, where, room.risks, at, room.used[where], risks)
    return used_machines if placed == tasks else 0


@bare_kernel
def most_worth(
    jobs: Floats, job_tasks: Floats, job_masses: Floats, steps: Floats, bounds: Floats
) -> None:
    """Fill in what no start of each job now can exceed: its worth where nothing is in its way."""
    for job in range(jobs.shape[0]):
        bounds[job] = _most_worth(jobs[job], job_tasks[job], job_masses[job], steps[CPU])


@bare_kernel
def plan(
    at: MachineTables,
    ranks: Integers,
    jobs: Floats,
    tasks: TaskUse,
    bounds: Floats,
    by_bound: Integers,
    limits: RiskLimits,
    risks: NDArray[np.int32],
    looked: Integers,
    changed: Integers,
    state: Integers,
    worth: Floats,
    places: Integers,
    order: Integers,
    room: PlacingRoom,
) -> int:
    """Choose the job whose start is worth most, let it start, and so on (section 7.7).

    What a start is worth is found out only if it may be worth the most.

    Parameters
    ----------
    at
        The machines, changed as jobs start.
    ranks
        Their order by lot.
    jobs, tasks
        Rows of jobs, and of one task of each: rows, and masses of shape (jobs, resources, steps).
    bounds, by_bound
        What no start of a job exceeds, and the jobs by that, the most first.
    limits, room
        See there.
    risks
        Room: per job and machine, two numbers.
    looked, changed, state
        Room, zeros: per job, per machine, per job.
    worth, places
        Per job, what its start was worth; per job and task, its machine or ``NOWHERE``.
    order
        Is given the jobs that start, in this order.

    Returns
    -------
    int
        How many jobs start.
    """
    started = 0
    while True:
        best = NOWHERE
        for job in by_bound:
            if bounds[job] <= 0.0 or (
                best != NOWHERE
                and (bounds[job] < worth[best] or (bounds[job] == worth[best] and job > best))
            ):
                break  # nor can any of those that follow be worth more
            if state[job] == _GONE:
                continue
            task = TaskUse(tasks.row[job], tasks.masses[job])
            for machine in range(at.table.shape[0]):
                if looked[job] <= changed[machine]:
                    _set_risks(risks[job], at, machine, task, limits)
            looked[job] = started + 1
            count = int(jobs[job, TASKS])
            found = _place(at, risks[job], ranks, count, task, limits, places[job], room)
            if found == 0:
                state[job] = _GONE  # others that start leave it no more room
                continue
            worth[job] = expected_worth(at, room, found, jobs[job], task, limits.steps)
            if worth[job] > bounds[job] * (1.0 - _ROUNDING):
                worth[job] = bounds[job]
            if worth[job] > 0.0 and (
                best == NOWHERE
                or worth[job] > worth[best]
                or (worth[job] == worth[best] and job < best)
            ):
                best = job
        if best == NOWHERE:
            return started
        order[started] = best
        started += 1
        state[best] = _GONE
        count = int(jobs[best, TASKS])
        for first in range(count):
            machine = places[best, first]
            if changed[machine] == started:
                continue  # all that go there have been added
            there = 0
            for other in range(first, count):
                there += places[best, other] == machine
            row, masses = at.table[machine], at.masses[machine]
            add_tasks(row, masses, tasks.row[best], tasks.masses[best], there)
            _accumulate(row, masses, at.reached[machine])
            changed[machine] = started
