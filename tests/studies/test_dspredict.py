"""What jobs will use, as it is told to schedulers."""

from __future__ import annotations

import pytest

from foresail.control.policy import parse_policy
from foresail.model.cluster import Resources
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job, Stage
from foresail_studies.predictors.dspredict import (
    ActualUsage,
    UsageBelief,
    UsageHistory,
    UsageHistoryParameters,
)


def job(name, user="ann"):
    return Job(name, 0.0, (Stage(2, Resources(4.0, 100.0), together=False),), 900.0, user)


def told(belief):
    return {name: each.mean() for name, each in belief.per_task.items()}


def test_parts_are_learned_as_one_job():
    """Means of the tasks that completed, the most of the maxima; a part that went back is none."""
    predictor = UsageHistory(UsageHistoryParameters())
    most = UsageHistory(UsageHistoryParameters(of="maximum"))
    for each in (predictor, most):
        each.predict(job("a"), 0.0)
        for task, cpu in ((0, 1.0), (1, 3.0)):
            used = {"cpu": cpu, "cpu_max": 2 * cpu, "memory": 10.0, "memory_max": 20.0}
            used["cpu_time"] = 60.0 * cpu
            lost = Outcome("a", 0.0, 5.0, EndedBecause.LOST, tasks=(task,), used={"cpu_time": 9e9})
            each.part_ended(job("a"), lost)
            each.part_ended(job("a"), Outcome("a", 0.0, 60.0, tasks=(task,), used=used))
        each.observe(job("a"), Outcome("a", 0.0, 60.0))
    assert told(predictor.predict(job("b"), 99.0)) == {
        "cpu": 2.0,
        "memory": 10.0,
        "cpu_time": 120.0,
    }
    assert told(most.predict(job("b"), 99.0)) == {"cpu": 6.0, "memory": 20.0, "cpu_time": 120.0}
    assert predictor.predict(job("c"), 99.0).mean() == pytest.approx(60.0)


def test_without_history_the_request_is_believed():
    belief = UsageHistory(UsageHistoryParameters()).predict(job("a"), 0.0)
    assert told(belief) == {"cpu": 4.0, "memory": 100.0}
    assert belief.mean() == 900.0


def test_requests_and_points():
    """Requests stay what they are; a point is one value."""
    requested = UsageHistory(UsageHistoryParameters(resources="requested"))
    point = UsageHistory(UsageHistoryParameters(point=True))
    for each in (requested, point):
        for number, cpu in enumerate((1.0, 3.0, 5.0)):
            each.predict(job(str(number)), 0.0)
            used = {"cpu": cpu, "memory": 10.0, "cpu_time": 60.0 * cpu}
            each.observe(job(str(number)), Outcome(str(number), 0.0, 60.0, used=used))
    belief = requested.predict(job("b"), 99.0)
    assert told(belief)["cpu"] == 4.0
    assert told(belief)["cpu_time"] > 0.0
    cpu = point.predict(job("b"), 99.0).per_task["cpu"]
    assert cpu.quantile(0.01) == cpu.quantile(0.99)


def test_the_oracle_tells_what_it_was_shown():
    oracle = ActualUsage(UsageHistoryParameters(of="maximum"))
    oracle.reveal_use({"a": {"cpu": 1.0, "cpu_max": 2.0, "memory_max": 5.0, "cpu_time": 30.0}})
    belief = oracle.predict(job("a"), 0.0)
    assert told(belief) == {"cpu": 2.0, "memory": 5.0, "cpu_time": 30.0}
    assert belief.mean() == 15.0


def test_beliefs_about_runtimes_are_as_any(monkeypatch):
    """A policy that plans with runtimes can have this predictor."""
    belief = parse_policy("easy,usage").build()[1].predict(job("a"), 0.0)
    assert isinstance(belief, UsageBelief)
    assert belief.given(100.0).mean() == 900.0
    assert belief.scaled(2.0).mean() == 1800.0


def test_stages_that_ask_for_different_amounts_are_told_no_request():
    """Each has its own; a task of the job asks for (2 x 4 + 6 x 2) / 8 cpus on average."""
    stages = (
        Stage(2, Resources(4.0, 100.0), "map", together=False),
        Stage(6, Resources(2.0, 300.0), "reduce", ("map",), together=False),
    )

    def of_stages(name):
        return Job(name, 0.0, stages, 900.0, "ann")

    assert told(UsageHistory(UsageHistoryParameters()).predict(of_stages("a"), 0.0)) == {}
    requested = UsageHistory(UsageHistoryParameters(resources="requested"))
    requested.predict(of_stages("a"), 0.0)
    used = {"cpu": 1.0, "memory": 10.0, "cpu_time": 60.0}
    requested.observe(of_stages("a"), Outcome("a", 0.0, 60.0, used=used))
    belief = requested.predict(of_stages("b"), 99.0)
    assert told(belief) == {"cpu_time": 60.0}
    assert belief.mean() == pytest.approx(60.0 / 2.5)
