"""Filter ``raise_request_to_runtime``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import change, plain
from foresail.traces.workload import Workload


@register("filter", "raise_request_to_runtime")
@plain
def raise_request_to_runtime(workload: Workload) -> tuple[Workload, int]:
    """Raise requested times below the runtime up to it, so that no job is killed."""
    over = pl.col("runtime_seconds") > pl.col("requested_seconds")
    return change(workload, over, requested_seconds=pl.col("runtime_seconds"))
