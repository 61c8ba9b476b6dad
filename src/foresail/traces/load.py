"""Offered load: what jobs ask of a machine over a length of time, and which time a log is of."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.arrays import Floats

_MOST_OUTSIDE: Final = 100
"""One job in so many may be outside of a log's window at either end,"""
_LEAST_GAP: Final = 0.1
"""if no job was submitted for such a share of the log's span between these and all others."""


def in_window(submit_seconds: pl.Series) -> pl.Series:
    """Which submissions are in the window that a log is of; unknown ones are.

    Accounting of a week has the jobs that ran in it, of which one may have been submitted long
    before: that is no month of an idle machine.
    """
    ordered = submit_seconds.drop_nulls().sort().to_numpy()
    most = ordered.size // _MOST_OUTSIDE
    inside = pl.repeat(True, submit_seconds.len(), eager=True)
    if not most:
        return inside
    wide = np.flatnonzero(np.diff(ordered) > _LEAST_GAP * (ordered[-1] - ordered[0]))
    before, after = wide[wide < most], wide[wide >= ordered.size - 1 - most]
    if before.size:
        inside &= submit_seconds >= ordered[before[-1] + 1]
    if after.size:
        inside &= submit_seconds <= ordered[after[0]]
    return inside.fill_null(value=True)


def offered_load(
    width: Floats | NDArray[np.int64], runtime_seconds: Floats, capacity: float, seconds: float
) -> float:
    """Work of all jobs over what the machine can do in that time (3Sigma section 6.3).

    Widths and the capacity are nodes, or cpus; shapes are (jobs,).
    """
    return float(np.sum(width * runtime_seconds)) / (capacity * seconds)


def deadline_seconds(submit_seconds: Floats, runtime_seconds: Floats, slack: Floats) -> Floats:
    """Deadlines, where ``slack`` is the share of the runtime that a job may wait; shape (jobs,).

    3Sigma's slack of 60 % is 0.6 here, DistSched's slack of 1.2 (deadline minus submission over
    runtime) is 0.2.
    """
    return submit_seconds + runtime_seconds * (1.0 + slack)
