"""Logs over time: hours and the work done in them, and blocks of weeks that are drawn anew."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.traces.workload import Workload

_HOUR: Final = 3600.0
_MOST_SLOTS: Final = 400
_SLOT_HOURS: Final = (1, 2, 3, 6, 12, 24, 48, 7 * 24, 28 * 24)
_MOST_YEARS: Final = 100
_MOST_HOURS: Final = _MOST_YEARS * 8760
"""Each hour takes some kilobytes: of a century they fit in a few gigabytes."""


def require_within_horizon(workload: Workload) -> None:
    """Refuse a log that lasts for more hours than can be planned one by one.

    ``workload``: from its first submission to the last end, were there always room; jobs without a
    submit time or a runtime do not count.
    """
    timed = workload.jobs.select("job_id", "submit_seconds", "runtime_seconds").filter(
        pl.all_horizontal(pl.col("submit_seconds", "runtime_seconds").is_finite())
    )
    end = timed["submit_seconds"] + timed["runtime_seconds"]
    last, first = end.arg_max(), timed["submit_seconds"].min()
    if last is None or not isinstance(first, float):
        return
    hours = (end[last] - first) / _HOUR
    if hours <= _MOST_HOURS:
        return
    runs_for_long = timed["runtime_seconds"][last] > _MOST_HOURS * _HOUR
    field = "runtime_seconds" if runs_for_long else "submit_seconds"
    raise InputError(
        f"job {timed['job_id'][last]!r} ends {hours:,.0f} hours after the first is submitted, too "
        "many to plan hour by hour",
        source=workload.meta.source,
        field=field,
        value=timed[field][last],
        expected=f"a log of {_MOST_HOURS:,} hours ({_MOST_YEARS} years) at most; correct the job "
        "or leave it out",
    )


def work_until(moments: Floats, begin: Floats, end: Floats, amount: Floats) -> Floats:
    """Amounts times the time that they were held before each moment, summed over the jobs.

    A job holds its amount from ``begin`` to ``end``, in the unit of ``moments``; shape (jobs,)
    each.
    """
    return _since(moments, begin, amount) - _since(moments, end, amount)


def _since(moments: Floats, times: Floats, amount: Floats) -> Floats:
    """Amounts times the time since each job's own, summed over jobs whose time is past."""
    order = np.argsort(times, kind="stable")
    past = np.searchsorted(times[order], moments)
    count = np.concatenate([[0.0], np.cumsum(amount[order])])[past]
    moment = np.concatenate([[0.0], np.cumsum((amount * times)[order])])[past]
    return np.asarray(count * moments - moment)


def use_over_time(
    begin_seconds: Floats, runtime_seconds: Floats, amount: Floats, hours: float, level: float = 0.0
) -> pl.DataFrame:
    """Amounts in use if every job started when it was submitted; arrays of shape (jobs,).

    Returns
    -------
    pl.DataFrame
        ``hour`` (begin of the slot), ``hours`` (how many it has), ``mean``, ``highest`` (highest
        mean of an hour in it), ``level``, ``below_level`` (mean of what lies below it, hour by
        hour); at most 400 slots, of hours, days or weeks, and none beyond ``hours``.
    """
    slots = max(math.ceil(hours - 1e-9), 1)
    edges: Floats = np.arange(slots + 1, dtype=np.float64) * _HOUR
    end = begin_seconds + runtime_seconds
    hourly = np.diff(work_until(edges, begin_seconds, end, amount)) / _HOUR
    together = next((h for h in _SLOT_HOURS if slots <= h * _MOST_SLOTS), _SLOT_HOURS[-1])
    padded = np.full(math.ceil(slots / together) * together, np.nan)
    padded[:slots] = hourly
    table = padded.reshape(-1, together)
    return pl.DataFrame(
        {
            "hour": np.arange(table.shape[0]) * float(together),
            "hours": np.isfinite(table).sum(axis=1),
            "mean": np.nanmean(table, axis=1),
            "highest": np.nanmax(table, axis=1),
            "level": np.full(table.shape[0], level),
            "below_level": np.nanmean(np.minimum(table, level), axis=1),
        }
    )


_WEEK: Final = 7.0 * 86400.0
_DAY: Final = 86400.0
_FEWEST: Final = 5
_DRAWS: Final = 1000
_SEED: Final = 1
_LEVELS: Final = (0.025, 0.975)


def block_seconds(submit_seconds: Floats) -> float | None:
    """Return a week where submissions span five and are of five, else a day where so, else None.

    What is drawn anew from blocks few of which have jobs says nothing of other periods.
    """
    since = submit_seconds - submit_seconds[0]

    def are_enough(length: float) -> bool:
        with_jobs = np.unique(np.minimum(since, since[-1] * (1.0 - 1e-12)) // length)
        return bool(since[-1] >= _FEWEST * length and with_jobs.size >= _FEWEST)

    return next((length for length in (_WEEK, _DAY) if are_enough(length)), None)


def block_draws(blocks: int, draws: int = _DRAWS, seed: int = _SEED) -> Floats:
    """Draw as many blocks, with replacement: the count of each; shape (draws, blocks)."""
    random = np.random.default_rng(seed)
    return random.multinomial(blocks, np.full(blocks, 1.0 / blocks), draws).astype(np.float64)


def interval(values: Floats) -> tuple[float, float]:
    """Interval in which 95 % of the draws lie."""
    low, high = np.quantile(values, _LEVELS).tolist()
    return low, high
