"""Ends in words: why a job ended as it did, for ends that are not plain."""

from __future__ import annotations

import signal
from typing import Final

from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.words import by_whom, duration

_OF_EXIT: Final = {
    126: "a command may not be executed",
    127: "a command was not found; standard error says which",
}
_SHELLS_OWN: Final = 128
"""A shell whose command was ended by a signal exits with that much more than its number."""


def end_words(outcome: Outcome, job: Job, cancelled_by: str = "") -> str | None:
    """Return why an attempt has ended, and by whom it was cancelled; None if it completed."""
    match outcome.ended_because:
        case EndedBecause.COMPLETED:
            return None
        case EndedBecause.CANCELLED:
            return f"cancelled {by_whom(cancelled_by, job.user)}"
        case EndedBecause.LIMIT:
            return outcome.reason or _limit_words(outcome, job.requested_seconds)
        case EndedBecause.FAILED:
            return outcome.reason or _exit_words(outcome.exit_code)
        case EndedBecause.PREEMPTED:
            return outcome.reason or "stopped to make room for another"
        case EndedBecause.LOST:
            return outcome.reason or "lost: what watched it, or the machine, went down"


def _limit_words(outcome: Outcome, requested_seconds: float | None) -> str:
    """Describe the memory limit, where a command was ended at a limit before its time was over."""
    in_time = requested_seconds is None or outcome.runtime_seconds < 0.99 * requested_seconds
    if in_time and outcome.exit_code is not None:
        return "it held more memory than it may have"
    return f"its time limit of {duration(requested_seconds)} was over"


def _exit_words(code: int | None) -> str:
    if code is None:
        return "how it ended was not recorded"
    if code < 0:
        return f"ended by {_signal_words(-code)}"
    if code in _OF_EXIT:
        return f"exit code {code}: {_OF_EXIT[code]}"
    if code - _SHELLS_OWN in signal.valid_signals():
        return f"exit code {code}: as after {_signal_words(code - _SHELLS_OWN)}"
    return f"exit code {code}"


def _signal_words(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
