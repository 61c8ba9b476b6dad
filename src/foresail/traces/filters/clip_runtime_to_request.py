"""Filter ``clip_runtime_to_request``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, change
from foresail.traces.workload import Workload


@register("filter", "clip_runtime_to_request")
def clip_runtime_to_request(_: NoParameters) -> Filter:
    """Cut runtimes above the requested time down to it, as a machine that kills jobs would."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        over = pl.col("runtime_seconds") > pl.col("requested_seconds")
        return change(workload, over, runtime_seconds=pl.col("requested_seconds"))

    return apply
