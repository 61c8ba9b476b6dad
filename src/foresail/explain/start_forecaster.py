"""Forecaster of starts under any policy: beliefs of its own, learned beside the scheduler's.

Policies that plan with requested times or with one number have no belief to draw runtimes from, and
what is believed of single jobs leaves out that it is wrong for many of a user alike. So runtimes
are drawn from predictors that learn beside (each in its share of the futures), with what jobs have
in common drawn once a future (``foresail.explain.common_factor``). Orders and planned times stay
those of the policy.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import takewhile
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from foresail.distributions.summary import belief_row
from foresail.explain.common_factor import PRIOR, CommonFactor, drawn_levels, keys_of, normal_value
from foresail.explain.forecast import SCENARIOS, WaitingForecasts, forecast_waiting
from foresail.explain.job_columns import JobColumns, limit_of
from foresail.explain.outlook import Outlook
from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.model.distribution import Distribution, Floats, Integers
from foresail.model.event import REQUEUED, EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.predictors.calibrated import Calibrated, CalibratedParameters
from foresail.predictors.similar import Similar, SimilarParameters
from foresail.record.job_life import EndedAttempt, JobHistory

_UPDATED_EVERY: Final = 500
_FIRST_UPDATE: Final = 20
"""Submissions after which it is estimated anew what jobs have in common: at first so many, then
once there are a quarter more, and at least once in the former number."""

_MOST_ALIKE: Final = 100
_MOST_KNOWN: Final = 4_000
_FEWEST_ALIKE: Final = 10
"""Jobs of one kind in flight that predictors know of each, the last once they know of so many in
all; what others take is learned as well."""

_MOST_KINDS: Final = 2_000
_REQUESTS_A_DOUBLING: Final = 4
"""Steps between like requests of which one is twice the other, where there are many kinds."""

_MOST_RELEARNED: Final = 20_000
"""Attempts that are learned at once, as after a restart: the latest."""

_MOST_NEEDED: Final = 10_000
"""Draws of what one job needs, so that rare ones are among them."""

_AT_LIMIT: Final = 0.01
_SPREADS: Final = (0.1, 1.5)
"""A runtime so near to its limit was cut there; beyond it there is a standard deviation of
logarithms like that below it, within these bounds."""

_MOST_APPLICATIONS: Final = 20_000
"""Applications that are remembered: those that have ended last."""

_COUNTED_NAMES: Final = 5
_COUNTED: Final = 0.8
"""Numbers in names count runs where so many names, and of all that ended such a share, were new."""

_LEVELS: Final = np.array(BELIEF_LEVELS)
_VALUES: Final = np.array([normal_value(level) for level in BELIEF_LEVELS])
_TEACHES_NOTHING: Final = REQUEUED | {EndedBecause.CANCELLED}

_UNKNOWN: Final = 0.99
"""Property that jobs of an application have in common of which none has ended."""

_FIRST_OF_LIMIT: Final = (2e-4, 0.001, 0.0035, 0.028, 0.17, 0.6, 0.93, 1.0, 1.0)
_FIRST_SECONDS: Final = (0.1, 1.0, 4.0, 40.0, 400.0, 4_000.0, 20_000.0, 36_000.0, 1e5)
_FIRST_LEVELS: Final = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.92, 1.0)
"""Quantiles of the share of its limit that the first job of a user takes (on three logs, where 8 to
11 % reach it), and of seconds, as good as unknown, where there is no limit."""

_SHORTEST_SECONDS: Final = 0.1
_REMEMBERS: Final = 0.95
_SPREAD: Final = 0.6
_SPREAD_JOBS: Final = 2.0
"""Spread of an application by itself: runtime that shorter ones are learned as, weight of what has
ended after one more has, and the standard deviation of logarithms expected, for so many jobs."""

_PRIOR_JOBS: Final = 20
_FIRST_JOBS: Final = 200
"""First jobs that the quantiles above count for, and how many of the latest are looked at."""

_SURE: Final = 0.999

_SIMILAR, _CALIBRATED, _APPLICATION = range(3)
_SOURCES: Final = 3
_GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
_NOBODY: Final = ""
"""Beliefs that runtimes are drawn from, each in its share of the futures."""

_FEWEST_ENDED: Final = 5
_WIDEST: Final = 20.0
_SHORT_SECONDS: Final = 60.0
"""Too little is known of a job if fewer of its application have ended, and its longest wait is so
many times its shortest one, some time added to both."""

_OF_USER: Final = 0.3
_FORGETS: Final = 0.9
_NEAR_RATIO: Final = 1.15
_NEAR_SECONDS: Final = 0.1
_LEAST: Final = 0.01
"""Beliefs are weighed by the probability that they gave to about what came, at least so much, in
the latest ends of an application, each counting so much less than the one after it; less where all
that is known is the user, whose jobs differ."""

Kind: TypeAlias = tuple[Hashable, ...]
_News: TypeAlias = Job | tuple[Job, Outcome] | str
"""A job that was submitted, one that has ended, or the id of one that will not run."""


@lru_cache(maxsize=10_000)
def _stem(name: str) -> str:
    """Return a job's name without its numbers."""
    return re.sub(r"\d+", "#", name)


def _groups(job: Job) -> tuple[Kind, Kind, Kind, Kind]:
    """Return the groups that a job has something in common with, from everybody on."""
    name = job.requested_seconds if job.name is None else job.name
    return (), (job.user,), (job.user, name), (job.user, name, job.cpus)


def _kind(job: Job) -> Kind:
    """Return what jobs have in common of which the same is believed."""
    requested = job.requested_seconds
    return job.user, job.name, job.group, job.queue, job.partition, job.cpus, requested


def _like_kind(job: Job) -> Kind:
    """Return the kind of a job, and of those that ask for about as much."""
    names, requested = _kind(job)[:-2], job.requested_seconds
    steps = None if not requested else round(_REQUESTS_A_DOUBLING * math.log2(requested))
    return *names, math.frexp(job.cpus)[1], steps


def _known_as(job: Job) -> Kind:
    """Return the application of a job, or else its user."""
    return (job.user,) if job.name is None else (job.user, job.name)


class _Application:
    """Ended jobs of an application: what they took, and how well each belief foresaw it."""

    __slots__ = ("ended", "mean", "names", "scores", "squares", "weight")

    def __init__(self) -> None:
        self.ended = self.names = 0
        self.weight = self.mean = self.squares = 0.0
        self.scores = np.zeros(_SOURCES)

    def observe(self, runtime_seconds: float, beliefs: Floats) -> None:
        """A job has ended, of which this was believed just before."""
        for source, row in enumerate(beliefs):
            above = _level(row, _NEAR_RATIO * runtime_seconds + _NEAR_SECONDS)
            below = _level(row, runtime_seconds / _NEAR_RATIO - _NEAR_SECONDS)
            score = math.log(max(above - below, _LEAST))
            self.scores[source] = _FORGETS * self.scores[source] + score
        self.ended += 1
        value = math.log(max(runtime_seconds, _SHORTEST_SECONDS))
        before = _REMEMBERS * self.weight
        self.weight = before + 1.0
        away = value - self.mean
        self.mean += away / self.weight
        self.squares = _REMEMBERS * self.squares + away * (value - self.mean)

    def weights(self, is_named: bool) -> Floats:
        """Shares of the futures in which each belief is drawn from."""
        scores = self.scores if is_named else _OF_USER * self.scores
        weights = np.exp(scores - scores.max())
        if not is_named:
            weights[_APPLICATION] = 0.0
        result: Floats = weights / weights.sum()
        return result

    def row(self) -> Floats:
        """Quantiles of its runtimes by themselves: log-normal, of unknown mean and spread."""
        freedom = _SPREAD_JOBS + self.weight
        squares = (_SPREAD_JOBS * _SPREAD**2 + self.squares) / freedom
        scale = math.sqrt(squares * (1.0 + 1.0 / self.weight))
        # Quantiles of Student's t by those of the normal distribution (Wallace, 1959).
        bent = np.exp(_VALUES**2 * (freedom - 1.5) / (freedom - 1.0) ** 2) - 1.0
        result: Floats = np.exp(self.mean + scale * np.sign(_VALUES) * np.sqrt(freedom * bent))
        return result


@dataclass(frozen=True, slots=True)
class _Belief:
    """Beliefs of a job: quantiles by source, their shares of the futures, and what is shared.

    ``is_known``: a job of its application has ended.
    """

    rows: Floats
    weights: Floats
    shares: tuple[float, ...]
    is_known: bool


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A job in flight, and what was believed of it at its submission."""

    job: Job
    kind: Kind
    stated: _Belief


class StartForecaster:
    """Forecasts when waiting jobs start, from what it has learned of those that ended.

    One thread hands it what has happened (``catch_up``, which takes next to no time); any others
    ask it.
    """

    def __init__(self) -> None:
        self._news: deque[_News] = deque(maxlen=_MOST_RELEARNED * 2)
        self._last_submitted: tuple[float, frozenset[str]] = -np.inf, frozenset()
        self._last_ended: EndedAttempt | None = None
        self._last_withdrawn = ""
        self._earlier = 0
        self._lock = threading.Lock()
        self._predictors = Similar(SimilarParameters()), Calibrated(CalibratedParameters())
        self._factor = CommonFactor()
        self._submissions, self._next_update = 0, _FIRST_UPDATE
        self._in_flight: dict[str, _InFlight] = {}
        self._alike: Counter[Kind] = Counter()
        self._applications: dict[Kind, _Application] = {}
        self._first_of_limit: deque[float] = deque(maxlen=_FIRST_JOBS)
        self._first_seconds: deque[float] = deque(maxlen=_FIRST_JOBS)

    def catch_up(self, jobs: JobHistory) -> None:
        """Take what was submitted and has ended since the last call; it is learned when asked."""
        self._news.extend(self._news_of(jobs))

    def ended_alike(self, job: Job) -> int:
        """Return how many jobs of its application (without a name: of its user) have ended."""
        application = self._applications.get(_known_as(self._labelled(job)))
        return 0 if application is None else application.ended

    def forecast(
        self,
        outlook: Outlook,
        *,
        scenarios: int = SCENARIOS,
        seed: int = 0,
        alike: Mapping[str, Job] = MappingProxyType({}),
    ) -> WaitingForecasts:
        """Forecast start and end of every waiting job, as ``forecast_waiting`` does.

        Ranges are those of the futures as they are drawn, before any correction. Some jobs, by id,
        are believed to run like others: what limit it has does not change how long a job needs.
        """
        draw = partial(self.draw, alike=alike)
        return forecast_waiting(outlook, draw, scenarios=scenarios, seed=seed)

    def unknown(self, outlook: Outlook, waiting: WaitingForecasts) -> frozenset[str]:
        """Return the ids of jobs of whose starts too little is known to say anything."""
        jobs = outlook.waiting.jobs
        with np.errstate(invalid="ignore"):
            waits = np.maximum(0.0, waiting.starts - outlook.now) + _SHORT_SECONDS
            is_wide = (waits[2] > _WIDEST * waits[0])[: len(jobs)]
        is_new = jobs.by_kind(self.ended_alike) < _FEWEST_ENDED
        wide = np.flatnonzero(is_wide & is_new).tolist()
        return frozenset(jobs.pending[at].job.job_id for at in wide)

    def draw(
        self,
        waiting: JobColumns,
        running: Sequence[RunningJob],
        now: float,
        count: int,
        seed: int,
        alike: Mapping[str, Job] = MappingProxyType({}),
    ) -> tuple[Floats, Floats]:
        """Possible runtimes (seconds) of jobs that wait, and of those that run: no less than that.

        Returns
        -------
        tuple
            Shapes (count, waiting) and (count, running).
        """
        jobs, which = _examples(waiting, running, alike)
        kinds: dict[Kind, int] = {}
        with self._lock:
            self._learn()
            known_as = [self._labelled(job) for job in jobs]
            kind_of = [kinds.setdefault(_kind(job), len(kinds)) for job in known_as]
            if len(kinds) > _MOST_KINDS:
                kinds = {}
                kind_of = [kinds.setdefault(_like_kind(job), len(kinds)) for job in known_as]
            some = dict(zip(kind_of, known_as, strict=True))
            beliefs = [self._believed(some[kind], now) for kind in range(len(kinds))]
        of_example = np.array(kind_of, np.int64)
        shares = np.array([each.shares for each in beliefs]).reshape(-1, len(PRIOR))[of_example]
        elapsed, limits = np.zeros(len(which)), np.full(len(which), np.inf)
        limits[: len(waiting)] = waiting.limits
        for at, each in enumerate(running, start=len(waiting)):
            elapsed[at] = max(each.elapsed_seconds(now), 0.0) / each.slowdown
            limits[at] = limit_of(each.job)
        keys = np.append(waiting.table["key"], keys_of([each.job.job_id for each in running]))
        groups = [_groups(job) for job in known_as]
        levels = drawn_levels(keys, which, groups, shares, count, seed)
        runtimes = _runtimes(beliefs, of_example[which], levels, elapsed)
        np.minimum(runtimes, np.maximum(limits, elapsed), out=runtimes)
        return runtimes[:, : len(waiting)], runtimes[:, len(waiting) :]

    def needed_seconds(self, job: Job, now: float) -> Floats:
        """Draw how long a job would need if its limit did not end it, in ascending levels."""
        with self._lock:
            self._learn()
            belief = self._believed(self._labelled(job), now)
        if job.requested_seconds is not None:
            rows = [_without_limit(row, job.requested_seconds) for row in belief.rows]
            belief = replace(belief, rows=np.array(rows))
        levels = (np.arange(_MOST_NEEDED) + 0.5) / _MOST_NEEDED
        return _runtimes([belief], np.zeros(1, np.int64), levels[:, None], np.zeros(1))[:, 0]

    def _news_of(self, jobs: JobHistory) -> list[_News]:
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
        gone = list(takewhile(self._last_withdrawn.__ne__, reversed(jobs.withdrawn)))
        self._last_withdrawn = gone[0] if gone else self._last_withdrawn
        earlier = jobs.earlier[self._earlier :]
        self._earlier = len(jobs.earlier)
        return (
            earlier
            + [job if outcome is None else (job, outcome) for _, _, job, outcome in news]
            + gone
        )

    def _learn(self) -> None:
        """Learn what has happened."""
        while self._news:
            match self._news.popleft():
                case Job() as job:
                    self._submitted(self._labelled(job))
                case job, outcome:
                    self._observe(job, outcome)
                case str() as job_id:
                    self._withdrawn(job_id)

    def _labelled(self, job: Job) -> Job:
        """Return a job by its most telling name: without its numbers where these count runs."""
        name = job.name
        if name is None or (job.user, name) in self._applications:
            return job
        stem = _stem(name)
        family = self._applications.get((job.user, stem))
        if stem == name or family is None or family.names < _COUNTED_NAMES:
            return job
        return replace(job, name=stem) if family.names > _COUNTED * family.ended else job

    def _submitted(self, job: Job) -> None:
        self._submissions += 1
        if self._submissions >= self._next_update:
            self._factor.update()
            self._next_update += min(_UPDATED_EVERY, self._submissions // 4)
        kind = _kind(job)
        most = _MOST_ALIKE if len(self._in_flight) < _MOST_KNOWN else _FEWEST_ALIKE
        if self._alike[kind] >= most or job.job_id in self._in_flight:
            return
        self._alike[kind] += 1
        now = job.submit_seconds
        stated = self._belief(job, [each.predict(job, now) for each in self._predictors])
        self._in_flight[job.job_id] = _InFlight(job, kind, stated)

    def _withdrawn(self, job_id: str) -> None:
        known = self._left(job_id)
        if known is not None:
            for predictor in self._predictors:
                predictor.withdrawn(known.job, known.job.submit_seconds)

    def _left(self, job_id: str) -> _InFlight | None:
        """Return what was kept of a job that is in flight no more."""
        known = self._in_flight.pop(job_id, None)
        if known is not None:
            self._alike[known.kind] -= 1
            if not self._alike[known.kind]:
                del self._alike[known.kind]
        return known

    def _observe(self, job: Job, outcome: Outcome) -> None:
        known = self._in_flight.get(job.job_id)
        asked = self._labelled(job) if known is None else known.job
        teaches = outcome.ended_because not in _TEACHES_NOTHING
        belief = self._believed(asked, outcome.end_seconds) if teaches else None
        for predictor in self._predictors:
            predictor.observe(asked, outcome)
        if outcome.ended_because in REQUEUED:
            return
        self._left(job.job_id)
        if belief is None:
            return
        runtime = outcome.preferred_runtime_seconds
        if not belief.is_known:
            self._first_seconds.append(runtime)
            if job.requested_seconds:
                self._first_of_limit.append(min(runtime / job.requested_seconds, 1.0))
        self._count(job, runtime, belief.rows)
        if known is not None and known.stated.is_known:
            levels = [_level(row, runtime) for row in known.stated.rows]
            value = normal_value(float(known.stated.weights @ levels))
            end = outcome.end_seconds
            self._factor.observe(_groups(asked), job.submit_seconds, end, value)

    def _count(self, job: Job, runtime_seconds: float, beliefs: Floats) -> None:
        """Count the end of a job for its application, and for all named so but for numbers."""
        own = _known_as(job)
        is_new = own not in self._applications
        names = {own} if job.name is None else {own, (job.user, _stem(job.name))}
        for name in names:
            application = self._applications.pop(name, None) or _Application()
            application.observe(runtime_seconds, beliefs)
            application.names += is_new
            self._applications[name] = application
        if len(self._applications) > _MOST_APPLICATIONS:
            del self._applications[next(iter(self._applications))]

    def _believed(self, job: Job, now: float) -> _Belief:
        """Return what would be believed of the job were it submitted now."""
        if _known_as(job) not in self._applications:
            return self._belief(job, ())
        asked = replace(job, job_id=_NOBODY)
        believed = []
        for predictor in self._predictors:
            believed.append(predictor.predict(asked, now))
            predictor.withdrawn(asked, now)
        return self._belief(job, believed)

    def _belief(self, job: Job, believed: Sequence[Distribution]) -> _Belief:
        """Return the belief of a job with what the predictors believe."""
        application = self._applications.get(_known_as(job))
        if application is None:
            everybody, user = self._factor.shares[:2]
            shares = everybody, user, _UNKNOWN, _UNKNOWN
            rows = np.array([self._first_row(job)] * _SOURCES)
            return _Belief(rows, np.full(_SOURCES, 1.0 / _SOURCES), shares, is_known=False)
        rows = np.array([*map(belief_row, believed), application.row()])
        weights = application.weights(job.name is not None)
        return _Belief(rows, weights, self._factor.shares, is_known=True)

    def _first_row(self, job: Job) -> Floats:
        """Quantiles of the first job of an application: of its limit, or of what others took."""
        requested = job.requested_seconds
        if requested:
            return requested * self._first_quantiles(_FIRST_OF_LIMIT, tuple(self._first_of_limit))
        return self._first_quantiles(_FIRST_SECONDS, tuple(self._first_seconds))

    @staticmethod
    @lru_cache(maxsize=4)
    def _first_quantiles(prior: tuple[float, ...], seen: tuple[float, ...]) -> Floats:
        expected = np.interp((np.arange(_PRIOR_JOBS) + 0.5) / _PRIOR_JOBS, _FIRST_LEVELS, prior)
        values: Floats = np.quantile(np.concatenate((expected, seen)), _LEVELS)
        return values


def _examples(
    waiting: JobColumns, running: Sequence[RunningJob], alike: Mapping[str, Job]
) -> tuple[list[Job], Integers]:
    """Return a job of each kind, the last of all in order, and the number of each job's.

    Those of some ids are taken for others.
    """
    jobs, last = waiting.kinds, waiting.of_kind.tolist()
    which = waiting.table["kind"].astype(np.int64)
    for job_id, other in alike.items():
        at = waiting.places.get(job_id)
        if at is not None:
            which[at] = len(jobs)
            jobs.append(other)
            last.append(at)
    which = np.append(which, len(jobs) + np.arange(len(running)))
    jobs += [alike.get(each.job.job_id, each.job) for each in running]
    last += range(len(waiting), len(which))
    order = np.argsort(last, kind="stable")
    return [jobs[at] for at in order.tolist()], np.argsort(order)[which]


def _without_limit(row: Floats, limit_seconds: float) -> Floats:
    """Return quantiles that go on log-normally where a limit has cut them."""
    cut = int(np.searchsorted(row, limit_seconds * (1.0 - _AT_LIMIT)))
    if cut == len(row):
        return row
    last = max(cut - 1, 0)
    middle = int(np.searchsorted(_LEVELS, 0.5 * _LEVELS[last]))
    low, high = np.log(np.maximum(row[[middle, last]], _SHORTEST_SECONDS)).tolist()
    apart = _VALUES[last] - _VALUES[middle]
    spread = min(max((high - low) / apart, _SPREADS[0]), _SPREADS[1]) if apart > 0.0 else _SPREAD
    beyond = limit_seconds * np.exp(spread * (_VALUES[cut:] - _VALUES[cut]))
    return np.concatenate((row[:cut], np.maximum(row[cut:], beyond)))


def _level(row: Floats, value: float) -> float:
    """Return the level of a value in a row of quantiles; within an atom, its middle."""
    left = int(np.searchsorted(row, value, "left"))
    right = int(np.searchsorted(row, value, "right"))
    if right > left:
        return 0.5 * float(_LEVELS[left] + _LEVELS[right - 1])
    return float(np.interp(value, row, _LEVELS))


def _runtimes(
    beliefs: Sequence[_Belief], kind_of: Integers, levels: Floats, elapsed: Floats
) -> Floats:
    """Runtimes at levels of what is left of beliefs, given what jobs have run for.

    Who has run for longer than was believed runs for twice as long in half of the futures.
    ``kind_of`` is the number of each job's belief, levels have the shape (futures, jobs).
    """
    futures, jobs = levels.shape
    rows = np.array([each.rows for each in beliefs]).reshape(-1, _SOURCES, BELIEF_COLUMNS)
    weights = np.array([each.weights for each in beliefs]).reshape(-1, _SOURCES)[kind_of]
    reached = np.zeros((jobs, _SOURCES))
    for at in np.flatnonzero(elapsed).tolist():
        reached[at] = [_level(row, elapsed.item(at)) for row in rows[kind_of[at]]]
    left = weights * np.where(reached < _SURE, 1.0 - reached, 0.0)
    outlived = left.sum(axis=1) <= 0.0
    left[outlived] = weights[outlived]
    bounds = np.cumsum(left, axis=1)[:, :-1] / left.sum(axis=1, keepdims=True)
    chosen = np.zeros((futures, jobs), np.int64)
    spread = (np.arange(futures)[:, None] + 0.5) * _GOLDEN % 1.0
    for bound in bounds.T:
        chosen += spread > bound
    job = np.arange(jobs)
    ran = reached[job, chosen]
    reaches = ran + (1.0 - ran) * levels
    above = np.clip(np.searchsorted(_LEVELS, reaches), 1, BELIEF_COLUMNS - 1)
    low = _LEVELS[above - 1]
    share = (reaches - low) / (_LEVELS[above] - low)
    runtimes: Floats = rows[kind_of, chosen, above - 1]
    runtimes += share * (rows[kind_of, chosen, above] - runtimes)
    runtimes[:, outlived] = elapsed[outlived] / np.maximum(1.0 - levels[:, outlived], 1e-3)
    np.maximum(runtimes, elapsed, out=runtimes)
    return runtimes
