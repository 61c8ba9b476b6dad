"""Questions to a schedule as it goes by, and the answers of Foresail's own forecasts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from schedules import RECORDED, Floats, Log, PastSchedule, run_schedule
from scoring import LEVELS

from foresail.explain.forecast import WaitingForecast, WaitingForecasts, forecast_waiting
from foresail.explain.job_columns import JobColumns
from foresail.explain.outlook import Outlook, outlook_of
from foresail.explain.start_calibration import AskedStart, StartCalibration
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Resources
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.view import RunningJob
from foresail.traces.workload import Workload

OURS = "ours"
PARTS = {
    "as the policy believes": (False, False, False),
    "learned beside": (True, False, False),
    "and a common factor": (True, True, False),
    "ours as drawn": (True, True, True),
}
"""Ours without parts: whether beliefs are learned beside the policy's, whether what is unknown of
many is drawn once, and whether jobs to come are drawn."""


@dataclass(frozen=True, slots=True)
class Questions:
    """When a job starts that waits, asked at some share of its wait; by time."""

    jobs: Floats
    asked: Floats
    halfway: Floats
    """True if asked at half of the wait, False at submission."""
    left: Floats
    """Seconds that were left to wait."""


def questions_of(past: PastSchedule, count: int) -> Questions:
    """Draw about so many jobs that wait for more than a second, each asked of twice."""
    waits = past.start - past.submit
    jobs = _waiting_jobs(past, 1)[:count]
    twice = np.concatenate((jobs, jobs))
    halfway = np.repeat((False, True), len(jobs))
    asked = past.submit[twice] + np.where(halfway, 0.5, 0.0) * waits[twice]
    order = np.argsort(asked, kind="stable")
    twice, asked = twice[order], asked[order]
    return Questions(twice, asked, halfway[order], past.start[twice] - asked)


def _waiting_jobs(past: PastSchedule, seed: int) -> NDArray[np.int64]:
    """Return the jobs that wait for more than a second, in random order."""
    jobs = np.flatnonzero(past.start - past.submit > 1.0)
    return np.random.default_rng(seed).permutation(jobs)


class _Forecasters:
    """Ours, with and without parts, each corrected by its own past where that is wished."""

    def __init__(self) -> None:
        self.whole = StartForecaster()
        self._alone = StartForecaster()
        self._alone._factor.shares = (0.0,) * 4
        self._alone._factor.update = lambda: None  # type: ignore[method-assign]

    def forecasts(
        self, log: Log, now: float, scenarios: int, recorded: float | None, parts: list[str]
    ) -> dict[str, WaitingForecasts]:
        """Forecast all that waits, by part."""
        controller = log.controller
        assert controller is not None
        history = controller.state.history
        assert history is not None
        bare = _at(outlook_of(controller), now, recorded)
        coming = _at(outlook_of(controller, history=history), now, recorded)
        self.whole.catch_up(history)
        self._alone.catch_up(history)
        found = {}
        for name in parts:
            learned, common, arrivals = PARTS[name]
            outlook = coming if arrivals else bare
            forecaster = self.whole if common else self._alone
            if learned:
                found[name] = forecaster.forecast(outlook, scenarios=scenarios)
            else:
                found[name] = forecast_waiting(outlook, _draw_believed, scenarios=scenarios)
        return found


def _draw_believed(
    waiting: JobColumns, running: Sequence[RunningJob], now: float, count: int, seed: int
) -> tuple[Floats, Floats]:
    """Draw runtimes as the policy's predictor believes, those of each job by themselves."""

    def drawn(belief: Distribution, job: Job) -> Floats:
        key = zlib.crc32(job.job_id.encode())
        return belief.sample(np.random.default_rng([seed, key]), count)

    def left(each: RunningJob) -> Floats:
        elapsed = each.elapsed_seconds(now)
        if each.prediction.survival(elapsed) > 0.0:
            return drawn(each.prediction.given(elapsed), each.job)
        return np.full(count, each.expected_end_seconds - each.start_seconds)

    waits = [drawn(each.prediction, each.job) for each in waiting.pending]
    runs = [left(each) for each in running]
    return np.reshape(waits, (-1, count)).T, np.reshape(runs, (-1, count)).T


def _at(outlook: Outlook, now: float, processors: float | None) -> Outlook:
    """The same at a later moment before anything has happened, on a machine of this size."""
    waiting = replace(outlook.waiting, ready=np.maximum(outlook.waiting.ready, now))
    room = outlook.room
    if processors is not None:
        room = {
            name: Resources(processors, each.memory_bytes, each.gpus) for name, each in room.items()
        }
    return replace(outlook, now=now, waiting=waiting, room=room)


def answers_of_ours(
    workload: Workload,
    policy: str,
    past: PastSchedule,
    questions: Questions,
    *,
    scenarios: int,
    learned: int,
    parts: list[str],
) -> tuple[dict[str, Floats], Floats]:
    """Run the schedule again, asking: quantiles of what is left to wait, by method.

    Corrections learn from forecasts made at the questions and at so many other submissions. The
    second are ranges of all that waited, as kept at doublings of waits, and starts: a row each.
    """
    forecasters = _Forecasters()
    corrected = parts[-1]
    kept = _Kept(past)
    answers = {name: np.full((len(questions.jobs), len(LEVELS)), np.nan) for name in [*parts, OURS]}
    borders = np.append(past.steps[1:], np.inf)
    machine = past.processors if policy == RECORDED else None
    others = past.submit[_waiting_jobs(past, 2)[:learned]]
    moments = np.concatenate((questions.asked, others))
    order = np.argsort(moments, kind="stable").tolist()
    asked_to = step = 0

    def ask(now: float) -> None:
        nonlocal asked_to, step
        until = borders[step]
        step += 1
        while asked_to < len(order) and moments[order[asked_to]] < until:
            number, asked_to = order[asked_to], asked_to + 1
            moment = max(now, float(moments[number]))
            is_question = number < len(questions.jobs)
            names = parts if is_question else [corrected]
            found = forecasters.forecasts(log, moment, scenarios, machine, names)
            drawn = found[corrected]
            if is_question:
                job_id = past.job_ids[int(questions.jobs[number])]
                calibration = StartCalibration(kept.known(moment))
                found[OURS] = told = calibration.corrected(moment, drawn)
                kept.tell(moment, told)
                for name, forecasts in found.items():
                    _note(answers[name], number, forecasts[job_id], moment)
            kept.keep(moment, drawn)

    log = Log(ask)
    run_schedule(workload, policy, past.limits, log)
    return answers, kept.told()


class _Kept:
    """Forecasts of all that waits, kept as a service does: first, and as each wait has doubled."""

    def __init__(self, past: PastSchedule) -> None:
        self._start = dict(zip(past.job_ids, past.start.tolist(), strict=True))
        self._asked: list[tuple[str, AskedStart]] = []
        self._last: dict[str, float] = {}
        self._told: list[tuple[float, float, float]] = []

    def tell(self, now: float, told: WaitingForecasts) -> None:
        """Note the ranges of those whose wait has doubled since they were kept last."""
        for job_id, submitted in zip(told, told.submitted.tolist(), strict=True):
            if job_id in self._last and self._is_due(job_id, submitted, now):
                start = told[job_id].start
                self._told.append((start.low, start.high, self._start[job_id]))

    def told(self) -> Floats:
        """Return the low and high ends of these ranges, and the starts."""
        return np.array(self._told).reshape(-1, 3)

    def _is_due(self, job_id: str, submitted: float, now: float) -> bool:
        last = self._last.get(job_id, -np.inf)
        return bool(now >= submitted + max(60.0, 2.0 * (last - submitted)) or np.isinf(last))

    def keep(self, now: float, drawn: WaitingForecasts) -> None:
        """Keep those that are due of forecasts made now."""
        for job_id, submitted in zip(drawn, drawn.submitted.tolist(), strict=True):
            if self._is_due(job_id, submitted, now):
                start = drawn[job_id].start
                self._asked.append((job_id, AskedStart(submitted, now, start, len(drawn), now)))
                self._last[job_id] = now

    def known(self, now: float) -> list[AskedStart]:
        """Return those of which something is known at a moment."""
        starts = ((self._start[job_id], each) for job_id, each in self._asked)
        return [
            replace(each, seconds=min(start, now), has_started=start <= now)
            for start, each in starts
            if start <= now or each.made_seconds + each.drawn.low < 2.0 * now
        ]


def _note(answers: Floats, number: int, told: WaitingForecast, now: float) -> None:
    start = told.start
    answers[number] = start.low - now, start.median - now, start.high - now
