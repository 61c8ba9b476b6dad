"""Filter ``drop_negative_submit``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_negative_submit")
@plain
def drop_negative_submit(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs submitted before second zero, or at no known time."""
    return keep(workload, pl.col("submit_seconds") >= 0)
