"""Words for ranges of moments, and the chances that follow from them.

A range is three moments, ``p10``, ``p50`` and ``p90``: in one of ten futures it is before the
first, in half of them before the second, in one of ten after the third. None is never.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Final, NamedTuple, TypeAlias

from foresail.model.words import duration

Moments: TypeAlias = Mapping[str, float | None]
Clock: TypeAlias = Callable[[float, float], str]
"""Says a moment, where another one is known."""

LEVELS: Final = ("p10", "p50", "p90")
UNKNOWN: Final = "too little is known yet"

_SOON_SECONDS: Final = 600.0
"""Distance up to which a time is given from now, else by the clock."""

_STEPS: Final = ((86_400.0, 3_600.0), (21_600.0, 900.0), (3_600.0, 300.0), (0.0, 60.0))
"""Ranges at least so wide are said in steps of so many seconds, outwards."""

_WEEK_SECONDS: Final = 6 * 86_400.0
_AT_ONCE: Final = duration(0.0)
_SHORT_SECONDS: Final = 60.0
_TAIL: Final = NormalDist().inv_cdf(0.9)


class _Said(NamedTuple):
    """Words of the three moments, and of the middle one by itself; True for times from now."""

    low: str
    median: str
    high: str
    middle: str
    is_soon: bool


def by_clock(moment: float, known: float) -> str:
    """Say a moment by the clock on the wall: ``14:10``, ``Sat 14:10``, ``3 Dec 14:10``."""
    at, day = time.localtime(moment), time.localtime(known)
    if at[:3] == day[:3]:
        return time.strftime("%H:%M", at)
    if 0.0 <= moment - known < _WEEK_SECONDS:
        return time.strftime("%a %H:%M", at)
    return time.strftime("%d %b %H:%M" if at[0] == day[0] else "%d %b %Y", at).lstrip("0")


def range_words(moments: Moments, now: float, clock: Clock = by_clock) -> str:
    """Say a range: ``between 14:10 and 16:30, most likely about 15:00; 1 in 10 later``."""
    said = _said(moments, now, clock)
    if isinstance(said, str):
        return said
    low, median, high, _, is_soon = said
    if low == high:
        return f"in about {median}" if is_soon else f"about {median}"
    likely = f"most likely about {median}; 1 in 10"
    if high == "never":
        return f"not before {low}, {likely} never"
    if not is_soon:
        return f"between {low} and {high}, {likely} later"
    return f"{'within' if low == _AT_ONCE else f'in {low} to'} {high}, {likely} later"


def range_cell(moments: Moments, now: float, clock: Clock = by_clock) -> str:
    """The same in a cell of a table: ``15:00 (14:10 to 16:30)``."""
    said = _said(moments, now, clock)
    if isinstance(said, str):
        return said
    return said.middle if said.low == said.high else f"{said.middle} ({said.low} to {said.high})"


def chance_by(moments: Moments, never: float, now: float, moment: float) -> float:
    """Return the probability that it has come about by a moment.

    Waits are taken to be normal about their median on a logarithmic scale, on each side of it with
    the deviation that gives the range.
    """
    if moment < now:
        return 0.0
    waits = [math.log1p(max(0.0, each - now) / _SHORT_SECONDS) for each in _three(moments)]
    low, median, high = waits
    if math.isinf(median):
        return 0.0
    off = math.log1p((moment - now) / _SHORT_SECONDS) - median
    width = high - median if off > 0.0 else median - low
    share = NormalDist().cdf(_TAIL * off / width) if width > 0.0 else float(off >= 0.0)
    return min(share, 1.0 - never)


def _said(moments: Moments, now: float, clock: Clock) -> _Said | str:
    """Return words of the three moments, or what is to be said instead."""
    low, median, high = _three(moments)
    if math.isinf(median):
        return "at no known time"
    if high - now < 1.0:
        return "now"
    if high - now < _SOON_SECONDS:
        low, median, high = (float(round(max(0.0, each - now))) for each in (low, median, high))
        likely = duration(median)
        return _Said(duration(low), likely, duration(high), likely, is_soon=True)
    width = (median if math.isinf(high) else high) - low
    step = next(step for least, step in _STEPS if width >= least)
    first = math.floor(low / step) * step
    begin = "now" if first <= now else clock(first, now)
    likely_at = max(now, round(median / step) * step)
    middle, likely = clock(likely_at, now), _after(first, likely_at, now, clock)
    if width < step:
        return _Said(middle, middle, middle, middle, is_soon=False)
    end = math.ceil(high / step) * step if math.isfinite(high) else math.inf
    last = "never" if math.isinf(end) else _after(first, end, now, clock)
    return _Said(begin, likely, last, middle, is_soon=False)


def _after(first: float, moment: float, now: float, clock: Clock) -> str:
    """Say a moment behind another: of the same day, without saying of which."""
    is_same_day = time.localtime(moment)[:3] == time.localtime(first)[:3]
    return clock(moment, first if is_same_day else now)


def _three(moments: Moments) -> tuple[float, float, float]:
    low, median, high = (
        math.inf if each is None else each for each in (moments[key] for key in LEVELS)
    )
    return low, median, high
