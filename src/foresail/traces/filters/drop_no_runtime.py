"""Filter ``drop_no_runtime``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_no_runtime")
@plain
def drop_no_runtime(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose runtime is unknown or not above zero."""
    return keep(workload, pl.col("runtime_seconds") > 0)
