"""Filter ``clip_runtime_to_request``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import change, plain
from foresail.traces.workload import Workload


@register("filter", "clip_runtime_to_request")
@plain
def clip_runtime_to_request(workload: Workload) -> tuple[Workload, int]:
    """Cut runtimes above the requested time down to it, as a machine that kills jobs would."""
    over = pl.col("runtime_seconds") > pl.col("requested_seconds")
    return change(workload, over, runtime_seconds=pl.col("requested_seconds"))
