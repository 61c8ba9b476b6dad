"""Cores (or gpus) in use over time, were there always room."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.advising.market import Market
from foresail.cloud.over_time import work_until
from foresail.cloud.waiting.jobs import TraceJobs
from foresail.model.arrays import Floats

_HOUR: Final = 3600.0
_MOST_SLOTS: Final = 400
_SLOT_HOURS: Final = (1, 2, 3, 6, 12, 24, 48, 7 * 24, 28 * 24)


def use_over_time(jobs: TraceJobs, market: Market, hours: float) -> pl.DataFrame:
    """Cores, or gpus, in use if every job started when it was submitted.

    Where it is gpus, a job that takes more of a node's cores than of its gpus counts by those.

    Returns
    -------
    pl.DataFrame
        ``hour`` (begin of the slot), ``mean``, ``highest`` (highest mean of an hour in it); at
        most 400 slots, of hours, days or weeks, and none beyond the last submission.
    """
    amount = jobs.cores.astype(np.float64)
    if market.unit == "gpu" and jobs.gpus is not None:
        amount = np.maximum(jobs.gpus, amount / market.node.cores * market.node.gpus)
    slots = max(math.ceil(hours - 1e-9), 1)
    begin = jobs.submit_seconds - jobs.submit_seconds[0]
    edges: Floats = np.arange(slots + 1, dtype=np.float64) * _HOUR
    hourly = np.diff(work_until(edges, begin, begin + jobs.runtime_seconds, amount)) / _HOUR
    together = next((h for h in _SLOT_HOURS if slots <= h * _MOST_SLOTS), _SLOT_HOURS[-1])
    padded = np.full(math.ceil(slots / together) * together, np.nan)
    padded[:slots] = hourly
    table = padded.reshape(-1, together)
    return pl.DataFrame(
        {
            "hour": np.arange(table.shape[0]) * float(together),
            "mean": np.nanmean(table, axis=1),
            "highest": np.nanmax(table, axis=1),
        }
    )
