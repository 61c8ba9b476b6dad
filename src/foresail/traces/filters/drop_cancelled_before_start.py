"""Filter ``drop_cancelled_before_start``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_cancelled_before_start")
@plain
def drop_cancelled_before_start(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs recorded as cancelled that did not run."""
    cancelled = (pl.col("status") == "cancelled").fill_null(value=False)
    ran = (pl.col("runtime_seconds") > 0).fill_null(value=False)
    return keep(workload, ~cancelled | ran)
