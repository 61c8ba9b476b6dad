"""Filter ``drop_gpus``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@register("filter", "drop_gpus")
def drop_gpus(_: NoParameters) -> Filter:
    """Drop jobs that ask for GPUs."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        return keep(workload, pl.col("gpus_per_task").fill_null(0.0) <= 0.0)

    return apply
