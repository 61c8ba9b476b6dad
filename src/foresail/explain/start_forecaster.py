"""Forecaster of starts under any policy: beliefs of its own, learned beside the scheduler's.

Policies that plan with requested times or with one number have no belief to draw runtimes from, and
what is believed of single jobs leaves out that it is wrong for many of a user alike. So runtimes
are drawn from predictors that learn beside (each in its share of the futures), with what jobs have
in common drawn once a future (``foresail.explain.common_factor``). Orders and planned times stay
those of the policy.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from foresail.distributions.summary import belief_row
from foresail.explain.common_factor import CommonFactor, normal_draws, normal_levels, normal_value
from foresail.explain.forecast import SCENARIOS, WaitingForecasts, forecast_waiting
from foresail.explain.outlook import Outlook
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.model.arrays import Floats
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, EndedBecause, Outcome
from foresail.model.view import RunningJob
from foresail.predictors.calibrated import Calibrated, CalibratedParameters
from foresail.predictors.similar import Similar, SimilarParameters
from foresail.record.job_life import EndedAttempt, JobHistory

_UPDATED_EVERY: Final = 500
"""Submissions after which it is estimated anew what jobs have in common."""

_MOST_ALIKE: Final = 100
"""Jobs of one kind in flight that predictors know of each; what others take is learned as well."""

_MOST_RELEARNED: Final = 20_000
"""Attempts that are learned at once, as after a restart: the latest."""

_LEVELS: Final = np.array(BELIEF_LEVELS)
_TEACHES_NOTHING: Final = GOES_BACK | {EndedBecause.CANCELLED}

_UNKNOWN: Final = 0.99
"""What jobs of an application have in common of which none has ended."""

_FIRST_OF_LIMIT: Final = (2e-4, 0.001, 0.0035, 0.028, 0.17, 0.6, 0.93, 1.0)
_FIRST_SECONDS: Final = (0.1, 1.0, 4.0, 40.0, 400.0, 4_000.0, 20_000.0, 100_000.0)
_FIRST_LEVELS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Quantiles of the share of its limit that the first job of a user takes (on three logs), and of
seconds, as good as unknown, where there is no limit."""

_PRIOR_JOBS: Final = 20
_FIRST_JOBS: Final = 200
"""First jobs that the quantiles above count for, and how many of the latest are looked at."""

_SURE: Final = 0.999
_BOTH: Final = 2
"""Predictors that runtimes are drawn from."""

Kind: TypeAlias = tuple[Hashable, ...]


@lru_cache(maxsize=10_000)
def _application(name: str) -> str:
    """Return a job's name without its numbers: those count runs."""
    return re.sub(r"\d+", "", name)


def _groups(job: Job) -> tuple[Kind, Kind, Kind, Kind]:
    """Return the groups that a job has something in common with, from everybody on."""
    name = job.requested_seconds if job.name is None else _application(job.name)
    return (), (job.user,), (job.user, name), (job.user, name, job.cpus)


def _kind(job: Job) -> Kind:
    """Return what jobs have in common of which the same is believed."""
    requested = job.requested_seconds
    return job.user, job.name, job.group, job.queue, job.partition, job.cpus, requested


def _known_as(job: Job) -> Kind:
    """Return the application of a job, or else its user."""
    return (job.user,) if job.name is None else (job.user, _application(job.name))


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A job in flight, and the quantiles that were believed of it at its submission."""

    job: Job
    stated: Floats


class StartForecaster:
    """Forecasts when waiting jobs start, from what it has learned of those that ended.

    One thread hands it what has happened (``catch_up``, which takes next to no time); any others
    ask it.
    """

    def __init__(self) -> None:
        self._news: deque[Job | tuple[Job, Outcome]] = deque()
        self._last_submitted: tuple[float, frozenset[str]] = -np.inf, frozenset()
        self._last_ended: EndedAttempt | None = None
        self._lock = threading.Lock()
        self._predictors = Similar(SimilarParameters()), Calibrated(CalibratedParameters())
        self._factor = CommonFactor()
        self._submissions = 0
        self._in_flight: dict[str, _InFlight] = {}
        self._alike: Counter[Kind] = Counter()
        self._ended: Counter[Kind] = Counter()
        self._first_of_limit: deque[float] = deque(maxlen=_FIRST_JOBS)
        self._first_seconds: deque[float] = deque(maxlen=_FIRST_JOBS)

    def catch_up(self, jobs: JobHistory) -> None:
        """Take what was submitted and has ended since the last call; it is learned when asked."""
        self._news.extend(self._news_of(jobs))

    def ended_alike(self, job: Job) -> int:
        """Return how many jobs of its application (without a name: of its user) have ended."""
        return self._ended[_known_as(job)]

    def forecast(
        self, outlook: Outlook, *, scenarios: int = SCENARIOS, seed: int = 0
    ) -> WaitingForecasts:
        """Forecast start and end of every waiting job, as ``forecast_waiting`` does.

        Ranges are those of the futures as they are drawn, before any correction.
        """
        return forecast_waiting(outlook, scenarios=scenarios, seed=seed, draw=self.draw)

    def draw(
        self,
        waiting: Sequence[Job],
        running: Sequence[RunningJob],
        now: float,
        count: int,
        seed: int,
    ) -> tuple[Floats, Floats]:
        """Possible runtimes (seconds) of jobs that wait, and of those that run: no less than that.

        Returns
        -------
        tuple
            Shapes (count, waiting) and (count, running).
        """
        jobs = [*waiting, *(each.job for each in running)]
        kinds: dict[Kind, int] = {}
        kind_of = [kinds.setdefault(_kind(job), len(kinds)) for job in jobs]
        some = dict(zip(kind_of, jobs, strict=True))
        with self._lock:
            self._learn()
            rows, shares = self._believed([some[kind] for kind in range(len(kinds))], now)
        levels = _drawn_levels(jobs, shares[kind_of], count, seed)
        elapsed = np.zeros(len(jobs))
        for at, each in enumerate(running, start=len(waiting)):
            elapsed[at] = max(each.elapsed_seconds(now), 0.0) / each.slowdown
        limits = np.array([np.inf if (of := job.requested_seconds) is None else of for job in jobs])
        runtimes = np.empty((count, len(jobs)))
        for which, lot in enumerate(np.array_split(np.arange(count), _BOTH)):
            tables = rows[:, which][kind_of]
            runtimes[lot] = _runtimes(tables, levels[lot], elapsed)
        np.minimum(runtimes, np.maximum(limits, elapsed), out=runtimes)
        return runtimes[:, : len(waiting)], runtimes[:, len(waiting) :]

    def _news_of(self, jobs: JobHistory) -> list[Job | tuple[Job, Outcome]]:
        """Return what is new, in order of time."""
        latest, at_once = self._last_submitted
        news: list[tuple[float, int, Job, Outcome | None]] = []
        for job in reversed(jobs.submitted.values()):
            if job.submit_seconds < latest or job.job_id in at_once:
                break
            news.append((job.submit_seconds, 0, job, None))
        if news:
            last = news[0][0]
            same = {job.job_id for submitted, _, job, _ in news if submitted == last}
            self._last_submitted = last, frozenset(same | (at_once if last == latest else set()))
        last_ended = self._last_ended
        for attempt in reversed(jobs.past):
            end = attempt.outcome.end_seconds
            if last_ended is not None and (
                attempt is last_ended or end < last_ended.outcome.end_seconds
            ):
                break
            outcome = attempt.outcome
            if outcome.stage:  # a part: what counts is the end of the whole
                whole = jobs.ended.get(outcome.job_id)
                if whole is None or whole.end_seconds != outcome.end_seconds:
                    continue
                outcome = whole
            news.append((end, 1, attempt.job, outcome))
        if jobs.past:
            self._last_ended = jobs.past[-1]
        news.reverse()
        news.sort(key=lambda each: each[:2])
        return [job if outcome is None else (job, outcome) for _, _, job, outcome in news]

    def _learn(self) -> None:
        """Learn what has happened."""
        while len(self._news) > _MOST_RELEARNED * 2:
            self._news.popleft()
        while self._news:
            match self._news.popleft():
                case Job() as job:
                    self._submitted(job)
                case job, outcome:
                    self._observe(job, outcome)

    def _submitted(self, job: Job) -> None:
        self._submissions += 1
        if self._submissions % _UPDATED_EVERY == 0:
            self._factor.update()
        kind = _kind(job)
        if self._alike[kind] >= _MOST_ALIKE or job.job_id in self._in_flight:
            return
        self._alike[kind] += 1
        now = job.submit_seconds
        stated = [belief_row(each.predict(job, now)) for each in self._predictors]
        self._in_flight[job.job_id] = _InFlight(job, np.array(stated))

    def _observe(self, job: Job, outcome: Outcome) -> None:
        for predictor in self._predictors:
            predictor.observe(job, outcome)
        if outcome.ended_because in GOES_BACK:
            return
        known = self._in_flight.pop(job.job_id, None)
        if known is not None:
            self._alike[_kind(known.job)] -= 1
        if outcome.ended_because in _TEACHES_NOTHING:
            return
        runtime = outcome.preferred_runtime_seconds
        application = _known_as(job)
        if not self._ended[application]:
            self._first_seconds.append(runtime)
            if job.requested_seconds:
                self._first_of_limit.append(min(runtime / job.requested_seconds, 1.0))
        self._ended[application] += 1
        if known is not None:
            level = float(np.mean([_level(row, runtime) for row in known.stated]))
            value = normal_value(level)
            end = outcome.end_seconds
            self._factor.observe(_groups(job), job.submit_seconds, end, value)

    def _believed(self, jobs: Iterable[Job], now: float) -> tuple[Floats, Floats]:
        """Return what is believed of jobs: quantiles, and what each has in common with others.

        Shapes (jobs, predictors, levels) and (jobs, groups).
        """
        rows, shares = [], []
        for job in jobs:
            if self._ended[_known_as(job)]:
                rows.append([self._row(each, job, now) for each in self._predictors])
                shares.append(self._factor.shares)
            else:
                rows.append([self._first_row(job)] * _BOTH)
                everybody, user = self._factor.shares[:2]
                shares.append((everybody, user, _UNKNOWN, _UNKNOWN))
        width = len(self._factor.shares)
        return (
            np.array(rows).reshape(-1, _BOTH, BELIEF_COLUMNS),
            np.array(shares).reshape(-1, width),
        )

    def _row(self, predictor: Similar | Calibrated, job: Job, now: float) -> Floats:
        if job.job_id in self._in_flight:
            return belief_row(predictor.refreshed(job, now))
        belief = predictor.predict(job, now)
        predictor.withdrawn(job, now)
        return belief_row(belief)

    def _first_row(self, job: Job) -> Floats:
        """Quantiles of the first job of an application: of its limit, or of what others took."""
        requested = job.requested_seconds
        prior, seen, scale = _FIRST_SECONDS, self._first_seconds, 1.0
        if requested:
            prior, seen, scale = _FIRST_OF_LIMIT, self._first_of_limit, requested
        expected = np.interp((np.arange(_PRIOR_JOBS) + 0.5) / _PRIOR_JOBS, _FIRST_LEVELS, prior)
        values: Floats = np.quantile(np.concatenate((expected, list(seen))), _LEVELS)
        return scale * values


def _level(row: Floats, value: float) -> float:
    """Return the level of a value in a row of quantiles; within an atom, its middle."""
    left = int(np.searchsorted(row, value, "left"))
    right = int(np.searchsorted(row, value, "right"))
    if right > left:
        return 0.5 * float(_LEVELS[left] + _LEVELS[right - 1])
    return float(np.interp(value, row, _LEVELS))


def _drawn_levels(jobs: Sequence[Job], shares: Floats, count: int, seed: int) -> Floats:
    """Levels of the jobs within their beliefs, uniform each, with what they have in common.

    Parameters
    ----------
    jobs
        Whose.
    shares
        Of the variance, by job and group from the widest on; shape (jobs, groups).
    count, seed
        How many are drawn of each.

    Returns
    -------
    numpy.ndarray
        Shape (count, jobs).
    """
    values = normal_draws([job.job_id for job in jobs], count, seed)
    values *= np.sqrt(1.0 - shares[:, -1])
    weights = np.sqrt(np.diff(shares, axis=1, prepend=0.0))
    for level, groups in enumerate(zip(*(_groups(job) for job in jobs), strict=True)):
        numbers: dict[Kind, int] = {}
        which = [numbers.setdefault(each, len(numbers)) for each in groups]
        common = normal_draws([(level, each) for each in numbers], count, seed)
        values += weights[:, level] * common[:, which]
    return normal_levels(values)


def _runtimes(tables: Floats, levels: Floats, elapsed: Floats) -> Floats:
    """Runtimes at levels of what is left of beliefs, given what jobs have run for.

    Who has run for longer than was believed runs for twice as long in half of the futures.

    Parameters
    ----------
    tables
        Quantiles; shape (jobs, BELIEF_COLUMNS).
    levels
        Shape (count, jobs).
    elapsed
        Seconds; shape (jobs,).
    """
    reached = np.array(
        [_level(row, ran) if ran > 0.0 else 0.0 for row, ran in zip(tables, elapsed, strict=True)]
    )
    at = reached + (1.0 - reached) * levels
    above = np.clip(np.searchsorted(_LEVELS, at), 1, BELIEF_COLUMNS - 1)
    low = _LEVELS[above - 1]
    share = (at - low) / (_LEVELS[above] - low)
    jobs = np.arange(len(tables))
    below = tables[jobs, above - 1]
    runtimes: Floats = below + share * (tables[jobs, above] - below)
    outlived = reached >= _SURE
    runtimes[:, outlived] = elapsed[outlived] / np.maximum(1.0 - levels[:, outlived], 1e-3)
    np.maximum(runtimes, elapsed, out=runtimes)
    return runtimes
