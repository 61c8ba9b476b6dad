"""Filter ``drop_no_request``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@register("filter", "drop_no_request")
def drop_no_request(_: NoParameters) -> Filter:
    """Drop jobs whose requested time is unknown or not above zero."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        return keep(workload, pl.col("requested_seconds") > 0)

    return apply
