"""Filter ``drop_gpus``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_gpus")
@plain
def drop_gpus(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs that ask for GPUs."""
    return keep(workload, pl.col("gpus_per_task").fill_null(0.0) <= 0.0)
