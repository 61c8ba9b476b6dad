"""Durations, numbers and shares in words, the same everywhere; durations as people write them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Final

from foresail.model.errors import InputError

CLUSTER_JOB_ID: Final = re.compile(r"[a-z][a-z0-9-]{0,31}:[A-Za-z0-9.+-]{1,200}(_[0-9]{1,9})?")
"""Id of a job that was submitted to a cluster itself: its name, and what it calls the job."""

PLACE_IN_QUEUE: Final = "place in queue"
"""Attribute of jobs that a cluster starts by itself: lower numbers go first."""

LEFT_TO: Final = "the cluster: "
"""Words before the reason, for people, where a cluster holds a job of which Foresail lets go."""

_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 86400.0
_UNREADABLE = 1e15
_COARSE = 10


def duration(seconds: float | None) -> str:
    """A duration as people say it: ``0.4 s``, ``90 s``, ``25 min``, ``2 h 10 min``, ``3 d 4 h``.

    Negative ones get a minus sign; unknown ones (None, NaN) a dash.
    """
    if seconds is None or math.isnan(seconds):
        return "–"
    if math.isinf(seconds):
        return "∞" if seconds > 0 else "−∞"
    if seconds < 0:
        return "−" + duration(-seconds)
    if seconds < 10:
        return f"{_short(seconds)} s"
    if round(seconds) < 120:
        return f"{round(seconds)} s"
    if round(seconds / _MINUTE) < 60:
        return f"{round(seconds / _MINUTE)} min"
    if round(seconds / _MINUTE) < 2 * _DAY / _MINUTE:
        return _two_units(round(seconds / _MINUTE), 60, "h", "min")
    return _two_units(round(seconds / _HOUR), 24, "d", "h")


def exact_duration(seconds: float) -> str:
    """A duration to the millisecond, as what was asked for is repeated: ``1 min 30 s``."""
    said, left = [], round(seconds, 3)
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        wholes, left = divmod(left, size)
        said += [f"{wholes:.0f} {unit}"] if wholes else []
    return " ".join(said if said and not round(left, 3) else [*said, f"{round(left, 3):.15g} s"])


def from_now(seconds: float) -> str:
    """Format how far off a moment is, to tenths of a second: ``in 20 min``, ``0.1 s ago``."""
    tenths = round(seconds, 1)
    if not tenths:
        return "now"
    return f"in {duration(tenths)}" if tenths > 0 else f"{duration(-tenths)} ago"


def number(value: float | None) -> str:
    """A plain number with three significant digits: ``0.0123``, ``92.6``, ``28,481``.

    Whole numbers are written out up to 10¹⁵; unknown ones (None, NaN) become a dash.
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value < 0:
        return "−" + number(-value)
    if value >= _UNREADABLE:
        return f"{value:.3g}"
    if value == round(value) or value >= 999.5:
        return f"{round(value):,}"
    return _short(value)


def percent(share: float | None) -> str:
    """A share of one as per cent: ``0.714`` is ``71.4 %``; unknown ones become a dash."""
    if share is None or math.isnan(share):
        return "–"
    if math.isinf(share):
        return f"{number(share)} %"
    hundredfold = 100.0 * abs(share)
    if hundredfold >= 99.95:
        text = number(float(round(hundredfold)))
    elif hundredfold >= 1:
        text = f"{hundredfold:.1f}".removesuffix(".0")
    else:
        text = f"{float(f'{hundredfold:.1g}'):.8f}".rstrip("0").rstrip(".")
    return f"{'−' if share < 0 and text != '0' else ''}{text} %"


def count(amount: float, singular: str, plural: str | None = None) -> str:
    """An amount with its noun: ``1 job``, ``28,481 jobs``, ``2.5 cpus``."""
    noun = singular if amount == 1 else (plural or singular + "s")
    return f"{number(amount)} {noun}"


def memory_size(amount_bytes: float) -> str:
    """An amount of memory: ``21.8 GiB``, ``50 MiB``, ``8 bytes``."""
    if amount_bytes >= 2**30:
        return f"{amount_bytes / 2**30:.1f}".removesuffix(".0") + " GiB"
    if amount_bytes >= 2**20:
        return f"{amount_bytes / 2**20:.0f} MiB"
    return count(amount_bytes, "byte")


def exact_size(amount_bytes: float) -> str:
    """An amount of memory, all of it: ``2 GiB``, ``1,500 MiB``."""
    wholes, rest = divmod(amount_bytes, 2**30)
    return f"{amount_bytes / 2**20:,.15g} MiB" if rest else f"{wholes:,.0f} GiB"


def by_whom(who: str, user: str | None) -> str:
    """Format who has done something to a job: ``by its user``, ``by ann``.

    Schedulers may know a job by its user and its name, ``ann/train``.
    """
    own = (user or "").partition("/")[0]
    return "by its user" if who in ("", own) else f"by {who}"


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Parts one after the other, with a word before the last: ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def is_or_are(amount: float) -> str:
    """The verb that so many of something have."""
    return "is" if amount == 1 else "are"


def folded(policy: str, width: int) -> list[str]:
    """A policy's short form on lines of at most this width, broken after commas.

    What has no comma for longer than a line is broken where the line ends.
    """
    lines = [""]
    for piece in re.findall(r"[^,]*,|[^,]+$", policy):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return lines


def signed(text: str) -> str:
    """A formatted difference with its sign shown: ``14 min`` becomes ``+14 min``."""
    return text if text.startswith("−") or text == "–" else "+" + text


def _short(value: float) -> str:
    """Three significant digits without trailing zeros, never in scientific notation."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(value)))
    if decimals > 8:
        return "0"
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _two_units(smalls: int, per_large: int, large: str, small: str) -> str:
    """Larger and smaller unit together; the larger alone where the rest says nothing."""
    wholes, rest = divmod(smalls, per_large)
    if wholes >= _COARSE:
        return f"{round(smalls / per_large)} {large}"
    return f"{wholes} {large} {rest} {small}" if rest else f"{wholes} {large}"


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


_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?)b?|b)", re.IGNORECASE)
SIZE_FORM: Final = "a size with its unit, such as 8GiB, 500M or 1.5 GB"


def parse_size(value: object) -> float:
    """Bytes of a size; K, M, G, T are powers of 1024, as in Slurm, unless ``B`` alone follows.

    Raises ``ValueError`` if it is none, or has no unit.
    """
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(SIZE_FORM)
    number, unit, binary = found.groups()
    says_decimal = not binary and found[0].lower().endswith("b")
    step = 1000.0 if says_decimal else 1024.0
    size = float(number) * step ** ("kmgt".index(unit.lower()) + 1 if unit else 0)
    if not 0.0 < size < 2.0**60:
        raise ValueError(SIZE_FORM)
    return size
