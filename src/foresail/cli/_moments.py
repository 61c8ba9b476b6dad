"""Event log of a run, and the moment of it that a command means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from foresail.model.errors import InputError
from foresail.model.words import duration, duration_of

if TYPE_CHECKING:
    from foresail.explain.run_snapshot import RunSnapshot
    from foresail.record.records import Record
    from foresail.reports.plan.page import RunCourse
    from foresail.scenario.learned_before import LearnedBefore


_LOG: Final = "events.jsonl"


def log_of(run: Path) -> Path:
    """The event log of a run, given its folder or the log itself.

    Raises ``InputError`` if it is a folder without one.
    """
    if not run.is_dir():
        return run
    if not (run / _LOG).is_file():
        raise InputError(
            "holds no event log", source=run, expected=f"the folder of a run, with {_LOG} in it"
        )
    return run / _LOG


def snapshot_at(records: Sequence[Record], at: str | None, log: Path, option: str) -> RunSnapshot:
    """The moment that a time since the run's start names, or the busiest one."""
    from foresail.explain.run_snapshot import extent_of, snapshot_of

    if at is None:
        return snapshot_of(records, extent_of(records, log).busiest_seconds)
    return snapshot_of(records, seconds_at(records, at, log, option))


def seconds_at(records: Sequence[Record], at: str, log: Path, option: str) -> float:
    """The moment that a time since the run's start names, in seconds on the log's clock."""
    from foresail.explain.run_snapshot import extent_of

    extent = extent_of(records, log)
    seconds = duration_of(at, option)
    last = extent.end_seconds - extent.zero_seconds
    if seconds > last:
        raise InputError(
            "is after the end of the run",
            source=log,
            field=option,
            value=at,
            expected=f"at most {duration(last)} ({last:.0f} s)",
        )
    return extent.zero_seconds + seconds


def learned_before(run: Path) -> LearnedBefore | None:
    """Return what a run's predictor had learned before; None of a simulation."""
    from foresail.live.run_directory import RunDirectory
    from foresail.scenario.by_daemon import scenario_of_run

    if not (run / "run.json").is_file():
        return None
    return scenario_of_run(RunDirectory.open(run)).learned_before


def course_of(log: Path, at: str | None) -> RunCourse | None:
    """Return what the event log of a simulation adds to its report; raises as ``snapshot_at``.

    Nothing if no time is named and nothing was ever scheduled.
    """
    from foresail.explain.run_snapshot import waits_by_reason
    from foresail.record.log_text import read_log
    from foresail.record.records import Decided
    from foresail.reports.plan.page import PlanPart, RunCourse, waiting_by_reason

    records = list(read_log(log))
    if at is None and not any(isinstance(record, Decided) for record in records):
        return None
    plan = PlanPart.from_snapshot(snapshot_at(records, at, log, "--moment"))
    return RunCourse(plan, waiting_by_reason(waits_by_reason(records)))


def usual_moment(records: Sequence[Record], job_id: str, log: Path) -> float:
    """The last moment of a log if a job has not started by then, else that of its submission.

    Raises ``InputError`` if the log does not know the job.
    """
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
