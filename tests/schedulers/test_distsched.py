"""DistSched by itself and in whole runs on nodes that tasks share."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from foresail.control.policy import NAMED_POLICIES, parse_policy
from foresail.distributions.empirical import Empirical
from foresail.distributions.point import Point
from foresail.metrics.deadlines import deadline_metrics
from foresail.model.allocation import Allocation
from foresail.model.resources import Resources
from foresail.scenario.learned_before import HistoryWorkload
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.schedulers._packing.machines import PackedMachines
from foresail.schedulers._packing.observed_use import ObservedUse
from foresail.schedulers._packing.plan import Candidate, choose
from foresail.schedulers._packing.restarting import work_knowing
from foresail.schedulers._packing.task_use import task_use
from foresail.schedulers.kernels import packing as kernel
from foresail.simulator.conditions import ClusterConditions
from foresail.traces import schema
from foresail.traces.generating import generate
from foresail.traces.generators.packing import PackingParameters
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

SYSTEMS = [name for name, text in NAMED_POLICIES.items() if text.startswith("distsched")]
SHARED = ClusterConditions(cycle_seconds=15.0, share_nodes=True)


@cache
def made(part):
    """A quarter of an hour on six machines, with more work than they can do."""
    parameters = PackingParameters(
        part=part, hours=0.25, history_hours=1.0, jobs=24, machines=6, most_tasks=12, load=1.2
    )
    return generate("packing", parameters, 2)


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
        other = watching.instead(allocation, Resources(cpus, 1.0), time, use, steps)
        use = use if other is None else other
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


@pytest.mark.parametrize("restarts", ["yes", "no"])
def test_tasks_do_not_evict_each_other_for_ever(restarts):
    """Four tasks look small and hold a third of the machine each, more and less by turns."""
    count, periods = 4, 6
    jobs = jobs_table(
        {
            "job_id": ["a"],
            "submit_seconds": [0.0],
            "runtime_seconds": [60.0 * periods],
            "tasks": [count],
            "memory_bytes_per_task": [1.0],
        }
    )
    tasks = tasks_table({"job_id": ["a"] * count, "task": range(count)})
    at = [(task, period) for task in range(count) for period in range(periods)]
    usage = usage_table(
        {
            "job_id": ["a"] * len(at),
            "task": [task for task, _ in at],
            "start_seconds": [60.0 * period for _, period in at],
            "end_seconds": [60.0 * (period + 1) for _, period in at],
            "average_cpus": [0.1] * len(at),
            "average_memory_bytes": [30.0 + 4.0 * ((task + period) % 3) for task, period in at],
        }
    )
    row = {"node": "n", "partition": "all", "count": 1, "cpus": 8.0, "memory_bytes": 100.0}
    nodes = pl.DataFrame([row], schema=schema.NODES)
    workload = Workload(jobs, WorkloadMeta("made", "made", 8), nodes, tasks, usage)
    schedule = run(f"distsched(restarts={restarts})", workload, conditions=SHARED)
    assert schedule.meta.counters["memory_evictions"] > 0
    assert schedule.jobs.filter(ended_because="completed").height == count


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
