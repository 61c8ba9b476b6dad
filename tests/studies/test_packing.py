"""The goldens of the chapter on DistSched, and the plan against the obvious one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail_studies.schedulers._packing import Candidate, PackedMachines, choose, task_use
from foresail_studies.schedulers.kernels import packing as kernel
from long_series import of_a_series
from slow_packing import SlowJob, SlowMachine, slow_plan, worth_of


def packed(*capacities, bins=None, steps=(1.0, 1.0)):
    """Machines of these cpus and memories, with the given steps exactly."""
    table = np.array(capacities, dtype=np.float64)
    bins = bins or int((table / steps).max()) + 40
    machines = PackedMachines(table, bins)
    machines.steps = np.array(steps)
    return machines


def use_of(machines, cpu, memory, request=1.0):
    """What a task uses: probabilities by amount."""
    beliefs = [Empirical(list(each), list(each.values())) for each in (cpu, memory)]
    return task_use(*beliefs, request, machines.steps, machines.bins)


def worth_until(seconds, value=1.0):
    """Golden utilities: the value up to a deadline, nothing later."""
    return {"value": value, "full_seconds": seconds, "zero_seconds": seconds}


@pytest.mark.parametrize(
    ("arguments", "cpus"),
    [
        ((4, 1, 3, 0.8, 3.5, 1), 0.8),
        ((4, 1, 3, 2, 3.5, 1), 1.0),
        ((4, 1, 3, 2, 2.5, 1), 1.5),
        ((4, 1, 3, 2, 1.5, 1), 2.0),
        ((4, 1, 3, 5, 0, 1), 4.0),
        ((4, 1, 2, 2, 1, 2), 1.5),
        ((4, 1, 2, 2, 3, 2), 1.0),
    ],
)
def test_cpu_rule(arguments, cpus):
    """Golden G8."""
    *amounts, tasks = arguments
    found = kernel.actual_cpus(*map(float, amounts), tasks)
    assert found == pytest.approx(cpus)


def expected_worth(machines, candidate, places):
    """What starting a candidate is worth with its tasks on these machines."""
    used, counts = np.unique(np.asarray(places, np.int64), return_counts=True)
    reached = np.zeros_like(machines.masses)
    kernel.accumulate(machines.table, machines.masses, reached)
    at = kernel.MachineTables(machines.table, machines.masses, reached)
    room = kernel.PlacingRoom(
        used,
        counts.astype(np.int64),
        kernel.MachineTables(*(each[:0] for each in at)),
        np.zeros((0, 2), np.int32),
        np.zeros((used.size, 4)),
    )
    task, job = candidate.use, np.array(candidate.row)
    return float(kernel.expected_worth(at, room, used.size, job, task, machines.steps))


def evicted(machines, use, tasks):
    """The probability that nothing that a job is worth comes about."""
    return 1.0 - expected_worth(machines, Candidate(use, tasks, 0.0, 1.0, 1.0, 1.0), (0,) * tasks)


def test_eviction_probability():
    """Golden G10: equality is not eviction; all tasks of a job hold the same."""
    machines = packed((100, 10))
    machines.add(0, "running", use_of(machines, {0.0: 1.0}, {4: 0.5, 6: 0.3, 8: 0.2}))
    use = use_of(machines, {1.0: 1.0}, {1: 0.5, 3: 0.5})
    found = [evicted(machines, use, tasks) for tasks in (1, 2, 3, 4)]
    assert found == pytest.approx([0.10, 0.25, 0.60, 0.60])
    two = packed((100, 10), (100, 10))
    for machine in (0, 1):
        two.add(machine, machine, use_of(two, {0.0: 1.0}, {4: 0.5, 6: 0.3, 8: 0.2}))
    job = Candidate(use, 3, 1.0, **worth_until(math.inf))
    assert expected_worth(two, job, (0, 1, 1)) == pytest.approx(0.9 * 0.75)


def test_aggregate_use():
    """Golden G11, by memory; points add up exactly, whatever the steps."""
    machines = packed((10, 10), steps=(1.0, 1.0))
    one = use_of(machines, {0.3: 1.0}, {1: 0.5, 2: 0.5})
    machines.add(0, 1, one)
    machines.add(0, 2, use_of(machines, {0.4: 1.0}, {1: 0.25, 3: 0.75}))
    row = machines.table[0]
    assert row[kernel.LEAST + kernel.MEMORY] == 2.0
    assert machines.masses[0, kernel.MEMORY, :5] == pytest.approx([0.125, 0.125, 0.375, 0.375, 0.0])
    assert row[kernel.LEAST + kernel.CPU] == pytest.approx(0.7)
    assert row[kernel.HIGHEST + kernel.CPU] == 0.0
    machines.remove(0, 2)
    machines.add(0, 3, one)
    machines.add(0, 4, one)
    assert machines.masses[0, kernel.MEMORY, :4] == pytest.approx([0.125, 0.375, 0.375, 0.125])


def test_expected_worth():
    """Golden G12: T is 100 in three of four cases, 66.667 in one; an idle machine more is free."""
    machines = packed((2, 10), (2, 10), steps=(0.5, 1.0))
    machines.add(0, "running", use_of(machines, {0.5: 0.5, 2: 0.5}, {5: 0.9, 11: 0.1}))
    use = use_of(machines, {1: 0.5, 2: 0.5}, {0.0: 1.0})
    for deadline, worth in ((80.0, 0.25), (100.0, 1.0)):
        job = Candidate(use, 1, 100.0, **worth_until(deadline))
        assert expected_worth(machines, job, (0,)) == pytest.approx(0.9 * worth)
        assert expected_worth(machines, job, (0, 1)) == pytest.approx(0.9 * worth)
    falls = Candidate(use, 1, 100.0, value=1.0, full_seconds=0.0, zero_seconds=1000.0)
    mean = (1.0 - expected_worth(machines, falls, (0,)) / 0.9) * 1000.0
    assert mean == pytest.approx(91.667, abs=1e-3)


def test_order_of_machines():
    """Golden G25: risk of memory, risk of cpu, then the least that is free of both: B, A, C, D."""
    machines = packed((10, 104), (16, 102), (9, 101), (9, 101), steps=(1.0, 1.0), bins=200)
    none = {0.0: 1.0}
    beside = [({8: 1.0}, {100: 1.0}), ({8: 1.0}, {100: 1.0})]
    beside += [({8 - 2 / 9: 0.9, 10.0: 0.1}, {100: 1.0}), ({8.0: 1.0}, {100: 0.98, 102.0: 0.02})]
    for machine, (cpu, memory) in enumerate(beside):
        machines.add(machine, machine, use_of(machines, cpu, memory))
    job = Candidate(use_of(machines, none, none), 1, 0.0, **worth_until(9.0))
    found = []
    for _ in range(4):
        (choice,) = choose(machines, [job], (0.5, 0.5))
        found.append("ABCD"[choice.machines[0]])
        machines.table[choice.machines[0], kernel.CAPACITY] = -1.0
    assert "".join(found) == "BACD"


def falling(seconds, value, full, zero, least):
    if seconds <= full:
        return value
    if zero <= full:
        return least
    return max(value * (1.0 - (seconds - full) / (zero - full)), least)


amounts = st.dictionaries(st.integers(0, 6).map(float), st.integers(1, 4), min_size=1, max_size=3)


@st.composite
def problems(draw):
    """A few machines with something running, and jobs of one to three tasks; all in whole steps."""
    capacities = st.tuples(st.integers(4, 12).map(float), st.integers(6, 12).map(float))
    machines = draw(st.lists(capacities, min_size=1, max_size=4))
    running = draw(
        st.lists(
            st.tuples(st.integers(0, len(machines) - 1), amounts, amounts, st.integers(1, 4)),
            max_size=5,
        )
    )
    job = st.tuples(
        *(amounts, amounts, st.integers(1, 4), st.integers(1, 3)),
        *(st.integers(1, 100), st.integers(-20, 60), st.integers(0, 100)),
        st.sampled_from([0.0, 1e-3]),
    )
    jobs = draw(st.lists(job, min_size=1, max_size=5))
    risks = draw(st.sampled_from([(0.0, 0.0), (0.1003, 0.0507), (0.3011, 0.4003)]))
    return machines, running, jobs, risks


def normal(weights):
    return {amount: weight / sum(weights.values()) for amount, weight in weights.items()}


@given(problems())
@settings(deadline=None, max_examples=of_a_series(300, short=75))
def test_it_is_the_obvious_plan(problem):
    """The same jobs in the same order on the same machines, worth the same."""
    capacities, running, drawn, (most_cpu, most_memory) = problem
    machines = packed(*capacities, bins=80)
    slow = [SlowMachine(*each) for each in capacities]
    for number, (machine, cpu, memory, request) in enumerate(running):
        cpu, memory = normal(cpu), normal(memory)
        machines.add(machine, number, use_of(machines, cpu, memory, float(request)))
        slow[machine] = slow[machine].after(SlowJob(cpu, memory, float(request), 0, 0, None))
    candidates, slow_jobs = [], []
    for number, (cpu, memory, request, tasks, work, full, falls, least) in enumerate(drawn):
        cpu, memory = normal(cpu), normal(memory)
        value = 10.0 + number
        amounts = (value, float(full), float(full + falls), least)
        use = use_of(machines, cpu, memory, float(request))
        candidates.append(Candidate(use, tasks, float(work), *amounts))
        slow_jobs.append(
            SlowJob(
                *(cpu, memory, float(request), float(work), tasks),
                lambda seconds, amounts=amounts: falling(seconds, *amounts),
            )
        )
    ranks = machines.ranks.tolist()
    expected = slow_plan(slow, slow_jobs, most_cpu, most_memory, ranks)
    found = choose(machines, candidates, (most_cpu, most_memory))
    assert [(each.candidate, each.machines) for each in found] == [each[:2] for each in expected]
    assert [each.worth for each in found] == pytest.approx([each[2] for each in expected])
    for candidate, job in zip(candidates, slow_jobs, strict=True):
        everywhere = tuple(range(len(slow)))
        worth = expected_worth(machines, candidate, everywhere)
        assert worth == pytest.approx(worth_of(job, slow, everywhere), abs=1e-9)


@given(
    st.lists(st.tuples(amounts, amounts), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.data(),
)
@settings(deadline=None, max_examples=100)
def test_tasks_that_leave_leave_nothing(jobs, tasks, data):
    """Whatever comes and goes, what is used is that of the tasks that are left, added up.

    To the last bit: a run that goes on from a record adds up the same.
    """
    machines = packed((50, 50), bins=60)
    jobs = [(normal(cpu), normal(memory)) for cpu, memory in jobs]
    of = {n: job % len(jobs) for n, job in enumerate(tasks)}
    uses = [use_of(machines, cpu, memory) for cpu, memory in jobs]
    for number, job in of.items():
        machines.add(0, number, uses[job])
    for number in data.draw(st.permutations(sorted(of)))[: data.draw(st.integers(0, 6))]:
        machines.remove(0, number)
    fresh = packed((50, 50), bins=60)
    slow = SlowMachine(50.0, 50.0)
    for number in machines.tasks_on(0):
        fresh.add(0, number, uses[of[number]])
    assert np.array_equal(machines.table[0], fresh.table[0])
    assert np.array_equal(machines.masses[0], fresh.masses[0])
    for job, left in Counter(of[number] for number in machines.tasks_on(0)).items():
        slow = slow.after(SlowJob(*jobs[job], 1.0, 0.0, left, None), left)
    for resource, expected in ((kernel.CPU, slow.cpu_used), (kernel.MEMORY, slow.memory_used)):
        least = machines.table[0, kernel.LEAST + resource]
        found = machines.masses[0, resource]
        for amount, probability in expected.items():
            assert found[round(amount - least)] == pytest.approx(probability, abs=1e-9)


def test_points_have_risks_of_nothing_or_all():
    """Three tasks of 0.3 fit a machine of 0.9, on steps of 0.25; a fourth does not."""
    machines = packed((0.9, 1.0), bins=8, steps=(0.25, 0.25))
    use = task_use(Point(0.3), Point(0.1), 1.0, machines.steps, machines.bins)
    jobs = [Candidate(use, 1, 1.0, **worth_until(10.0)) for _ in range(4)]
    assert len(choose(machines, jobs, (0.5, 0.5))) == 3
