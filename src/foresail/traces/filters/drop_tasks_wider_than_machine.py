"""Filter ``drop_tasks_wider_than_machine``."""

from __future__ import annotations

import polars as pl

from foresail.model.registry import register
from foresail.traces.filtering import keep, plain
from foresail.traces.workload import Workload


@register("filter", "drop_tasks_wider_than_machine")
@plain
def drop_tasks_wider_than_machine(workload: Workload) -> tuple[Workload, int]:
    """Drop jobs of whom a single task asks for more processors than the machine has.

    For schedulers whose tasks start apart: a job may have more tasks than there are processors.
    """
    most = workload.processors
    fits = pl.col("cpus_per_task").fill_null(0.0) <= most
    if workload.tasks is not None:
        wide = workload.tasks.filter(pl.col("cpus") > most)["job_id"].unique()
        fits &= ~pl.col("job_id").is_in(wide.implode())
    return keep(workload, fits)
