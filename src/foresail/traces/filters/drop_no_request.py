"""Filter ``drop_no_request``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_no_request")
@plain
def drop_no_request(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose requested time is unknown or not above zero."""
    return keep(workload, pl.col("requested_seconds") > 0)
