"""What ``foresail forecast`` tells of a job of a run that has an event log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.explain.forecast import Range
    from foresail.record.records import Record


def forecast_of_run(
    run: Path, job_id: str, at: str | None, policy: str | None, futures: int | None
) -> dict[str, Any]:
    """The forecast of a job at a moment of a run, as the service answers.

    Times are seconds since the run's start.

    The moment is the log's last one; if the job has started by then, that of its submission.

    Raises ``InputError`` if the log or the policy cannot be used, or the job does not wait then.
    """
    from foresail.cli import _moments as moments
    from foresail.cli.progress import doing
    from foresail.control.policy import parse_policy
    from foresail.explain.forecast import forecast_running
    from foresail.explain.run_forecast import (
        SCENARIOS,
        controller_at,
        forecast_in_run,
        scenario_at,
    )
    from foresail.record.log_text import read_log

    log = moments.log_of(run)
    with doing(f"reading {log.name}"):
        records = list(read_log(log))
        now = _usual_moment(records, job_id, log)
        if at is not None:
            now = moments.seconds_at(records, at, log, "--at")
        decides = None if policy is None else parse_policy(policy)
        before = moments.learned_before(run) if decides is None else None
        scenario = replace(scenario_at(records, now, decides), learned_before=before)
        controller = controller_at(records, now, scenario)
    zero = _zero(records)
    told: dict[str, Any] = {"job_id": job_id, "made_seconds": now - zero}
    running = controller.running.get(job_id)
    if running is not None:
        ahead = forecast_running(running, now)
        told |= {"end": _quantiles(ahead.end, zero), "overruns": ahead.overruns}
        return {**told, "misses": ahead.misses}
    scenarios = SCENARIOS if futures is None else futures
    with doing(f"simulating {scenarios} futures") as entered:
        found = forecast_in_run(
            controller, scenario, job_id, now, scenarios=scenarios, watch=entered.watch
        )
    told |= {"start": _quantiles(found.start, zero), "end": _quantiles(found.end, zero)}
    return {**told, "never": found.never, "misses": found.misses}


def _zero(records: Sequence[Record]) -> float:
    from foresail.record.log_clock import LogClock

    clock = LogClock()
    for record in records:
        clock.see(record)
    return clock.zero


def _quantiles(times: Range, zero: float) -> dict[str, float | None]:
    """Seconds since then, as JSON has them: infinite ones are unknown."""
    told = {"p10": times.low, "p50": times.median, "p90": times.high}
    return {name: None if math.isinf(time) else time - zero for name, time in told.items()}


def _usual_moment(records: Sequence[Record], job_id: str, log: Path) -> float:
    """The last moment of a log if a job has not started by then, else that of its submission."""
    from foresail.model.decision import Start
    from foresail.model.event import Submitted
    from foresail.record.records import EventTaken, Instructed

    submitted: float | None = None
    last, has_started = 0.0, False
    for record in records:
        last = max(last, getattr(record, "time", last))
        match record:
            case EventTaken(time=now, event=Submitted(job=job)) if job.job_id == job_id:
                submitted = now
            case Instructed(instruction=Start(job_id=started)) if started == job_id:
                has_started = True
    if submitted is None:
        raise InputError("the log does not know this job", source=log, value=job_id)
    return submitted if has_started else last
