"""Filter ``drop_wider_than_machine``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_wider_than_machine")
@plain
def drop_wider_than_machine(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs whose requested or allocated processors exceed the machine's."""
    most = workload.processors
    requested = pl.col("tasks") * pl.col("cpus_per_task")
    fits = requested.fill_null(0.0) <= most
    return keep(workload, fits & (pl.col("allocated_cpus").fill_null(0.0) <= most))
