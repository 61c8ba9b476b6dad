"""Forecasts: when jobs start and end, by carrying a run on in many drawn futures.

Every future draws the runtimes of all jobs from what is believed of them (of those that run, given
how long they have), and starts jobs in the order of the scheduler's queue, later ones ahead if they
delay the first that waits by no planned time (EASY). That is what queue schedulers do, but for
what changes their order later on: jobs whose turn comes by age, guards, probes. ``docs/concepts/
forecasts.md`` says how well it fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.explain.arrivals import (
    AMOUNTS,
    COLUMNS,
    HOME,
    HOUR,
    LIKELY,
    OTHERS,
    PLACE,
    PLANNED,
    READY,
    RUNTIME,
    WIDTH,
    arrivals_of,
)
from foresail.explain.chances import still_running
from foresail.explain.kernels.forward import ANYWHERE, Futures, blank_scratch, fill_starts
from foresail.explain.outlook import Outlook, QueuedJob
from foresail.model.arrays import Floats
from foresail.model.cluster import Resources
from foresail.model.job import DependencyKind
from foresail.model.view import PendingJob, RunningJob
from foresail.simulator.driver import draw_runtimes

SCENARIOS: Final = 300
"""Futures that are drawn unless more are asked for."""

LEVELS: Final = (0.1, 0.5, 0.9)
"""Of the stated quantiles."""

_LONGEST_HORIZON: Final = 7 * 24 * HOUR
_THREADS: Final = 2
_MOST_AT_ONCE: Final = 150_000
"""Jobs times futures that there is a table of at a time."""

_COLUMNS_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Range:
    """Quantiles at 10, 50 and 90 %; infinite where it is never in so many futures."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class WaitingForecast:
    """Forecast of a waiting job; times in seconds on the run's clock.

    Parameters
    ----------
    start, end
        When it starts and ends.
    never
        Share of futures in which it does not start.
    misses
        Probability that it ends after its deadline; None without one.
    """

    start: Range
    end: Range
    never: float
    misses: float | None


class WaitingForecasts(Mapping[str, WaitingForecast]):
    """Forecasts of jobs by id, of which there may be many: each is made when it is asked for.

    To be read by others, a column for each job: ``starts`` and ``ends`` have the three quantiles
    of a ``Range``, ``never`` and ``misses`` a share, that of misses nan without a deadline.
    """

    def __init__(
        self, places: Mapping[str, int], starts: Floats, ends: Floats, never: Floats, misses: Floats
    ) -> None:
        self.places, self.starts, self.ends = places, starts, ends
        self.never, self.misses = never, misses

    def __getitem__(self, job_id: str) -> WaitingForecast:
        at = self.places[job_id]
        start, end = Range(*self.starts[:, at].tolist()), Range(*self.ends[:, at].tolist())
        misses = self.misses.item(at)
        return WaitingForecast(
            start, end, self.never.item(at), None if math.isnan(misses) else misses
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class RunningForecast:
    """Forecast of a running job.

    Parameters
    ----------
    end
        When it ends (seconds on the run's clock).
    overruns
        Probability that it needs longer than was requested; None if nothing was.
    misses
        Probability that it ends after its deadline; None without one.
    """

    end: Range
    overruns: float | None
    misses: float | None


def forecast_waiting(
    outlook: Outlook, *, scenarios: int = SCENARIOS, seed: int = 0
) -> WaitingForecasts:
    """Forecast start and end of every waiting job, those that are held last: they never do.

    Jobs that run into the time they requested are ended there. Futures have arrivals if the
    outlook has jobs to draw them from: each hour to come is as the same hour of one of the last
    days was, or as any earlier one while the run is young.

    Parameters
    ----------
    outlook
        How things stand.
    scenarios
        Futures to draw.
    seed
        Equal seeds draw equal runtimes for equal jobs, so that outlooks can be compared.
    """
    waiting, held = outlook.waiting, len(outlook.held)
    job_ids = [*(each.pending.job.job_id for each in waiting), *outlook.held]
    columns = [np.full((len(LEVELS), held), math.inf)] * 2 + [
        np.ones(held),
        np.full(held, math.nan),
    ]
    if waiting:
        drawn = _Drawn(outlook, scenarios, seed).forecasts()
        columns = [np.concatenate(both, axis=-1) for both in zip(drawn, columns, strict=True)]
    return WaitingForecasts(dict(zip(job_ids, range(len(job_ids)), strict=True)), *columns)


def forecast_running(running: RunningJob, now: float) -> RunningForecast:
    """Forecast the end of a running job, and whether that is later than it should."""
    job, slowdown = running.job, running.slowdown
    elapsed = max(running.elapsed_seconds(now), 0.0) / slowdown
    begin, belief = running.start_seconds, running.prediction
    if float(belief.survival(elapsed)) > 0.0:
        left = belief.given(elapsed)
        ends = [max(now, begin + slowdown * left.quantile(level)) for level in LEVELS]
    else:
        ends = [max(now, running.expected_end_seconds)] * len(LEVELS)

    def later_than(time: float | None) -> float | None:
        return None if time is None else float(still_running(running, np.array([time]), now)[0])

    requested = job.requested_seconds
    if requested is not None:
        ends = [min(end, max(now, begin + requested)) for end in ends]
    return RunningForecast(
        Range(*ends),
        later_than(None if requested is None else begin + requested),
        later_than(job.deadline_seconds),
    )


def suggested_request(pending: PendingJob, risk: float) -> float:
    """Return the time to ask for (seconds) so that the job outlives it with this probability.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1.
    """
    if not 0.0 < risk < 1.0:
        raise ValueError(risk)
    return pending.prediction.quantile(1.0 - risk)


class _Drawn:
    """Futures of an outlook."""

    def __init__(self, outlook: Outlook, scenarios: int, seed: int) -> None:
        self._outlook = outlook
        self._waiting, self._running = outlook.waiting, outlook.running
        self._scenarios = scenarios
        names: list[str | None] = [*outlook.cpus]
        self._number = {name: number for number, name in enumerate(names)} | {None: ANYWHERE}
        self._drawn = scenarios, seed
        runtimes = draw_runtimes((), self._running, outlook.now, *self._drawn)
        self._running_ends = np.zeros((scenarios, len(self._running)))
        for at, each in enumerate(self._running):
            lasting = each.slowdown * runtimes[each.job.job_id]
            requested = each.job.requested_seconds
            if requested is not None:
                lasting = np.minimum(lasting, requested)
            self._running_ends[:, at] = each.start_seconds + lasting
        self._random = np.random.default_rng([seed, scenarios])
        self._lasting = np.empty((scenarios, len(self._waiting)))
        for at, queued in enumerate(self._waiting):  # of one after the other: there may be many
            self._lasting[:, at] = self._lasts(queued.pending)
        self._known = self._columns()
        self._arrivals = arrivals_of(outlook, self._number, self._horizon())

    def _lasts(self, pending: PendingJob) -> Floats:
        runtimes = draw_runtimes((pending,), (), self._outlook.now, *self._drawn)
        requested = pending.job.requested_seconds
        lasting = runtimes[pending.job.job_id]
        return lasting if requested is None else np.minimum(lasting, requested)

    def _columns(self) -> Floats:
        """Return what all futures share of the waiting jobs, shape (columns, 1, jobs)."""
        columns = np.zeros((len(COLUMNS), 1, len(self._waiting)))
        columns[HOME] = [self._number[each.partition] for each in self._waiting]
        asked = [each.pending.job.total for each in self._waiting]
        for column, name in zip((WIDTH, *OTHERS), AMOUNTS, strict=True):
            columns[column] = [getattr(each, name) for each in asked]
        columns[PLANNED] = [each.pending.planned_seconds for each in self._waiting]
        columns[LIKELY] = [each.likely_seconds for each in self._waiting]
        columns[READY] = [each.ready_seconds for each in self._waiting]
        columns[PLACE] = [each.place for each in self._waiting]
        return columns

    def forecasts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the futures of the waiting jobs, as ``WaitingForecasts`` has them."""
        starts = self._starts()
        ends = np.add(starts, self._lasting, out=self._lasting)
        jobs = [each.pending.job for each in self._waiting]
        due = np.array([each.deadline_seconds for each in jobs], dtype=np.float64)
        misses = np.where(np.isnan(due), math.nan, (ends > due).mean(axis=0))
        never = np.isinf(starts).mean(axis=0)
        return _quantiles(starts), _quantiles(ends), never, misses

    def _starts(self) -> Floats:
        """Return when waiting jobs start; shape (futures, jobs)."""
        starts = np.empty_like(self._lasting)
        at_once = max(_THREADS, _MOST_AT_ONCE // len(self._waiting))
        for begin in range(0, self._scenarios, at_once):
            lot = slice(begin, begin + at_once)
            starts[lot] = self._starts_in(lot)
        return starts

    def _starts_in(self, lot: slice) -> Floats:
        """The same, in some of the futures."""
        futures = self._futures(lot)
        count, jobs = futures.widths.shape
        starts = np.empty((count, jobs))
        bounds = np.linspace(0, count, _THREADS + 1).astype(int)
        wanted = len(self._waiting)

        def work(part: int) -> None:
            scratch = blank_scratch(len(futures.cpus), jobs, len(self._running), len(futures.room))
            fill_starts(futures, int(bounds[part]), int(bounds[part + 1]), wanted, scratch, starts)

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(work, range(_THREADS)))
        return starts[:, :wanted]

    def _futures(self, lot: slice) -> Futures:
        outlook, waiting, running = self._outlook, self._waiting, self._running
        count = len(self._lasting[lot])
        of_arrivals = [self._arrivals.one(self._random) for _ in range(count)]
        most = max(len(each) for each in of_arrivals)
        known = len(waiting)
        columns = np.zeros((len(COLUMNS), count, known + most))
        columns[READY] = columns[PLACE] = math.inf
        columns[:, :, :known] = self._known
        columns[RUNTIME, :, :known] = self._lasting[lot]
        due = np.full(known + most, math.inf)  # those to come go first never
        due[:known] = [each.due_seconds for each in waiting]
        for future, each in enumerate(of_arrivals):
            columns[:, future, known : known + len(each)] = each.T
        counted = [other for other in OTHERS if columns[other].any()]
        return Futures(
            now=outlook.now,
            cpus=np.array([*outlook.cpus.values()], dtype=np.float64),
            backfills=outlook.backfills,
            home=columns[HOME],
            widths=columns[WIDTH],
            planned=columns[PLANNED],
            likely=columns[LIKELY],
            ready=columns[READY],
            runtimes=columns[RUNTIME],
            order=np.argsort(columns[PLACE], axis=1, kind="stable"),
            running_home=np.array(
                [self._number[each.placement.tasks_by_partition[0][0]] for each in running],
                dtype=np.int64,
            ),
            running_widths=np.array([each.cpus for each in outlook.taken], dtype=np.float64),
            running_planned=np.array(
                [each.expected_end_seconds for each in running], dtype=np.float64
            ),
            running_ends=self._running_ends[lot],
            due=due,
            room=_amounts(counted, outlook.room.values()),
            needs=columns[counted],
            running_needs=_amounts(counted, outlook.taken),
            by_due=np.argsort(due, kind="stable")[: np.count_nonzero(np.isfinite(due))],
            **_predecessors(waiting, running, known + most),
        )

    def _horizon(self) -> float:
        """Return how far ahead arrivals matter (seconds): twice the time that all work takes."""
        lasting = self._lasting.mean(axis=0)
        asked = [each.pending.job.total for each in self._waiting]
        room = sum(self._outlook.room.values(), Resources())
        taken = [
            float(lasting @ np.array([getattr(each, name) for each in asked])) / there
            for name in AMOUNTS
            if (there := getattr(room, name)) > 0.0
        ]
        ends = self._running_ends.mean(axis=0) if self._running else np.zeros(1)
        left = max(0.0, float(ends.max()) - self._outlook.now)
        return min(_LONGEST_HORIZON, HOUR + left + 2.0 * max(taken, default=0.0))


def _amounts(columns: Sequence[int], of: Iterable[Resources]) -> Floats:
    """Return requests or totals of resources beside cpus, shape (columns, those)."""
    rows = [(each.memory_bytes, each.gpus) for each in of]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(OTHERS))
    return np.ascontiguousarray(table.T[[OTHERS.index(column) for column in columns]])


def _predecessors(
    waiting: Sequence[QueuedJob], running: Sequence[RunningJob], jobs: int
) -> dict[str, NDArray[np.int64]]:
    """Return the predecessors of each job that have not ended."""
    number = {each.pending.job.job_id: at for at, each in enumerate(waiting)}
    number.update((each.job.job_id, jobs + at) for at, each in enumerate(running))
    before = [
        [number[job_id] for job_id in each.pending.job.after if job_id in number]
        for each in waiting
    ]
    _add_conditions(before, waiting, running, number)
    counts = np.zeros(jobs + 1, np.int64)
    counts[1 : len(before) + 1] = [len(each) for each in before]
    flat = [each for several in before for each in several]
    return {"first_before": np.cumsum(counts), "before": np.array(flat, np.int64)}


def _add_conditions(
    before: list[list[int]],
    waiting: Sequence[QueuedJob],
    running: Sequence[RunningJob],
    number: Mapping[str, int],
) -> None:
    """Apply the conditions of jobs, for futures in which each job waits for ends.

    Whoever waits for a begin waits for nothing. A member of an array with a limit waits for the one
    that so many came before it; a singleton for all that have come since the last one.
    """
    arrays: dict[str, list[int]] = {}
    namesakes: dict[tuple[str | None, str | None], list[int]] = {}
    jobs = [(each.job, -1) for each in running]
    jobs += [(each.pending.job, at) for at, each in enumerate(waiting)]
    for job, at in jobs:
        own, conditions = number[job.job_id], job.conditions
        alike = namesakes.setdefault((job.user, job.name), [])
        if conditions is not None and conditions.singleton:
            if at >= 0:
                before[at] += alike
            alike.clear()
        alike.append(own)
        if conditions is None:
            continue
        if conditions.most_at_once is not None:
            members = arrays.setdefault(conditions.array, [])
            if at >= 0 and len(members) >= conditions.most_at_once:
                before[at].append(members[-conditions.most_at_once])
            members.append(own)
        for each in conditions.dependencies:
            if at >= 0 and each.kind is DependencyKind.AFTER:
                begun = {number.get(job_id) for job_id in each.job_ids}
                before[at] = [other for other in before[at] if other not in begun]


def ranges_of(times: Floats) -> list[Range]:
    """Quantiles of each column, shape (futures, columns): each is a value that there is."""
    return [Range(*column) for column in _quantiles(times).T.tolist()]


def _quantiles(times: Floats) -> Floats:
    """The same as a table, some columns after the other: each lot of them is copied."""
    lots = np.array_split(times, range(_COLUMNS_AT_ONCE, times.shape[1], _COLUMNS_AT_ONCE), axis=1)
    of_lots = [np.quantile(lot, LEVELS, axis=0, method="inverted_cdf") for lot in lots]
    return np.concatenate(of_lots, axis=1)
