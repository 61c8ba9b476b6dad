"""Forecasts by a run's log: with runtimes as they are believed, they are what then happened."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from believed_draws import draw_believed, forecast_waiting
from foresail.checks.rules import tiny_workload
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Uniform
from foresail.explain import run_forecast as module
from foresail.explain.outlook import outlook_of
from foresail.explain.run_forecast import (
    controller_at,
    forecast_in_run,
    past_ranges,
    scenario_at,
)
from foresail.explain.run_futures import Failures
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.errors import InputError
from foresail.model.event import IN_CYCLES, Ended, NodeRemoved
from foresail.record.log_text import read_log
from foresail.record.records import EventTaken, Manifest
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
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


NODES = Cluster(
    (Partition("all", Resources(4.0), tuple(Node(f"n{n}", Resources(2.0)) for n in (1, 2))),)
)


def with_failures(folder, *outages):
    """A run on two nodes, of which one is down from 100 s on; then a job comes that needs both."""
    down = *outages, Outage("n1", 100.0, 1e5)
    conditions = ClusterConditions(outages=down)
    made = tiny_workload([(60, 2, 15, 20), (101, 4, 10, 20)])
    records, _ = lived(folder, made, "easy,requested", place=NODES, conditions=conditions)
    return records


def test_failures_are_counted_by_hand(tmp_path):
    """Two outages of 10 and 20 s are over, one has lasted for 5: 175 s up, 3 failures."""
    past = Outage("n1", 10.0, 20.0), Outage("n2", 30.0, 50.0)
    found = Failures.so_far(with_failures(tmp_path, *past), 105.0)
    assert (found.up_seconds, found.repair_seconds) == pytest.approx((175.0 / 3.0, 15.0))
    assert (found.down, found.ahead_seconds) == (frozenset({"n1"}), 1050.0)
    assert found.delay_seconds == 0.0


def test_a_node_that_is_down_comes_back_as_others_did(tmp_path, monkeypatch):
    """In half of the futures within 0.69 times the mean; where none has, at no known time."""
    hardly = replace(Failures(), repair_seconds=15.0, up_seconds=1e9, down=frozenset({"n1"}))
    records = with_failures(tmp_path)
    none, scenario = Failures.so_far(records, 105.0), scenario_at(records, 105.0)
    controller, _ = controller_at(records, 105.0, scenario)

    def ahead(failures):
        monkeypatch.setattr(Failures, "so_far", lambda *_: failures)
        return forecast_in_run(controller, scenario, "2", 105.0, draw_believed, scenarios=300)

    since = controller.now  # the last step
    assert ahead(hardly).start.median == pytest.approx(since + 15.0 * math.log(2.0), abs=2.0)
    assert ahead(hardly).never == 0.0
    assert ahead(none).never == 1.0


def test_nodes_that_fail_now_and_then_fail_in_futures(tmp_path, monkeypatch):
    """Work of 20 s that needs both nodes is lost with one each 15 s on average, and done again."""
    records = with_failures(tmp_path)
    scenario = scenario_at(records, 105.0)
    controller, _ = controller_at(records, 105.0, scenario)
    down = frozenset({"n1"})
    often, seldom = (Failures(0.0, up, 1.0, down, 1e4) for up in (30.0, 1e9))
    ends = []
    for each in (often, seldom):
        monkeypatch.setattr(Failures, "so_far", lambda *_: each)  # noqa: B023
        ends.append(forecast_in_run(controller, scenario, "2", 105.0, draw_believed).end)
    assert ends[0].median > ends[1].median + 10.0


def test_starts_take_as_long_as_they_did(tmp_path, monkeypatch):
    """Begun 3 and 5 s after the instructions; places are held for longer, and starts are later."""
    made = tiny_workload([(0, 4, 60, 60), (1, 4, 60, 60), (2, 4, 60, 60)])
    records, _ = lived(tmp_path, made, "fcfs,requested")
    late = {"1": 3.0, "2": 5.0}
    for at, each in enumerate(records):
        if isinstance(each, EventTaken) and isinstance(each.event, Ended):
            outcome = each.event.outcome
            begun = replace(
                outcome, start_seconds=outcome.start_seconds + late.get(outcome.job_id, 0)
            )
            records[at] = replace(each, event=replace(each.event, outcome=begun))
    assert Failures.so_far(records, 125.0).delay_seconds == 4.0
    scenario = scenario_at(records, 5.0)
    controller, _ = controller_at(records, 5.0, scenario)
    alone = [each.start.low for each in forecasts(records, 5.0).values()]
    assert alone == [60.0, 120.0]
    monkeypatch.setattr(Failures, "so_far", lambda *_: Failures(delay_seconds=40.0))
    found = forecast_in_run(controller, scenario, "2", 5.0, draw_believed, scenarios=200)
    assert found.start.low == pytest.approx(100.0 - 40.0 * math.log(0.9), abs=2.0)
    assert found.start.median == pytest.approx(100.0 + 40.0 * math.log(2.0), abs=8.0)


class Foresees:
    """Learns nothing, and draws a multiple of what jobs ask for."""

    factor = 1.0

    def catch_up(self, history):
        pass

    def draw(self, waiting, running, now, count, seed):
        asked = [each.job.requested_seconds for each in (*waiting.pending, *running)]
        drawn = np.tile(np.array(asked) * self.factor, (count, 1))
        return drawn[:, : len(waiting)], drawn[:, len(waiting) :]


@pytest.mark.parametrize(("factor", "known"), [(1.0, 70), (0.5, 96)])
def test_ranges_of_the_past_are_looked_back_at(factor, known, tmp_path, monkeypatch):
    """Jobs run as long as they ask for: who draws that was right each time, who half, never.

    One comes each 10 s, one starts each 100 s. Of those that waited at 50, 130, 210, 290 and 370 s
    70 have started by now, and 26 should have.
    """
    monkeypatch.setattr(Foresees, "factor", factor)
    monkeypatch.setattr(module, "StartForecaster", Foresees)
    made = tiny_workload([(10 * at, CPUS, 100, 100) for at in range(40)])
    records, _ = lived(tmp_path, made, "fcfs,requested")
    scenario = scenario_at(records, 2_000.0)
    controller, _ = controller_at(records, 2_000.0, scenario)
    held = past_ranges(records, 2_000.0, scenario, controller)
    assert held == [factor == 1.0] * known


def test_a_job_that_was_lost_and_waits_again_starts_when_it_starts_anew(tmp_path, monkeypatch):
    """It ran from 0 s, 30 s and 160 s on; who asked at 155 s was told of the last one."""
    monkeypatch.setattr(module, "StartForecaster", Foresees)
    outages = Outage("n1", 20.0, 30.0), Outage("n1", 150.0, 160.0)
    made = tiny_workload([(0, 4, 300, 300), (155, 4, 10, 10)])
    how = {"place": NODES, "conditions": ClusterConditions(outages=outages)}
    records, _ = lived(tmp_path, made, "easy,requested", **how)
    scenario = scenario_at(records, 200.0)
    controller, _ = controller_at(records, 200.0, scenario)
    assert past_ranges(records, 200.0, scenario, controller) == [True]


def test_a_node_that_is_down_fails_again_only_after_it_is_back():
    """Outages of each node follow one another, in every future."""
    failures = Failures(0.0, 20.0, 30.0, frozenset({"n1"}), 1_000.0)
    for seed in range(20):
        found = [each for each in failures.outages(NODES, 100.0, seed) if each.node == "n1"]
        assert (found[0].down_seconds, len(found) > 3) == (100.0, True)
        assert all(a.up_seconds <= b.down_seconds for a, b in pairwise(found))
