"""Forecaster of starts: what it learns beside a policy, and what is drawn of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.explain import start_forecaster
from foresail.explain.common_factor import normal_value
from foresail.explain.job_columns import NO_JOBS, columns_of
from foresail.explain.outlook import outlook_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.kernels.columns import BELIEF_LEVELS
from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.event import Ended, Outcome, Submitted
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.record.job_life import EndedAttempt, JobHistory
from foresail.record.log_text import MemoryLog
from foresail.record.records import Manifest


class Sleepers:
    """So many jobs of one second, all submitted at once, on four cpus; the last is asked about."""

    def __init__(self, count, policy, requested_seconds=300.0):
        cluster = Cluster.of_processors(4)
        log = MemoryLog(Manifest(policy, cluster))
        self.controller = Controller(cluster, *parse_policy(policy).build(), log=log)
        self.forecaster = StartForecaster()
        self.last = f"{count - 1}"
        self.start = float((count - 1) // 4)
        jobs = [
            replace(Job.gang(f"{number}", 0.0, 1, requested_seconds, "u"), name="sleep")
            for number in range(count)
        ]
        self._step(0.0, [Submitted(0.0, job) for job in jobs])

    def _step(self, now, events):
        self.controller.step(now, events)
        self.forecaster.catch_up(self.controller.state.history)

    def second(self):
        begin = self.controller.now
        outcomes = [Outcome(job_id, begin, begin + 1.0) for job_id in self.controller.running]
        self._step(begin + 1.0, [Ended(begin + 1.0, outcome) for outcome in outcomes])

    def asked(self):
        """The forecast of the last one's start."""
        return self.forecaster.forecast(outlook_of(self.controller))[self.last].start


@pytest.mark.parametrize(("policy", "requested_seconds"), [("easy", 300.0), ("foresail", None)])
def test_a_new_application_is_unknown_until_some_of_it_have_ended(policy, requested_seconds):
    sleepers = Sleepers(300, policy, requested_seconds)
    first = sleepers.asked()
    assert first.high > 50.0 * first.low
    job = sleepers.controller.state.pending_job(sleepers.last).job
    assert sleepers.forecaster.ended_alike(job) == 0
    for ended, factor in ((4, 4.0), (8, 2.5), (12, 2.0), (40, 1.3)):
        while sleepers.controller.now < ended // 4:
            sleepers.second()
        found = sleepers.asked()
        assert sleepers.forecaster.ended_alike(job) == ended
        assert found.low - 1.0 <= sleepers.start <= found.high + 1.0
        assert found.high < factor * found.low


def test_the_first_job_of_an_application_may_reach_its_limit():
    queued = Sleepers(8, "easy").controller.state.pending_job("7")
    runtimes, _ = StartForecaster().draw(columns_of([queued]), (), 0.0, 300, 0)
    assert 0.02 < (runtimes == queued.job.requested_seconds).mean() < 0.15


def ended(names, took=30.0):
    """A forecaster that has seen jobs of one user of these names end, one after the other."""
    seconds = np.broadcast_to(took, len(names)).tolist()
    history, forecaster = JobHistory(), StartForecaster()
    for number, name in enumerate(names):
        job = named(name, number)
        history.submitted[job.job_id] = job
        begin, placement = float(number), Placement(())
        running = RunningJob(job, begin, number, placement, Point(60.0), begin + 60.0)
        outcome = Outcome(job.job_id, begin, begin + seconds[number])
        history.past.append(EndedAttempt(running, outcome, 60.0))
        forecaster.catch_up(history)
        history.forget([job.job_id] if number % 3 == 0 else [])
    forecaster.draw(NO_JOBS, (), 1000.0, 1, 0)
    return forecaster


def named(name, number=0):
    job = Job.gang(f"{name} {number}", float(number), 1, 600.0, "u")
    return replace(job, name=name)


def test_what_a_job_needs_goes_beyond_its_limit(monkeypatch):
    """A quarter of log-normal runtimes about 300 s is cut at 600 s: what is beyond is foreseen."""
    levels = np.array(BELIEF_LEVELS)
    whole = 300.0 * np.exp([normal_value(level) for level in levels])
    found = start_forecaster._without_limit(np.minimum(whole, 600.0), 600.0)
    assert found[:-1] == pytest.approx(whole[:-1], rel=0.2)
    forecaster = ended(["app"] * 60, np.minimum(whole, 600.0)[np.arange(60) * 7 % levels.size])
    needed = forecaster.needed_seconds(named("app", 50), 1e5)
    assert 0.1 < (needed >= 600.0).mean() < 0.4
    assert 600.0 < np.quantile(needed, 0.95) < np.quantile(needed, 0.99)


def test_of_a_long_queue_few_jobs_of_each_kind_are_followed(monkeypatch):
    monkeypatch.setattr(start_forecaster, "_MOST_KNOWN", 50)
    history, forecaster = JobHistory(), StartForecaster()
    for number in range(160):
        job = named("ab"[number // 80], number)
        history.submitted[job.job_id] = job
    forecaster.catch_up(history)
    forecaster.draw(NO_JOBS, (), 1000.0, 1, 0)
    names = [each.job.name for each in forecaster._in_flight.values()]
    assert [names.count(name) for name in "ab"] == [50, start_forecaster._FEWEST_ALIKE]


def test_numbers_in_names_tell_applications_apart_unless_they_count_runs():
    apart = ended([f"model{number % 2}" for number in range(12)])
    assert apart.ended_alike(named("model1")) == 6
    assert apart.ended_alike(named("model7")) == 0
    counted = ended([f"run_{number}" for number in range(12)])
    assert counted.ended_alike(named("run_99")) == 12
    assert counted.ended_alike(named("other")) == 0
