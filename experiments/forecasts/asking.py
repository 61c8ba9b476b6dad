"""Questions to a schedule as it goes by, and the answers of Foresail's own forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from schedules import RECORDED, Floats, Log, PastSchedule, run_schedule
from scoring import LEVELS

from foresail.explain.forecast import WaitingForecast, WaitingForecasts, forecast_waiting
from foresail.explain.outlook import Outlook, outlook_of
from foresail.explain.start_calibration import AskedStart, StartCalibration
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Resources
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
    jobs = np.flatnonzero(waits > 1.0)
    jobs = np.random.default_rng(1).permutation(jobs)[:count]
    twice = np.concatenate((jobs, jobs))
    halfway = np.repeat((False, True), len(jobs))
    asked = past.submit[twice] + np.where(halfway, 0.5, 0.0) * waits[twice]
    order = np.argsort(asked, kind="stable")
    twice, asked = twice[order], asked[order]
    return Questions(twice, asked, halfway[order], past.start[twice] - asked)


class _Forecasters:
    """Ours, with and without parts, each corrected by its own past where that is wished."""

    def __init__(self, parts: list[str]) -> None:
        self.whole = StartForecaster()
        self._alone = StartForecaster()
        self._alone._factor.shares = (0.0,) * 4
        self._alone._factor.update = lambda: None  # type: ignore[method-assign]
        self._parts = parts

    def forecasts(
        self, log: Log, now: float, scenarios: int, recorded: float | None
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
        for name in self._parts:
            learned, common, arrivals = PARTS[name]
            outlook = coming if arrivals else bare
            forecaster = self.whole if common else self._alone
            if learned:
                found[name] = forecaster.forecast(outlook, scenarios=scenarios)
            else:
                found[name] = forecast_waiting(outlook, scenarios=scenarios)
        return found


def _at(outlook: Outlook, now: float, processors: float | None) -> Outlook:
    """The same at a later moment before anything has happened, on a machine of this size."""
    waiting = tuple(
        replace(each, ready_seconds=max(each.ready_seconds, now)) for each in outlook.waiting
    )
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
    parts: list[str],
) -> dict[str, Floats]:
    """Run the schedule again, asking: quantiles of what is left to wait, by method."""
    forecasters = _Forecasters(parts)
    corrected = parts[-1]
    asked: list[tuple[int, AskedStart]] = []
    answers = {name: np.full((len(questions.jobs), len(LEVELS)), np.nan) for name in [*parts, OURS]}
    borders = np.append(past.steps[1:], np.inf)
    machine = past.processors if policy == RECORDED else None
    asked_to = 0
    step = 0

    def ask(now: float) -> None:
        nonlocal asked_to, step
        until = borders[step]
        step += 1
        while asked_to < len(questions.asked) and questions.asked[asked_to] < until:
            number, asked_to = asked_to, asked_to + 1
            moment = max(now, float(questions.asked[number]))
            calibration = StartCalibration(
                [_known(one, past.start[of], moment) for of, one in asked]
            )
            job = int(questions.jobs[number])
            job_id = past.job_ids[job]
            found = forecasters.forecasts(log, moment, scenarios, machine)
            for name, forecasts in found.items():
                _note(answers[name], number, forecasts[job_id], moment)
            drawn = found[corrected]
            _note(answers[OURS], number, calibration.corrected(moment, drawn)[job_id], moment)
            came = float(past.submit[job])
            told = AskedStart(came, moment, drawn[job_id].start, len(drawn), moment)
            asked.append((job, told))

    log = Log(ask)
    run_schedule(workload, policy, past.limits, log)
    return answers


def _known(asked: AskedStart, start: float, now: float) -> AskedStart:
    """The same, with what is known of its outcome at a moment."""
    return replace(asked, seconds=min(start, now), has_started=start <= now)


def _note(answers: Floats, number: int, told: WaitingForecast, now: float) -> None:
    start = told.start
    answers[number] = start.low - now, start.median - now, start.high - now
