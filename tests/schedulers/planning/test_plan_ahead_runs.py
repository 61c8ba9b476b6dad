"""Whole runs of schedulers that plan ahead: on nodes, in cycles, under every name."""

import numpy as np
import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import named_policies, parse_policy
from foresail.model.event import IN_CYCLES, Outcome
from foresail.model.registry import find
from foresail.simulator.conditions import ClusterConditions, Outage
from foresail.simulator.engine import simulate_events
from foresail.traces.nodes import cluster_of
from foresail.traces.schema import NODES
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate_on_nodes

PLANNING = sorted(
    name
    for name, text in named_policies().items()
    if text.startswith(("3sigma", "tetrisched")) and not name.endswith("-published")
)
"""Those that drop no job."""


def e2e(part, hours, nodes, seed):
    """A workload of 3Sigma's recipe."""
    entry = find("generator", "e2e")
    made = entry.build(entry.parameters(part=part, hours=hours, nodes=nodes, history_hours=5.0))
    return made.generate(np.random.default_rng(seed))


def run(name, workload, history=None, *, cycle=10.0, outages=()):
    """The schedule of a policy whose predictor has learned from a history."""
    scheduler, predictor, correction = parse_policy(name).build()
    if history is not None and name != "point-perfect":
        truth = history.truth()
        for job in history.specifications():
            predictor.predict(job, job.submit_seconds)
            end = job.submit_seconds + truth[job.job_id]
            predictor.observe(job, Outcome(job.job_id, job.submit_seconds, end))
    controller = Controller(cluster_of(workload.nodes), scheduler, predictor, correction, IN_CYCLES)
    conditions = ClusterConditions(cycle_seconds=cycle, outages=outages)
    return simulate_events(workload, controller, name, conditions=conditions)


def missed(workload, schedule):
    """How many jobs with a deadline were not done by it."""
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")
    jobs = workload.jobs.filter(pl.col("deadline_seconds").is_not_null())
    ends = jobs.join(done.select("job_id", "end_seconds"), on="job_id", how="left")
    kept = ends["end_seconds"] <= ends["deadline_seconds"] + 1e-6
    return jobs.height - int(kept.fill_null(False).sum())


@pytest.mark.parametrize("name", PLANNING)
def test_every_job_is_run(name):
    """Under every name all jobs that fit end, some after an outage, and nothing is refused."""
    workload = e2e("run", 0.25, 64, 3)
    outages = (Outage("rack1-1", 100.0, 400.0),)
    names = {node.name for p in cluster_of(workload.nodes).partitions for node in p.nodes}
    outages = tuple(each for each in outages if each.node in names) or (
        Outage(min(names), 100.0, 400.0),
    )
    schedule = run(name, workload, e2e("history", 0.25, 64, 3), outages=outages)
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")
    assert sorted(done["job_id"]) == sorted(workload.jobs["job_id"])
    assert schedule.meta.counters["refusals"] == 0
    assert schedule.meta.counters["never_started"] == 0


def test_distributions_miss_fewer_deadlines_than_points():
    """3Sigma's claim, as an order: fewer misses than the same scheduler with point estimates."""
    workload, history = e2e("run", 1.0, 256, 1), e2e("history", 1.0, 256, 1)
    sigma = missed(workload, run("3sigma", workload, history, cycle=20.0))
    point = missed(workload, run("point-real", workload, history, cycle=20.0))
    assert sigma < point


def test_late_jobs_do_not_stop_each_other_in_turn():
    """Three jobs that are worth something after their deadlines take turns on one node, once."""
    rows = {
        "job_id": ["a", "b", "c"],
        "submit_seconds": [0.0, 1.0, 2.0],
        "runtime_seconds": [300.0, 300.0, 300.0],
        "tasks": [1, 1, 1],
        "deadline_seconds": [60.0, 61.0, 62.0],
    }
    nodes = pl.DataFrame({"node": ["n"], "partition": ["r"], "count": [1], "cpus": [1.0]})
    nodes = nodes.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in NODES.items() if name not in nodes.columns
    )
    meta = WorkloadMeta(source="made", reader="made", processors=1)
    made = Workload(jobs_table(rows), meta, nodes=nodes)
    policy = parse_policy("3sigma(over_estimates=on),clairvoyant,exponential_increment")
    schedule = simulate_on_nodes(made, policy, ClusterConditions(cycle_seconds=2.0))
    assert schedule.jobs["ended_because"].to_list() == ["completed"] * 3
    assert schedule.jobs["end_seconds"].max() < 920.0
