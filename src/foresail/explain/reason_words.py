"""Reasons in words: why a job waits, how far off things are, and why a job ended as it did."""

from __future__ import annotations

import math
import signal
from typing import Final

from foresail.explain.run_snapshot import WaitingJob
from foresail.model.decision import Reason, ReasonCode, needed_words
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.words import by_whom, duration, from_now

REASONS: Final = {
    ReasonCode.RESERVED: "planned for later",
    ReasonCode.NO_ROOM: "not enough is free",
    ReasonCode.WOULD_DELAY: "would delay another job",
    ReasonCode.BEHIND: "others are ahead",
    ReasonCode.TOO_WIDE: "fits nowhere on the cluster",
    ReasonCode.DEPENDENCY: "waits for another job to complete",
    ReasonCode.DRAINING: "the run is being drained",
    ReasonCode.NOT_CHOSEN: "not chosen by the scheduler",
    ReasonCode.LEFT_OUT: "more jobs wait than a cycle looks at",
    ReasonCode.GOES_FIRST: "goes first, planned for later",
    ReasonCode.AMONG_FIRST: "goes first once enough is free",
    ReasonCode.HELD: "held until it is released",
    ReasonCode.DEPENDENCY_ANY: "waits for another job to end, however it ends",
    ReasonCode.DEPENDENCY_FAILURE: "waits for another job to fail",
    ReasonCode.DEPENDENCY_BEGIN: "waits for another job to begin",
    ReasonCode.SINGLETON: "waits for another job of its name and user",
    ReasonCode.BEGIN: "is to begin later",
    ReasonCode.ARRAY_LIMIT: "enough of its array run",
    ReasonCode.FRAGMENTED: "what is free is in pieces that are too small",
    ReasonCode.NODES_OUT: "nodes are out of use",
    ReasonCode.NOT_STARTED: "could not be started",
    ReasonCode.UNAVAILABLE: "the cluster cannot be reached",
}
"""Name of each kind of reason."""

NOT_ASKED: Final = "the next scheduling pass is still to come"
"""Reason of a job that has come since the scheduler was last asked."""


def reason_words(reason: Reason, now: float) -> str:
    """The reason in words; a time in it is said as how far off it is."""
    since = reason.numbers.get("since")
    if isinstance(since, float | int):
        return f"{reason.sentence}, {from_now(since - now)}"
    again = reason.numbers.get("again")
    if isinstance(again, float | int):
        return f"{reason.sentence}; it may start again {in_words(again - now)}"
    turn = reason.numbers.get("turn")
    if isinstance(turn, float | int):
        return _first_words(reason, now - turn, now)
    begin = reason.numbers.get("begin")
    if isinstance(begin, float | int):
        return f"is to begin {in_words(begin - now)} at the earliest"
    start = reason.numbers.get("start")
    if not isinstance(start, float | int):
        return reason.sentence
    later = in_words(start - now)
    if reason.code is ReasonCode.RESERVED:
        return f"next in line: {needed_words(reason.numbers)[0]} should be free {later}"
    return f"would delay job {reason.numbers['head']}, which should start {later}"


def _first_words(reason: Reason, turn_ago_seconds: float, now: float) -> str:
    """Return why a job goes first: what EASY would have done with it by now."""
    easy = f"EASY would have come to it {from_now(-turn_ago_seconds)}"
    needed, verb = needed_words(reason.numbers)
    start = reason.numbers.get("start")
    if isinstance(start, float | int):
        return f"goes first: {easy}; {needed} should be free {in_words(start - now)}"
    return f"goes first once {needed} {verb} free: {easy}"


def in_words(seconds: float) -> str:
    """Format how far off something is: ``now``, ``in 20 min``, ``at no known time``."""
    if math.isinf(seconds):
        return "at no known time"
    return from_now(max(0.0, seconds))


def waiting_words(waiting: WaitingJob, now: float) -> str:
    """Return why a job waits, and since when that is so."""
    if waiting.reason is None:
        return "the log does not say"
    if not waiting.is_asked and waiting.reason.code is ReasonCode.NOT_CHOSEN:
        return NOT_ASKED
    since = now - waiting.reason_since_seconds
    said = reason_words(waiting.reason, now)
    return (
        said
        if since < 1.0 or not waiting.reason.numbers
        else f"{said} (as it was {from_now(-since)})"
    )


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
        case EndedBecause.REVOKED:
            return outcome.reason or "what it ran on was taken back"


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
