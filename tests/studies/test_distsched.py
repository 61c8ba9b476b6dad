"""DistSched by itself and in whole runs on nodes that tasks share."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from foresail.control.policy import named_policies, parse_policy
from foresail.distributions.basic import Point
from foresail.distributions.empirical import Empirical
from foresail.metrics.summary import deadline_metrics
from foresail.model.cluster import Resources
from foresail.model.event import Allocation
from foresail.scenario.learned_before import HistoryWorkload
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.traces import schema
from foresail.traces.generating import generate
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators.packing import PackingParameters
from foresail_studies.schedulers._packing import (
    Candidate,
    ObservedUse,
    PackedMachines,
    choose,
    make_way,
    most_at_once,
    task_use,
    work_knowing,
)
from foresail_studies.schedulers.kernels import packing as kernel

SYSTEMS = [name for name, text in named_policies().items() if text.startswith("distsched")]
SHARED = ClusterConditions(cycle_seconds=15.0, share_nodes=True)


@cache
def made(part):
    """A quarter of an hour on six machines, with more work than they can do."""
    parameters = PackingParameters(
        part=part, hours=0.25, history_hours=1.0, jobs=24, machines=6, most_tasks=12, load=1.2
    )
    return generate("packing", parameters, 4)


def run(policy, workload, **options):
    return run_scenario(Scenario(workload, parse_policy(policy), "nodes", **options))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_runs_whole(system):
    """All that starts completes, task by task; nothing is refused; the same again is the same."""
    options = {"conditions": SHARED, "learned_before": HistoryWorkload(made("history"))}
    schedule = run(system, made("run"), **options)
    assert schedule.meta.counters["refusals"] == 0
    rows = schedule.jobs.filter(pl.col("start_seconds").is_not_null())
    done = rows.filter(ended_because="completed").group_by("job_id").len()
    tasks = made("run").jobs.select("job_id", "tasks")
    assert done.join(tasks, on="job_id").filter(pl.col("len") != pl.col("tasks")).is_empty()
    assert done.height == made("run").jobs.height - schedule.meta.counters["never_started"]
    assert done.height > 12
    again = run(system, made("run"), **options)
    assert again.jobs.equals(schedule.jobs)
    assert deadline_metrics(schedule).slo_jobs == 12


def test_more_runs_than_was_asked_for_has_room():
    """At some time the tasks of a node ask for more cpus together than it has."""
    rows = run("actual", made("run"), conditions=SHARED).jobs.drop_nulls("start_seconds")
    cpus = made("run").jobs.select("job_id", "cpus_per_task")
    rows = rows.join(cpus, on="job_id")
    together = [
        rows.filter(
            pl.col("placement") == node,
            pl.col("start_seconds") <= time,
            pl.col("end_seconds") > time,
        )["cpus_per_task"].sum()
        for node, time in rows.select("placement", "start_seconds").iter_rows()
    ]
    assert max(together) > 8.0


def test_where_nodes_are_not_shared_tasks_use_what_they_asked_for():
    """And so they are never in each other's way: the check refuses nothing."""
    schedule = run("dist", made("run"), conditions=ClusterConditions(cycle_seconds=15.0))
    assert schedule.meta.counters["refusals"] == 0
    assert set(schedule.jobs["ended_because"].drop_nulls()) == {"completed"}


def test_work_of_a_task_that_begins_anew():
    """Golden G13."""
    work = Empirical([100.0, 300.0, 1000.0], [0.5, 0.25, 0.25])
    assert work_knowing(work, 150.0) == pytest.approx(650.0)
    assert work_knowing(work, 1200.0) == pytest.approx(2400.0)
    assert work_knowing(work, 0.0) == pytest.approx(work.mean())


def observed(believed, *seen):
    """The belief about cpus at last, of a task that is seen to use these, each at its time."""
    steps = np.array([0.1, 1.0])
    use = task_use(believed, Point(1.0), 1.0, steps, 32)
    watching, allocation = ObservedUse(), Allocation("a")
    for time, cpus in seen:
        for each in watching.open({allocation: Resources(cpus, 1.0)}):
            use = watching.instead(each, Resources(cpus, 1.0), time, use, steps) or use
    masses = use.masses[kernel.CPU]
    least = use.row[kernel.TASK_LEAST + kernel.CPU]
    return {round(least + 0.1 * at, 9): masses[at] for at in np.flatnonzero(masses > 1e-12)}


def test_what_was_seen_is_believed_once_it_is_always_above_what_was_possible():
    """Golden G14: 10 s of 0.2, 20 s of 0.5, 10 s of 0.2; not if it was once as believed."""
    seen = [(0.0, 0.2), (10.0, 0.5), (30.0, 0.2), (40.0, 0.2)]
    assert observed(Point(0.1), *seen) == pytest.approx({0.2: 0.5, 0.5: 0.5})
    assert observed(Point(0.2), *seen) == {0.2: 1.0}
    assert observed(Point(0.1), seen[0]) == {0.1: 1.0}


def test_contention_stops_tasks_without_deadlines():
    """Where preemption is allowed some are stopped, none with a deadline; otherwise none."""
    options = {"conditions": SHARED, "learned_before": HistoryWorkload(made("history"))}
    stopped = run("dist", made("run"), **options).jobs.filter(ended_because="preempted")
    assert stopped.height > 0
    assert stopped["deadline_seconds"].is_null().all()
    kept = run("dist-no-preempt", made("run"), **options)
    assert kept.meta.counters["preempted"] == 0


def hungry(jobs, tasks_of_each, memory, *, apart):
    """Jobs of equal tasks on one node of 100 bytes, which hold what ``memory`` says.

    All look as if they needed next to nothing.
    """
    periods = 6
    ids = [str(number) for number in range(jobs)]
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": [0.0] * jobs,
            "runtime_seconds": [60.0 * periods] * jobs,
            "tasks": [tasks_of_each] * jobs,
            "memory_bytes_per_task": [1.0] * jobs,
        }
    )
    at = [(job, task, n) for job in ids for task in range(tasks_of_each) for n in range(periods)]
    usage = usage_table(
        {
            "job_id": [job for job, _, _ in at],
            "task": [task for _, task, _ in at],
            "start_seconds": [60.0 * n for _, _, n in at],
            "end_seconds": [60.0 * (n + 1) for _, _, n in at],
            "average_cpus": [0.1] * len(at),
            "average_memory_bytes": [memory(task, n) for _, task, n in at],
        }
    )
    tasks = tasks_table(
        {"job_id": ids * tasks_of_each, "task": sorted([*range(tasks_of_each)] * jobs)}
    )
    row = {"node": "n", "partition": "all", "count": 1, "cpus": 8.0, "memory_bytes": 100.0}
    nodes = pl.DataFrame([row], schema=schema.NODES)
    return Workload(table, WorkloadMeta("made", "made", 8), nodes, tasks if apart else None, usage)


@pytest.mark.parametrize("restarts", ["yes", "no"])
@pytest.mark.parametrize("apart", [True, False])
def test_tasks_do_not_evict_each_other_for_ever(restarts, apart):
    """They hold a third of the machine each, more and less by turns; alone or two together."""
    shape = (1, 4) if apart else (2, 2)
    workload = hungry(*shape, lambda task, n: 30.0 + 4.0 * ((task + n) % 3), apart=apart)
    schedule = run(f"distsched(restarts={restarts})", workload, conditions=SHARED)
    assert schedule.meta.counters["memory_evictions"] > 0
    assert schedule.jobs.filter(ended_because="completed").height == (4 if apart else 2)


def machines_of(*capacities, bins=64):
    return PackedMachines(np.array(capacities, dtype=np.float64), bins)


@given(
    st.lists(st.floats(0.01, 30.0), min_size=1, max_size=6),
    st.lists(st.floats(0.01, 200.0), min_size=1, max_size=6),
)
@settings(deadline=None, max_examples=100)
def test_whatever_is_believed_of_a_task_the_largest_machine_has_room_for_it(cpus, memory):
    """No belief keeps a task from ever starting: what runs at all uses no more than a machine."""
    machines = machines_of((4.0, 50.0), (8.0, 100.0))
    believed = Empirical(cpus, [1.0] * len(cpus)), Empirical(memory, [1.0] * len(memory))
    use = task_use(*believed, 1.0, machines.steps, machines.bins)
    (choice,) = choose(machines, [Candidate(use, 1, 0.0, 1.0, 9.0, 9.0)], (0.0, 0.0))
    assert choice.worth == pytest.approx(1.0)


def test_how_many_tasks_start_at_once():
    """As many as empty machines take by the risks that are allowed, not as many as expected."""
    machines = machines_of((8.0, 100.0), (8.0, 100.0), (4.0, 100.0), bins=81)
    use = task_use(Empirical([1.0, 4.0], [0.5, 0.5]), Point(1.0), 1.0, machines.steps, 81)
    assert most_at_once(machines.empty(), use, 99, (0.1, 0.05)) == 2 + 2 + 1
    assert most_at_once(machines.empty(), use, 99, (0.6, 0.05)) == 3 + 3 + 1  # 9 or more: half
    assert most_at_once(machines.empty(), use, 3, (0.1, 0.05)) == 3
    machines.offer(np.array([False, False, True]))
    assert most_at_once(machines.empty(), use, 99, (0.1, 0.05)) == 1


def stream(together):
    """Two nodes that short jobs keep busy, one of them at least; a job that needs both."""
    short = 40
    ids = ["wide", *(str(number) for number in range(short))]
    table = jobs_table(
        {
            "job_id": ids,
            "submit_seconds": [10.0, *(60.0 * number for number in range(short))],
            "runtime_seconds": [100.0] * (short + 1),
            "tasks": [2, *[1] * short],
            "cpus_per_task": [8.0] * (short + 1),
        }
    )
    tasks = (
        None
        if together
        else tasks_table(
            {"job_id": ["wide", "wide"], "task": [0, 1], "runtime_seconds": [100.0, 100.0]}
        )
    )
    row = {"node": "n", "partition": "all", "count": 2, "cpus": 8.0, "memory_bytes": 1.0}
    nodes = pl.DataFrame([row], schema=schema.NODES)
    return Workload(table, WorkloadMeta("made", "made", 16), nodes, tasks, None)


@pytest.mark.parametrize("together", [True, False])
def test_no_job_waits_for_ever_behind_those_that_come_after_it(together):
    """What has waited for ten minutes goes first, and room is made for it."""
    options = {"conditions": ClusterConditions(cycle_seconds=15.0)}
    policy = "distsched(patience_seconds={})"
    ends = {}
    for patience in (600, 100_000):
        jobs = run(policy.format(patience), stream(together), **options).jobs
        assert jobs["ended_because"].unique().to_list() == ["completed"]
        ends[patience] = jobs.filter(job_id="wide")["start_seconds"].max()
    assert ends[600] <= 10.0 + 600.0 + 15.0 + 100.0 + 100.0
    assert ends[100_000] > 1500.0


def test_a_gang_for_which_no_room_is_safe_starts_where_nothing_else_runs():
    """It may use more than there is, on any machines; it is tried once these are empty."""
    machines = machines_of((8.0, 100.0), (8.0, 100.0), bins=81)
    risky = task_use(Empirical([4.0, 6.0], [0.5, 0.5]), Point(1.0), 1.0, machines.steps, 81)
    gang = Candidate(risky, 4, 1.0, 1.0, 9.0, 9.0)
    small = task_use(Point(1.0), Point(1.0), 1.0, machines.steps, 81)
    machines.add(0, "other", small)
    assert make_way(machines, [gang], (0.1, 0.05)) == ({0, 1}, ())
    machines.remove(0, "other")
    kept_free, (choice,) = make_way(machines, [gang], (0.1, 0.05))
    assert (kept_free, sorted(choice.machines)) == ({0, 1}, [0, 0, 1, 1])
    fits = Candidate(small, 4, 1.0, 1.0, 9.0, 9.0)
    assert make_way(machines, [fits], (0.1, 0.05)) == (set(), ())


def optimum(worths, uses, capacities):
    """The best that any choice of jobs and places is worth (section 7.6), of one task each."""
    jobs, machines = len(worths), len(capacities)
    costs = -np.repeat(worths, machines)
    once = np.kron(np.eye(jobs), np.ones(machines))
    rows = [once]
    bounds = [np.ones(jobs)]
    for resource in range(2):
        rows.append(np.kron(uses[:, resource], np.eye(machines)))
        bounds.append(capacities[:, resource])
    constraint = LinearConstraint(np.vstack(rows), ub=np.concatenate(bounds))
    found = milp(costs, constraints=constraint, integrality=1, bounds=Bounds(0, 1))
    return -found.fun


def test_greedy_against_the_best_choice():
    """Points, so that nothing is uncertain: never better, and hardly worse on average."""
    random = np.random.default_rng(5)
    shares = []
    for _ in range(40):
        capacities = random.integers(4, 9, (2, 2)).astype(float)
        uses = random.integers(1, 5, (7, 2)).astype(float)
        worths = random.integers(1, 20, 7).astype(float)
        machines = PackedMachines(capacities, 16)
        candidates = [
            Candidate(
                task_use(Point(cpus), Point(memory), 1.0, machines.steps, machines.bins),
                *(1, 1.0, worth, 10.0, 10.0),
            )
            for (cpus, memory), worth in zip(uses, worths, strict=True)
        ]
        greedy = sum(each.worth for each in choose(machines, candidates, (0.1, 0.05)))
        best = optimum(worths, uses, capacities)
        assert greedy <= best + 1e-6
        shares.append(greedy / best)
    assert np.mean(shares) > 0.9
