"""Forecasts for who asks: made of the run as it stands, shared while fresh, kept to be judged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from foresail.control.loop import Controller
from foresail.explain.forecast import SCENARIOS, Range, WaitingForecast, forecast_waiting
from foresail.explain.outlook import Outlook, outlook_of, with_arrivals
from foresail.explain.start_calibration import MOST, StartCalibration
from foresail.model.job import Job
from foresail.record.job_life import JobHistory
from foresail.service.overview import slowly
from foresail.service.picture import DaemonBusy, Gallery
from foresail.service.store.protocol import ForecastRow
from foresail.service.store.sql_store import SqlStore

_LOG: Final = logging.getLogger("foresail.service")

FRESH_SECONDS: Final = 2.0
_FEWEST_SCENARIOS: Final = 30
_MOST_WORK: Final = SCENARIOS * 2_000
"""Jobs times futures at most, unless there are fewer futures than the fewest."""

_MANY: Final = 2_000
"""Of fewer jobs forecasts take no time that counts: what took long has loaded kernels."""

_SOON_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 1.5
"""Forecasts that take longer than the former are made beside the question, which is answered by
those of before, or waits for the first ones for so long."""

_ROWS_AT_ONCE: Final = 1_000
_CALIBRATION_SECONDS: Final = 10.0

_DRAWING: Final = ThreadPoolExecutor(2, thread_name_prefix="forecasts")
"""Kernels may be compiled here first, for minutes: nothing else waits for these threads."""


@dataclass(frozen=True, slots=True)
class Forecasts:
    """What was expected at a moment."""

    outlook: Outlook
    """How things stood."""
    drawn: Mapping[str, WaitingForecast]
    """What was expected of jobs that waited, by id, as it came out."""
    waiting: Mapping[str, WaitingForecast]
    """The same, corrected by how earlier forecasts have held."""
    soonest: Mapping[str, Job]
    """Those that should start at some time by id, in order of expected start."""


class QueueForecaster:
    """Makes forecasts in threads of their own, one of the whole queue at a time.

    The store keeps the first forecast of each job, so that it can be judged.
    """

    def __init__(self, gallery: Gallery, store: SqlStore) -> None:
        self._gallery = gallery
        self._store = store
        self._latest: Forecasts | None = None
        self._made_monotonic = -float("inf")
        self._begun_monotonic = 0.0
        self._cost_seconds = 0.0
        self._making: asyncio.Task[Forecasts] | None = None
        self._kept: Collection[str] = ()
        self._calibration = StartCalibration()
        self._calibrated_monotonic = -float("inf")

    async def latest(
        self, waiting: Collection[str], patience_seconds: float = 1.0
    ) -> Forecasts | None:
        """The forecasts of all jobs that wait, if there are fresh ones, or can be soon.

        Under a long queue they are made less often than every ``FRESH_SECONDS``; then the ones of
        before are given. They are waited for a while if some of these jobs are not among them,
        and the last ones were made, or these are being made, in so short a time. None: there are
        none in time.
        """
        age = time.monotonic() - self._made_monotonic
        latest = self._latest
        lacks = latest is None or any(job_id not in latest.waiting for job_id in waiting)
        least = 0.0 if lacks else FRESH_SECONDS
        if self._making is None and age > max(least, 5.0 * self._cost_seconds):
            self._begun_monotonic = time.monotonic()
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        hopeless = self._cost_seconds > patience_seconds
        if self._making is not None:
            patience_seconds -= time.monotonic() - self._begun_monotonic
            hopeless = hopeless or patience_seconds <= 0.0
        if self._making is not None and (lacks or age > 10.0 * FRESH_SECONDS) and not hopeless:
            await asyncio.wait({self._making}, timeout=patience_seconds)
        return self._latest

    async def of_job(self, job_id: str) -> Forecasts | None:
        """The forecasts of all jobs that wait, made now where that takes little.

        Else those made last, of which they tell when that was; None if the job is in none of them
        in time.
        """
        if self._latest is not None and self._cost_seconds < _SOON_SECONDS:
            return await self.ahead(arrivals=False)
        latest = await self.latest([job_id], _PATIENCE_SECONDS)
        return latest if latest is not None and job_id in latest.waiting else None

    async def ahead(self, *, arrivals: bool) -> Forecasts:
        """The forecasts of all jobs that wait, made now; with jobs to come, if that is asked."""
        return await self._of(await self._outlook((), arrivals=arrivals))

    async def with_others(self, jobs: Sequence[Job], *, arrivals: bool) -> Forecasts:
        """What would be expected if there were other jobs, or some were others."""
        return await self._of(await self._outlook(jobs, arrivals=arrivals))

    async def _outlook(self, jobs: Sequence[Job], *, arrivals: bool) -> Outlook:
        def stands(controller: Controller, fold: JobHistory) -> Outlook:
            outlook = outlook_of(controller, jobs)
            return with_arrivals(outlook, controller, fold) if arrivals else outlook

        return await self._gallery.ask(stands)

    async def _of(self, outlook: Outlook) -> Forecasts:
        calibration = await self._up_to_date()
        return await asyncio.wrap_future(_DRAWING.submit(_drawn, outlook, calibration))

    async def _up_to_date(self) -> StartCalibration:
        """What earlier forecasts teach, as of not long ago."""
        now = time.monotonic()
        if now - self._calibrated_monotonic > _CALIBRATION_SECONDS:
            self._calibrated_monotonic = now
            rows = await slowly(self._store.started_forecasts, MOST)
            calibration = StartCalibration()
            for row, start_seconds in rows:
                low, high = row.drawn_low_seconds, row.drawn_high_seconds
                drawn = Range(low, row.median_seconds, high)
                calibration.observe(row.made_seconds, drawn, start_seconds)
            self._calibration = calibration
        return self._calibration

    async def _make(self) -> Forecasts:
        begin = time.monotonic()
        made = await self.ahead(arrivals=False)
        is_long = len(made.waiting) > _MANY
        self._cost_seconds = time.monotonic() - begin if is_long else 0.0
        first = (
            ForecastRow(
                job_id,
                made.outlook.now,
                each.start.low,
                each.start.median,
                each.start.high,
                made.drawn[job_id].start.low,
                made.drawn[job_id].start.high,
            )
            for job_id, each in made.waiting.items()
            if job_id not in self._kept and each.never == 0.0
        )
        while some := list(islice(first, _ROWS_AT_ONCE)):  # others write in between
            await slowly(self._store.keep_forecasts, some)
        self._kept = made.waiting.keys()
        return made

    def _made(self, task: asyncio.Task[Forecasts]) -> None:
        self._making = None
        self._made_monotonic = time.monotonic()
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._latest = replace(task.result(), drawn={})
        elif isinstance(error, DaemonBusy):
            _LOG.info("no forecast is made now: %s", error)
        else:
            _LOG.error("no forecast could be made", exc_info=error)


def _drawn(outlook: Outlook, calibration: StartCalibration) -> Forecasts:
    """The forecasts of an outlook, of fewer futures the more jobs wait."""
    scenarios = max(_FEWEST_SCENARIOS, min(SCENARIOS, _MOST_WORK // (1 + len(outlook.waiting))))
    drawn = forecast_waiting(outlook, scenarios=scenarios)
    waiting = calibration.corrected(outlook.now, drawn)
    medians = waiting.starts[1]
    expected = np.argsort(medians, kind="stable")[: np.count_nonzero(np.isfinite(medians))]
    jobs = [outlook.waiting[at].pending.job for at in expected.tolist()]
    return Forecasts(outlook, drawn, waiting, {job.job_id: job for job in jobs})
