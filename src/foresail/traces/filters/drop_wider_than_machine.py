"""Filter ``drop_wider_than_machine``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@register("filter", "drop_wider_than_machine")
def drop_wider_than_machine(_: NoParameters) -> Filter:
    """Drop jobs whose requested or allocated processors exceed the machine's."""

    def apply(workload: Workload) -> tuple[Workload, int]:
        most = workload.processors
        requested = pl.col("tasks") * pl.col("cpus_per_task")
        fits = requested.fill_null(0.0) <= most
        return keep(workload, fits & (pl.col("allocated_cpus").fill_null(0.0) <= most))

    return apply
