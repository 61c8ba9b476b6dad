"""Filter ``raise_request_to_runtime``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, change
from foresail.traces.workload import Workload


@register("filter", "raise_request_to_runtime")
def raise_request_to_runtime(_: NoParameters) -> Filter:
    """Raise requested times below the runtime up to it, so that no job is killed."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        over = pl.col("runtime_seconds") > pl.col("requested_seconds")
        return change(workload, over, requested_seconds=pl.col("runtime_seconds"))

    return apply
