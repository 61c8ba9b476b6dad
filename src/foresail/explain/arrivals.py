"""Jobs to come in drawn futures, as they came in the past."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.explain.outlook import Outlook
from foresail.model.distribution import Floats, Integers

HOUR: Final = 3600.0
_DAY_HOURS: Final = 24
_WEEK_HOURS: Final = 7 * _DAY_HOURS
_SAME_DAY_WEIGHT: Final = 3.0
"""Weight of the same hour of the same day of the week, against that of another day."""

_FURTHEST: Final = 10.0
"""Jobs are drawn for so many times as long as there have been any."""

_FEWEST_BLOCKS: Final = 8
"""A young run is cut into so many stretches, shorter than an hour, to be drawn from."""

_MOST_ARRIVALS: Final = 2_000
_AT_ONCE: Final = 20_000
"""Number of arrivals drawn in one piece, while which no other thread of Python goes on."""

_SESSION_SECONDS: Final = 1_200.0
"""A job that a user submits so soon after another is of the same session, of an hour at most."""


@dataclass(frozen=True, slots=True)
class DrawnArrivals:
    """Jobs that come in each future, shapes (futures, most that come in one).

    ``seconds`` ascend, infinite behind the last; ``numbers`` are those of like jobs among the
    recent ones of the outlook.
    """

    seconds: Floats
    numbers: Integers


def draw_arrivals(
    outlook: Outlook, futures: int, horizon_seconds: float, random: np.random.Generator
) -> DrawnArrivals:
    """Draw the jobs that come up to a horizon.

    For every hour to come, the sessions that users began in the same hour of a past day, that of
    the same day of the week more likely; while the run is young, jobs of shorter stretches of all
    that there has been take their place. What has gone on for so long goes on for as long again in
    half of the futures: no more come from then on. Jobs that can go before none that waits are left
    out.
    """
    now, past_seconds = outlook.now, outlook.now - outlook.begin_seconds
    last = math.inf
    if not outlook.backfills:
        last = outlook.waiting.place.max(initial=-math.inf)
    numbers = np.array([at for at, each in enumerate(outlook.recent) if each.place < last])
    if not numbers.size or past_seconds <= 0.0:
        return DrawnArrivals(np.zeros((futures, 0)), np.zeros((futures, 0), np.int64))
    block_seconds = min(HOUR, past_seconds / _FEWEST_BLOCKS)
    blocks = math.floor(past_seconds / block_seconds + 1e-9)
    submitted, begun = _sessions(outlook)
    if block_seconds < HOUR:
        begun = submitted
    block = np.ceil((now - begun[numbers]) / block_seconds).astype(np.int64) - 1
    since = submitted[numbers] - (now - (block + 1) * block_seconds)
    order = np.lexsort((since, block))
    first = np.searchsorted(block[order], np.arange(blocks + 1))
    horizon_seconds = min(horizon_seconds, _FURTHEST * past_seconds)
    longest = math.floor(since.max() / block_seconds)
    ahead = np.arange(-longest, math.ceil(horizon_seconds / block_seconds))
    drawn = np.stack([_drawn(each, blocks, futures, random) for each in ahead.tolist()], axis=1)
    counts = first[drawn + 1] - first[drawn]
    goes_on_seconds = past_seconds * random.pareto(1.0, size=futures)
    last_seconds = now + np.minimum(horizon_seconds, goes_on_seconds)
    lots = []
    at_once = max(1, _AT_ONCE // max(1, int(counts.sum(axis=1).max())))
    for begin in range(0, futures, at_once):
        lot = slice(begin, begin + at_once)
        several = counts[lot].ravel()
        before = np.repeat(np.cumsum(several) - several, several)
        rows = order[
            np.repeat(first[drawn[lot]].ravel(), several) + np.arange(before.size) - before
        ]
        in_lot = np.repeat(np.arange(len(counts[lot])), counts[lot].sum(axis=1))
        begins = np.repeat(np.tile(ahead, len(counts[lot])), several) * block_seconds
        seconds = now + begins + since[rows]
        comes = (seconds >= now) & (seconds < last_seconds[lot][in_lot])
        come = in_lot[comes], seconds[comes], numbers[rows[comes]]
        lots.append(_by_future(len(counts[lot]), *come))
    return _joined(lots)


def _joined(lots: Sequence[DrawnArrivals]) -> DrawnArrivals:
    """Join the arrivals of several futures, as many columns as the widest has."""
    shape = sum(len(each.seconds) for each in lots), max(each.seconds.shape[1] for each in lots)
    seconds, numbers = np.full(shape, math.inf), np.zeros(shape, np.int64)
    begin = 0
    for each in lots:
        count, columns = each.seconds.shape
        seconds[begin : begin + count, :columns] = each.seconds
        numbers[begin : begin + count, :columns] = each.numbers
        begin += count
    return DrawnArrivals(seconds, numbers)


def _sessions(outlook: Outlook) -> tuple[Floats, Floats]:
    """Return when recent jobs were submitted, and when the first job of their session was."""
    submitted = np.array([each.submit_seconds for each in outlook.recent])
    begun = submitted.copy()
    latest: dict[str | None, int] = {}
    for at, each in enumerate(outlook.recent):
        user = each.pending.job.user
        before = latest.get(user)
        is_soon = before is not None and submitted[at] - submitted[before] < _SESSION_SECONDS
        if before is not None and is_soon and submitted[at] - begun[before] < HOUR:
            begun[at] = begun[before]
        latest[user] = at
    return submitted, begun


def _drawn(ahead: int, blocks: int, futures: int, random: np.random.Generator) -> Integers:
    """Draw the numbers of past blocks, the latest is 0, for one that begins so many from now.

    Sessions that have begun go on as others did, for their own end is not known.
    """
    alike = np.arange(_DAY_HOURS - 1 - ahead % _DAY_HOURS, blocks, _DAY_HOURS)
    over = min(max(0, -ahead), blocks - 1)
    alike = alike[alike >= over]
    if not alike.size or blocks <= _FEWEST_BLOCKS:
        return random.integers(over, blocks, size=futures)
    weights = np.where((alike + 1 + ahead) % _WEEK_HOURS == 0, _SAME_DAY_WEIGHT, 1.0)
    return random.choice(alike, size=futures, p=weights / weights.sum())


def _by_future(futures: int, of: Integers, seconds: Floats, numbers: Integers) -> DrawnArrivals:
    """Return a row of arrivals for each future, in order of time; ``of`` ascends."""
    counts = np.bincount(of, minlength=futures)
    at = of, np.arange(of.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((futures, int(counts.max(initial=0))), math.inf)
    rows = np.zeros(table.shape, np.int64)
    table[at], rows[at] = seconds, numbers
    order = np.argsort(table, axis=1, kind="stable")[:, :_MOST_ARRIVALS]
    return DrawnArrivals(
        np.take_along_axis(table, order, axis=1), np.take_along_axis(rows, order, axis=1)
    )
