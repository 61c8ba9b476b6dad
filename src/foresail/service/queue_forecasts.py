"""Forecasts of a queue: how earlier ones have held, what is stated, and what is kept of them."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from foresail.explain.forecast import SCENARIOS, Range, WaitingForecasts
from foresail.explain.futures import stand_in_words
from foresail.explain.job_columns import JobColumns
from foresail.explain.outlook import Outlook
from foresail.explain.start_calibration import MOST, AskedStart, StartCalibration
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.distribution import Floats
from foresail.model.job import Job
from foresail.model.words import count, duration, percent
from foresail.service.store.protocol import (
    HORIZONS_SECONDS,
    ForecastKind,
    ForecastOutcome,
    ForecastRow,
)

MOST_OUTCOMES: Final = 4 * MOST
"""Number of the last outcomes that forecasts are compared with."""

_FEWEST_SCENARIOS: Final = 30
_MOST_WORK: Final = SCENARIOS * 1_000
"""Jobs times futures at most, unless there are fewer futures than the fewest."""

_ROWS_AT_ONCE: Final = 1_000
_AT_ONCE_SECONDS: Final = 1.0
_DOUBLED_SECONDS: Final = 60.0
"""Wait below which nothing is kept of a job, and from which on it is kept at each doubling."""

_DOUBTFUL: Final = 0.6
"""Share of the last ranges of a kind below which it is stated with the next ones how many held."""

_LAST: Final = 200
_FEWEST_LAST: Final = 30
"""Numbers of forecasts of a kind that its accuracy is stated of, and below which it is not."""


@dataclass(frozen=True, slots=True)
class StandInRecord:
    """Record of the last forecasts in which a simpler rule stood in for the policy's own.

    How many there are, the share of ranges that held, and by how much half of the middles were off.
    """

    starts: int = 0
    held: float = 0.0
    off_seconds: float = 0.0

    @classmethod
    def from_ends(cls, ends: Sequence[tuple[bool, float]]) -> StandInRecord:
        """Make it of which ranges held, and by how much (seconds) their middles were off."""
        if not ends:
            return cls()
        held, off = np.array(ends, dtype=np.float64).T
        return cls(len(ends), float(held.mean()), float(np.median(off)))

    @property
    def sentence(self) -> str:
        """By how much such forecasts may be off."""
        if self.starts < _FEWEST_LAST:
            return f"by how much is not known yet, after {count(self.starts, 'such start')}"
        return (
            f"of the last {count(self.starts, 'such start')} {percent(self.held)} were within "
            f"their range, and half of them within {duration(self.off_seconds)} of its middle"
        )


@dataclass(frozen=True, slots=True)
class PastForecasts:
    """Forecasts of which something is known by now."""

    calibration: StartCalibration
    held: Mapping[int, float]
    """Share of the last ones that held, by horizon."""
    stood_in: StandInRecord

    @classmethod
    def from_outcomes(cls, outcomes: Sequence[ForecastOutcome]) -> PastForecasts:
        """Compare forecasts, in the order in which they were made, with what came about."""
        asked: list[AskedStart] = []
        held: dict[int, list[bool]] = {}
        stood_in: list[tuple[bool, float]] = []
        for each in outcomes:
            row, seconds = each.forecast, each.seconds
            drawn = Range(row.drawn_low_seconds, row.drawn_median_seconds, row.drawn_high_seconds)
            made = each.submitted_seconds, row.made_seconds
            asked.append(AskedStart(*made, drawn, row.waiting, seconds, each.has_started))
            is_known = each.has_started or seconds > row.high_seconds
            if is_known and row.kind is not ForecastKind.UNKNOWN:
                is_within = row.low_seconds <= seconds <= row.high_seconds
                ahead = _horizon(row.median_seconds - row.made_seconds)
                held.setdefault(ahead, []).append(is_within)
                if row.stood_in:
                    stood_in.append((is_within, abs(seconds - row.median_seconds)))
        return cls(
            StartCalibration(asked[-MOST:]),
            {
                which: sum(some[-_LAST:]) / len(some[-_LAST:])
                for which, some in held.items()
                if len(some) >= _FEWEST_LAST
            },
            StandInRecord.from_ends(stood_in[-_LAST:]),
        )


def _horizon(wait_seconds: float) -> int:
    """Return the number of the horizon of a forecast wait."""
    return next(at for at, most in enumerate(HORIZONS_SECONDS) if wait_seconds < most)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Forecasts made at a moment."""

    outlook: Outlook
    """State of the cluster, without what is only drawn by."""
    drawn: WaitingForecasts
    """Expected starts of jobs that waited, by id, as they came out."""
    waiting: WaitingForecasts
    """The same, corrected by how earlier forecasts have held."""
    soonest: Mapping[str, Job]
    """Jobs that should start at some time by id, in order of expected start."""
    unknown: frozenset[str]
    """Jobs of which too little is known for a range."""
    held: Mapping[int, float]
    """Share of the last forecasts that held, by horizon."""
    stood_in: StandInRecord = StandInRecord()
    stand_in: str | None = None
    """Reason why a simpler rule than the policy's own starts jobs in the futures, if one does."""

    def doubt(self, start: Range) -> float | None:
        """Return the share of ranges so far ahead that held, where these were too few."""
        wait = start.median - self.outlook.now
        held = self.held.get(_horizon(wait), 1.0) if math.isfinite(wait) else 1.0
        return held if held < _DOUBTFUL else None

    def cause(self, job_id: str) -> Job | None:
        """Return the job that runs on whose end most of what is open of a start depends."""
        at = int(self.waiting.causes[self.waiting.places[job_id]])
        return None if at < 0 else self.outlook.running[at].job

    def due_rows(
        self, kept: Mapping[str, float], estimates: Mapping[str, float]
    ) -> Iterator[list[ForecastRow]]:
        """Yield what is to be kept, some at a time; nothing of jobs that never start."""
        now, jobs = self.outlook.now, self.outlook.waiting.jobs
        ends = np.isfinite(self.waiting.starts[-1, : len(jobs)])
        due = np.flatnonzero((due_times(jobs, kept) <= now) & ends)
        for some in np.split(due, range(_ROWS_AT_ONCE, len(due), _ROWS_AT_ONCE)):
            starts = self.waiting.starts[:, some], self.drawn.starts[:, some]
            ranges = np.concatenate((*starts, self.waiting.ends[::2, some]))
            waits = [jobs.pending[at].job for at in some.tolist()]
            rows = ranges.T.tolist()
            for job, row in zip(waits, rows, strict=True):
                row[6:6] = [self.stand_in is not None]
                row += [estimates.get(job.job_id), job.partition]
            kinds = [_kind_of_forecast(job.job_id, self.unknown, kept) for job in waits]
            yield [
                ForecastRow(job.job_id, now, kind, len(self.waiting), *row)
                for job, kind, row in zip(waits, kinds, rows, strict=True)
            ]


def due_times(jobs: JobColumns, kept: Mapping[str, float]) -> Floats:
    """Return when the next forecast of each job is to be kept, by when the last ones were made."""
    last = np.array([kept.get(job_id, math.nan) for job_id in jobs.places], dtype=np.float64)
    submitted = jobs.table["submitted"]
    doubled = np.maximum(_DOUBLED_SECONDS, 2.0 * (last - submitted))
    return submitted + np.where(np.isnan(last), _AT_ONCE_SECONDS, doubled)


def _kind_of_forecast(job_id: str, unknown: Container[str], kept: Container[str]) -> ForecastKind:
    if job_id in unknown:
        return ForecastKind.UNKNOWN
    return ForecastKind.WAITING if job_id in kept else ForecastKind.SUBMISSION


def drawn_forecasts(
    outlook: Outlook,
    starts: StartForecaster,
    past: PastForecasts,
    alike: Mapping[str, Job] = MappingProxyType({}),
) -> Forecasts:
    """The forecasts of an outlook, of fewer futures the more jobs wait."""
    scenarios = max(_FEWEST_SCENARIOS, min(SCENARIOS, _MOST_WORK // (1 + len(outlook.waiting))))
    drawn = starts.forecast(outlook, scenarios=scenarios, alike=alike)
    waiting = past.calibration.corrected(outlook.now, drawn)
    jobs, medians = outlook.waiting.jobs, waiting.starts[1]
    expected = np.argsort(medians, kind="stable")[: np.count_nonzero(np.isfinite(medians))]
    soonest = {(job := jobs.pending[at].job).job_id: job for at in expected.tolist()}
    unknown = starts.unknown(outlook, waiting)
    stood = replace(outlook, rule=None, recent=())
    stand_in = stand_in_words(outlook)
    return Forecasts(stood, drawn, waiting, soonest, unknown, past.held, past.stood_in, stand_in)
