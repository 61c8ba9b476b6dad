"""Durations as people write them (``10 min``, ``1h30m``, ``00:10:00``, ``600``), in seconds."""

from __future__ import annotations

import re
import sys
from typing import Final

from foresail.model.errors import InputError

DURATION_FORMS: Final = 'seconds or a duration such as "10 min", "1h30m" or "00:10:00"'
"""Forms that a person may write, for error messages."""

_UNIT_SECONDS: Final = {
    "": 1.0,
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "w": 604800.0,
    "week": 604800.0,
}
_CLOCK: Final = re.compile(r"(?:(\d+)-)?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)")
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)[\s,]*")


def parse_duration(text: str | float) -> float:
    """Seconds of a duration that a person wrote.

    That is a number of seconds; number and unit pairs (``1h30m``, ``10 min``, ``2 days 3 hours``);
    or a clock with all of hours, minutes and seconds (``00:10:00``, ``1-12:00:00`` with days).
    Two-part clocks are refused: half of all people mean hours and minutes by them, the others
    minutes and seconds.

    Raises ``ValueError`` if it is none of these, or not positive and finite; the message says what
    is accepted.
    """
    seconds = text if isinstance(text, int | float) else _seconds_of(text.strip().lower())
    if not 0 < seconds <= sys.float_info.max:  # a whole number may be beyond all others
        raise ValueError(f"a positive number of {DURATION_FORMS}")
    return float(seconds)


def duration_of(text: str, field: str) -> float:
    """Seconds of a duration that a person gave for a field or an option; 0 is one too.

    Raises ``InputError`` if it is none.
    """
    try:
        return 0.0 if text.strip() in {"0", "0s"} else parse_duration(text)
    except ValueError as error:
        raise InputError(
            "not a duration", field=field, value=text, expected=f"0, or {error}"
        ) from error


def _seconds_of(text: str) -> float:
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(DURATION_FORMS)
        number, unit = part.groups()
        alone = part.end() == len(text) and at == 0
        factor = _UNIT_SECONDS.get(unit) or _UNIT_SECONDS.get(unit.removesuffix("s") or unit)
        if factor is None or (unit == "" and not alone):
            raise ValueError(DURATION_FORMS)
        total += float(number) * factor
        at = part.end()
    return total
