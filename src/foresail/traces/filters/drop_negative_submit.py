"""Filter ``drop_negative_submit``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@register("filter", "drop_negative_submit")
def drop_negative_submit(_: NoParameters) -> Filter:
    """Drop jobs submitted before second zero, or at no known time."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        return keep(workload, pl.col("submit_seconds") >= 0)

    return apply
