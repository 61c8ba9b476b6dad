"""Filter ``drop_cancelled_before_start``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@register("filter", "drop_cancelled_before_start")
def drop_cancelled_before_start(_: NoParameters) -> Filter:
    """Drop jobs recorded as cancelled that did not run."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        cancelled = (pl.col("status") == "cancelled").fill_null(value=False)
        ran = (pl.col("runtime_seconds") > 0).fill_null(value=False)
        return keep(workload, ~cancelled | ran)

    return apply
