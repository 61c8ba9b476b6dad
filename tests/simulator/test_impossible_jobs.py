"""Jobs on nodes that ask for what cannot be: refused by name, or kept waiting with a reason."""

from __future__ import annotations

import math

import polars as pl
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import named_policies, parse_policy
from foresail.metrics.summary import deadline_metrics
from foresail.model.decision import ReasonCode, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import IN_CYCLES, Submitted, Tick
from foresail.model.job import DeadlineValue, DecayingValue
from foresail.simulator.conditions import ClusterConditions
from foresail.traces.nodes import cluster_of
from foresail.traces.schema import NODES
from foresail.traces.validation import validate
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate_on_nodes

PLANNING = sorted(
    name for name, text in named_policies().items() if text.startswith(("3sigma", "tetrisched"))
)
PUBLISHED = "-published"


def workload(**changes):
    """Three jobs on two racks of two nodes; the second is the one that is changed."""
    columns = {
        "job_id": ["a", "odd", "c"],
        "submit_seconds": [0.0, 0.0, 5.0],
        "runtime_seconds": [20.0, 20.0, 20.0],
        "requested_seconds": [30.0, 30.0, 30.0],
        "tasks": [1, 1, 2],
        "deadline_seconds": [90.0, None, None],
    }
    for name, value in changes.items():
        before = columns.get(name, [None, None, None])
        columns[name] = [before[0], value, before[2]]
    nodes = pl.DataFrame(
        {"node": ["r1", "r2"], "partition": ["one", "two"], "count": [2, 2], "cpus": [1.0, 1.0]},
    )
    nodes = nodes.select(
        pl.col(name).cast(kind) if name in nodes.columns else pl.lit(None, kind).alias(name)
        for name, kind in NODES.items()
    )
    meta = WorkloadMeta(source="made", reader="made", processors=4)
    return Workload(jobs_table(columns), meta, nodes=nodes)


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [("partition:three", "one, two"), ("attribute:gpu", "rack"), ("same:floor", "rack")],
)
def test_what_no_node_has_is_refused(preferred, expected):
    """The job, the column, what was found and what there is are named; validation counts it."""
    odd = workload(preferred=preferred, slowdown_elsewhere=1.5)
    with pytest.raises(InputError, match=f"job odd prefers.*{preferred}.*{expected}"):
        simulate_on_nodes(odd, parse_policy("tetrisched"))
    (finding,) = (each for each in validate(odd).findings if each.name == "unknown_preference")
    assert finding.count == 1
    assert "odd" in str(finding.example)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"deadline_seconds": math.nan}, "deadline_seconds"),
        ({"deadline_seconds": 50.0, "value": -1.0}, "value"),
        ({"deadline_seconds": 50.0, "value": math.inf}, "value"),
        ({"preferred": "nowhere:x"}, "preferred"),
        ({"preferred": "partition:one", "slowdown_elsewhere": 0.5}, "slowdown_elsewhere"),
    ],
)
def test_what_is_no_value_is_refused(changes, field):
    """By the name of the job and the column."""
    with pytest.raises(InputError, match=rf"made, field '{field}': job odd"):
        simulate_on_nodes(workload(**changes), parse_policy("3sigma"))


def test_value_functions_fall():
    """One that rises, never reaches nothing, or is negative, is none."""
    for start, zero, value in ((10.0, 10.0, 1.0), (10.0, 5.0, 1.0), (0.0, 10.0, -1.0)):
        with pytest.raises(InputError, match="out of range"):
            DecayingValue(start, zero, value)
    with pytest.raises(InputError, match="deadline_seconds"):
        DeadlineValue(math.nan)


@pytest.mark.parametrize("name", [name for name in PLANNING if not name.endswith(PUBLISHED)])
@pytest.mark.parametrize("deadline", [-10.0, 0.0, 1.0])
def test_hopeless_jobs_run(name, deadline):
    """A job that cannot meet its deadline runs on what no other job wants."""
    odd = workload(deadline_seconds=deadline)
    schedule = simulate_on_nodes(odd, parse_policy(name), ClusterConditions(cycle_seconds=2.0))
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")["job_id"].to_list()
    assert set(done) == {"a", "odd", "c"}
    assert schedule.meta.counters["refusals"] == 0


@pytest.mark.parametrize("name", ["tetrisched-published", "point-perfect-published"])
def test_hopeless_jobs_are_dropped_as_published(name):
    """A job that cannot meet its deadline is withdrawn, and counts as missed; the others run."""
    odd = workload(deadline_seconds=1.0)
    schedule = simulate_on_nodes(odd, parse_policy(name), ClusterConditions(cycle_seconds=2.0))
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")["job_id"].to_list()
    assert set(done) == {"a", "c"}
    assert deadline_metrics(schedule).slo_never_started == 1
    controller = Controller(
        cluster_of(odd.nodes), *parse_policy("tetrisched-published").build(), IN_CYCLES
    )
    jobs = [Submitted(job.submit_seconds, job) for job in odd.specifications()]
    told = controller.step(0.0, [*jobs, Tick(0.0)])
    gone = [each for each in told if isinstance(each, Withdraw)]
    assert [each.job_id for each in gone] == ["odd"]
    assert "hopeless_jobs=drop" in gone[0].because
    assert "odd" not in controller.pending


def test_jobs_without_a_deadline_are_never_dropped():
    """They are worth nothing after their horizon, and run on what no other job wants."""
    text = "tetrisched(hopeless_jobs=drop,best_effort_horizon_seconds=1)"
    schedule = simulate_on_nodes(
        workload(), parse_policy(f"{text},requested"), ClusterConditions(cycle_seconds=2.0)
    )
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")["job_id"].to_list()
    assert set(done) == {"a", "odd", "c"}


@pytest.mark.parametrize("name", [name for name in PLANNING if "perfect" not in name])
def test_a_job_that_is_too_wide(name):
    """A replay refuses it by name; live it waits, with a reason, and the others start."""
    odd = workload(tasks=9)
    with pytest.raises(InputError, match=r"job 'odd' .*the machine's 4"):
        simulate_on_nodes(odd, parse_policy(name))
    controller = Controller(cluster_of(odd.nodes), *parse_policy(name).build(), IN_CYCLES)
    jobs = [Submitted(job.submit_seconds, job) for job in odd.specifications()]
    controller.step(0.0, [*jobs, Tick(0.0)])
    assert set(controller.running) == {"a", "c"}
    reason = controller.reasons()["odd"]
    assert reason.code is ReasonCode.TOO_WIDE
    assert reason.numbers == {"cpus": 9.0, "total": 4.0}


def test_deadlines_in_the_past_are_found():
    """Validation counts them and names one."""
    findings = {each.name: each for each in validate(workload(deadline_seconds=-1.0)).findings}
    assert "odd" in str(findings["deadline_before_submission"].example)
