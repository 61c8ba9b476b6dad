"""Live cases by a clock that runs faster: in how many of them jobs start within their ranges.

The event engine stands in for the cluster; forecasts are kept, compared and corrected by what the
service does it with.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import chain

import numpy as np
import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.explain.job_columns import NO_JOBS, columns_of
from foresail.explain.outlook import outlook_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Cluster
from foresail.service import queue_forecasts as service
from foresail.service.store.protocol import ForecastKind, ForecastOutcome
from foresail.simulator.engine import simulate_events
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from long_series import of_a_series

CPUS = 4


@dataclass(frozen=True)
class Asked:
    """Questions, what was answered (10, 50 and 90 %), and what came about; by row."""

    moments: np.ndarray
    stated: np.ndarray
    starts: np.ndarray
    unknown: np.ndarray
    ended_alike: np.ndarray

    def some(self, which):
        return Asked(*(getattr(self, each.name)[which] for each in fields(self)))

    def held(self):
        """The share of starts within their ranges."""
        low, _, high = self.stated.T
        return float(((low <= self.starts) & (self.starts <= high)).mean())


class KeptForecasts:
    """Log of a controller: forecasts of jobs at submission and at each doubling of their wait.

    All that wait are asked about at some moments as well.
    """

    def __init__(self, policy, moments=()):
        scheduler, predictor, correction = parse_policy(policy).build()
        cluster = Cluster.of_processors(CPUS)
        self.controller = Controller(cluster, scheduler, predictor, correction, log=self)
        self._moments = moments
        self._starts = StartForecaster()
        self._rows, self._submitted, self._ended_alike = [], [], []
        self._started, self._kept, self._columns = {}, {}, NO_JOBS

    def append(self, record):
        """Take one record."""

    def commit(self):
        """A step is whole."""
        state, now = self.controller.state, self.controller.now
        for runs in state.running_roster.in_order():
            self._started.setdefault(runs.job.job_id, runs.start_seconds)
        self._starts.catch_up(state.history)
        waits = [each for roster in state.pending_rosters for each in roster.by_id.values()]
        jobs = {each.job.job_id: each.job for each in waits}
        kept = {} if now in self._moments else self._kept
        self._columns = columns_of(waits, self._columns)
        if (service.due_times(self._columns, kept) > now).all():
            return
        outlook = outlook_of(self.controller, (), state.history, self._columns)
        past = service.PastForecasts.from_outcomes([*self._outcomes(now)])
        made = service.drawn_forecasts(outlook, self._starts, past)
        rows = [*chain.from_iterable(made.due_rows(kept, {}))]
        self._rows += rows
        self._submitted += [jobs[row.job_id].submit_seconds for row in rows]
        self._ended_alike += [self._starts.ended_alike(jobs[row.job_id]) for row in rows]
        self._kept |= {row.job_id: now for row in rows}

    def _outcomes(self, now):
        """Yield what the store would."""
        for row, submitted in zip(self._rows, self._submitted, strict=True):
            start = self._started.get(row.job_id)
            seconds, has_started = now if start is None else start, start is not None
            if has_started or row.made_seconds + row.drawn_low_seconds < 2.0 * now:
                yield ForecastOutcome(row, submitted, seconds, has_started)

    def asked(self):
        stated = [(row.low_seconds, row.median_seconds, row.high_seconds) for row in self._rows]
        return Asked(
            np.array([row.made_seconds for row in self._rows]),
            np.array(stated),
            np.array([self._started[row.job_id] for row in self._rows]),
            np.array([row.kind is ForecastKind.UNKNOWN for row in self._rows]),
            np.array(self._ended_alike),
        )


@pytest.fixture(autouse=True)
def asked_at_submission(monkeypatch):
    """Not a second later, for who waits now is known; of a third of the futures."""
    monkeypatch.setattr(service, "_AT_ONCE_SECONDS", 0.0)
    monkeypatch.setattr(service, "SCENARIOS", 100)


def simulated(policy, columns, moments=()):
    """What was asked of jobs under a policy."""
    ids = [f"j{number}" for number in range(len(columns["tasks"]))]
    kept = KeptForecasts(policy, moments)
    jobs = jobs_table({"job_id": ids, **columns})
    simulate_events(Workload(jobs, WorkloadMeta("made", "hand", CPUS)), kept.controller, policy)
    return kept.asked()


def joined(several):
    """The questions of several series."""
    names = [each.name for each in fields(Asked)]
    return Asked(*(np.concatenate([getattr(each, name) for each in several]) for name in names))


def five_applications(seed, jobs, load, has_limits):
    """Jobs of five users, each of one application, with log-normal runtimes."""
    random = np.random.default_rng(seed)
    medians = np.array([8.0, 20.0, 40.0, 80.0, 160.0])
    deviations = np.array([0.3, 0.9, 0.5, 0.7, 0.5])
    cpus = np.array([1, 1, 2, 1, 4])
    limits = medians * (8.0, 12.0, 6.0, 10.0, 3.0)
    which = random.choice(5, jobs, p=(0.3, 0.25, 0.2, 0.15, 0.1))
    runtimes = medians[which] * np.exp(deviations[which] * random.standard_normal(jobs))
    work = (medians * np.exp(deviations**2 / 2.0) * cpus)[which].mean()
    return {
        "submit_seconds": random.exponential(work / CPUS / load, jobs).cumsum(),
        "runtime_seconds": np.minimum(runtimes, limits[which]) if has_limits else runtimes,
        "tasks": cpus[which],
        "requested_seconds": limits[which] if has_limits else [None] * jobs,
        "user": np.array(list("abcde"))[which],
        "executable": np.array(["fit", "scan", "mesh", "fold", "flow"])[which],
    }


HEAVY, HEAVY_WITH_LIMITS, MODERATE = (1.3, False), (1.3, True), (0.8, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "cases"),
    [
        ("easy", [HEAVY_WITH_LIMITS]),
        ("easy,recent,incremental", [HEAVY, HEAVY_WITH_LIMITS, MODERATE]),
        ("foresail", [HEAVY, HEAVY_WITH_LIMITS, MODERATE]),
    ],
)
def test_ranges_of_five_applications_hold(policy, cases):
    """Of 80 % of starts; so they do in the first hour of a new service."""
    series = []
    for load, has_limits in cases:
        for seed in range(of_a_series(5, 3)):
            jobs = five_applications(seed, of_a_series(200, 60), load, has_limits)
            series.append(simulated(policy, jobs))
    every = joined(series)
    stated = every.some(~every.unknown)
    assert 0.7 <= stated.held() <= 0.9
    assert 0.7 <= stated.some(stated.moments < 3_600.0).held() <= 0.9
    assert every.unknown.mean() <= of_a_series(0.05, 0.12)  # the latter of the first 60 jobs alone
    assert not every.unknown[every.ended_alike >= 5].any()


@pytest.mark.parametrize("policy", ["easy", "easy,recent,incremental", "foresail"])
def test_the_first_ends_of_a_new_application_say_when_its_last_jobs_start(policy):
    """300 jobs of a second, limited to 300 s."""
    count = 300
    columns = {
        "submit_seconds": [0.0] * count,
        "runtime_seconds": [1.0] * count,
        "tasks": [1] * count,
        "requested_seconds": [300.0] * count,
        "user": ["u"] * count,
        "executable": ["sleep"] * count,
    }
    every = simulated(policy, columns, moments=(1.0, 2.0, 3.0, 10.0, 40.0))
    at_first = every.some(every.moments == 0.0)
    last = at_first.stated[-1]
    assert (at_first.starts[-1], bool(at_first.unknown[-1])) == (count / CPUS - 1.0, True)
    assert last[2] > 50.0 * last[0]
    for ended, factor in ((4, 4.0), (8, 2.5), (12, 2.0), (40, 1.3), (160, 1.3)):
        now = every.some(every.moments == ended / CPUS)
        assert now.ended_alike.min() == now.ended_alike.max() == ended
        assert now.held() >= 0.7
        assert now.stated[-1][2] < factor * now.stated[-1][0]
        assert not now.unknown.any()
