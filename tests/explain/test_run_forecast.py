"""Forecasts by a run's log: with runtimes as they are believed, they are what then happened."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest

from believed_draws import draw_believed, forecast_waiting
from foresail.checks.rules import tiny_workload
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Uniform
from foresail.explain.outlook import outlook_of
from foresail.explain.run_forecast import controller_at, forecast_in_run, scenario_at
from foresail.model.errors import InputError
from foresail.model.event import IN_CYCLES, NodeRemoved
from foresail.record.log_text import read_log
from foresail.record.records import Manifest
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from made_workloads import random_workload

CPUS = 4


def all_at_once(count=40):
    """Jobs of one to four cpus that come together and run for as long as they ask for."""
    seconds = [10.0 * (1 + 7 * number % 23) for number in range(count)]
    return tiny_workload(
        [(0, 1 + 5 * number % CPUS, each, each) for number, each in enumerate(seconds)]
    )


def lived(folder, workload, policy, **options):
    """The records of a run, and when each of its jobs started and ended."""
    log = folder / "events.jsonl"
    scenario = Scenario(workload, parse_policy(policy), event_log=log, **options)
    table = run_scenario(scenario).jobs
    first, last = pl.col("start_seconds").min(), pl.col("end_seconds").max()
    spans = table.group_by("job_id").agg(first, last).rows()
    return list(read_log(log)), {job_id: span for job_id, *span in spans}


def forecasts(records, now, policy=None, scenarios=1):
    scenario = scenario_at(records, now, policy)
    controller, _ = controller_at(records, now, scenario)
    return {
        each.job.job_id: forecast_in_run(
            controller, scenario, each.job.job_id, now, draw_believed, scenarios=scenarios
        )
        for each in controller.pending
    }


def starts(found):
    return {job_id: each.start.median for job_id, each in found.items()}


@pytest.mark.parametrize(
    "policy", ["fcfs,requested", "conservative,requested", "easy(order=shortest),requested"]
)
def test_what_is_forecast_is_what_happens(policy, tmp_path):
    """Job by job, at a moment between two steps as well."""
    records, spans = lived(tmp_path, all_at_once(), policy)
    found = forecasts(records, 155.0)
    assert 10 < len(found) < 40
    for job_id, forecast in found.items():
        assert [forecast.start.median, forecast.end.median] == pytest.approx(spans[job_id])
        assert (forecast.never, forecast.misses) == (0.0, None)


def test_it_is_what_a_planner_on_nodes_does_in_its_cycles(tmp_path):
    """``priority`` orders no queue that forecasts know; it looks at jobs every ten seconds."""
    made = random_workload(3, 30)
    table = made.jobs.with_columns(submit_seconds=0.0 * made.jobs["submit_seconds"])
    made = made.with_jobs(table.with_columns(requested_seconds=table["runtime_seconds"]))
    cycle = ClusterConditions(cycle_seconds=10.0)
    policy = "priority,requested,exponential_increment"
    options = {"place": "nodes", "conditions": cycle, "enforce_limits": True}
    records, spans = lived(tmp_path, made, policy, **options)
    found = forecasts(records, 20.0)
    happened = {job_id: spans[job_id][0] for job_id in found}
    assert len(found) > 5
    assert starts(found) == pytest.approx(happened)
    scenario = scenario_at(records, 20.0)
    assert scenario.conventions_in_force == IN_CYCLES
    by_order = forecast_waiting(outlook_of(controller_at(records, 20.0, scenario)[0]), scenarios=1)
    assert starts(by_order) != pytest.approx(happened)


def test_nodes_that_were_known_to_go_go_in_what_follows(tmp_path):
    """Jobs start as they did, around a maintenance that was known, and otherwise not."""
    made = random_workload(3, 30)
    table = made.jobs.with_columns(submit_seconds=0.0 * made.jobs["submit_seconds"])
    made = made.with_jobs(table.with_columns(requested_seconds=table["runtime_seconds"]))
    node = next(name for name, *_ in made.nodes.rows())
    removed = NodeRemoved(60.0, node, known_from_seconds=5.0)
    goes = ClusterConditions(cycle_seconds=10.0, node_changes=(removed,))
    policy = "priority,requested,exponential_increment"
    options = {"place": "nodes", "conditions": goes, "enforce_limits": True}
    records, spans = lived(tmp_path, made, policy, **options)
    found = starts(forecasts(records, 20.0))
    happened = {job_id: spans[job_id][0] for job_id in found if spans[job_id][0] is not None}
    assert len(happened) > 5
    assert {job_id: found[job_id] for job_id in happened} == pytest.approx(happened)
    unknown = scenario_at(records, 4.0)
    assert unknown.conditions == ClusterConditions(cycle_seconds=10.0)
    assert scenario_at(records, 20.0).conditions.node_changes == (removed,)


def test_another_policy_may_take_over(tmp_path):
    """From then on jobs start as under that policy, and what runs runs on."""
    records, spans = lived(tmp_path, all_at_once(), "fcfs,requested")
    same = starts(forecasts(records, 100.0))
    other = starts(forecasts(records, 100.0, parse_policy("easy(order=shortest),requested")))
    assert set(same) == set(other)
    assert sum(other.values()) < 0.9 * sum(same.values())
    assert same == pytest.approx({job_id: spans[job_id][0] for job_id in same})


def test_ranges_by_hand(tmp_path):
    """One job runs for 10 s to 100 s, evenly, and has run for 20; the other starts when it ends."""
    records, _ = lived(tmp_path, tiny_workload([(0, 4, 60, 200), (0, 4, 60, 200)]), "fcfs")
    scenario = scenario_at(records, 20.0)
    controller, _ = controller_at(records, 20.0, scenario)
    for job_id in ("1", "2"):
        controller.state.believe_again(job_id, Uniform(10.0, 100.0), Uniform(10.0, 100.0))
    found = forecast_in_run(controller, scenario, "2", 20.0, draw_believed, scenarios=400)
    assert found.start.low == pytest.approx(28.0, abs=3.0)
    assert found.start.median == pytest.approx(60.0, abs=6.0)
    assert found.start.high == pytest.approx(92.0, abs=3.0)
    assert set(controller.running) == {"1"}  # it was only looked at


def test_who_never_starts_is_told(tmp_path):
    """A job that waits for one that runs into its limit is withdrawn."""
    made = tiny_workload([(0, 4, 50, 60), (1, 1, 10, 20)])
    table = made.jobs.with_columns(after_jobs=made.jobs["job_id"].replace({"1": None, "2": "1"}))
    records, _ = lived(tmp_path, made.with_jobs(table), "fcfs,requested")
    scenario = scenario_at(records, 2.0)
    controller, _ = controller_at(records, 2.0, scenario)
    belief = Uniform(70.0, 80.0)
    controller.state.believe_again("1", belief, belief)
    found = forecast_in_run(controller, scenario, "2", 2.0, draw_believed, scenarios=3)
    assert (found.never, found.start.low, found.end.high) == (1.0, math.inf, math.inf)


def test_what_cannot_be_forecast_is_refused(tmp_path):
    records, _ = lived(tmp_path, all_at_once(4), "fcfs,requested")
    manifest = next(each for each in records if isinstance(each, Manifest))

    def told(**changes):
        return [replace(manifest, **changes), *records[1:]]

    oracle = "fcfs,clairvoyant"
    for by_log, given in ((oracle, None), (oracle, parse_policy("fcfs"))):
        with pytest.raises(InputError, match="not known before"):
            scenario_at(told(policy=by_log), 1.0, given)
    with pytest.raises(InputError, match="not known before"):
        scenario_at(records, 1.0, parse_policy(oracle))
    with pytest.raises(InputError, match="tasks share nodes"):
        scenario_at(told(cluster=replace(manifest.cluster, shared=True)), 1.0)
    with pytest.raises(InputError, match="how long these were"):
        scenario_at(told(conventions=manifest.conventions.in_cycles()), 1.0)
    with pytest.raises(InputError, match="manifest"):
        scenario_at(records[1:], 1.0)
    scenario = scenario_at(records, 1e6)
    with pytest.raises(InputError, match="does not wait"):
        forecast_in_run(controller_at(records, 1e6, scenario)[0], scenario, "1", 1e6, draw_believed)
