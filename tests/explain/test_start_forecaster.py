"""Forecaster of starts: what it learns beside a policy, and what is drawn of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.outlook import outlook_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Cluster
from foresail.model.event import Ended, Submitted
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.record.log import MemoryLog
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


@pytest.mark.parametrize("policy", ["easy", "easy,recent,incremental", "foresail"])
@pytest.mark.parametrize("requested_seconds", [300.0, None])
def test_a_new_application_is_unknown_until_some_of_it_have_ended(policy, requested_seconds):
    sleepers = Sleepers(300, policy, requested_seconds)
    first = sleepers.asked()
    assert first.high > 50.0 * first.low
    job = sleepers.controller.state.pending_job(sleepers.last).job
    assert sleepers.forecaster.ended_alike(job) == 0
    for ended, factor in ((4, 4.0), (8, 2.5), (12, 2.0), (40, 1.3)):
        while sleepers.forecaster.ended_alike(job) < ended:
            sleepers.second()
            sleepers.asked()
        found = sleepers.asked()
        assert found.low - 1.0 <= sleepers.start <= found.high + 1.0
        assert found.high < factor * found.low
