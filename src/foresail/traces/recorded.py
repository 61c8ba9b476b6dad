"""What the log itself says happened: its recorded waits as a schedule beside simulated ones."""

from __future__ import annotations

from typing import Final

import polars as pl

from foresail.traces import schema
from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.workload import Workload

RECORDED: Final = "recorded"
"""The policy of such a schedule, in place of a short form."""

_LEAST_KNOWN: Final = 0.5


def recorded_schedule(workload: Workload, processors: float) -> Schedule | None:
    """When jobs started and ended, as the log has it, on a machine with so many processors.

    Jobs whose recorded wait or runtime is unknown are left out. None where fewer than half of the
    jobs have a recorded wait, or no job waited.
    """
    jobs = workload.jobs.filter(
        pl.col("recorded_wait_seconds").is_not_null() & pl.col("runtime_seconds").is_not_null()
    )
    wait = pl.col("recorded_wait_seconds")
    if jobs.height < _LEAST_KNOWN * len(workload) or not jobs.select((wait > 0.0).any()).item():
        return None
    start = pl.col("submit_seconds") + wait
    known = {
        "attempt": pl.lit(1),
        "start_seconds": start,
        "end_seconds": start + pl.col("runtime_seconds"),
        "cpus": pl.col("tasks") * pl.col("cpus_per_task"),
        "corrections": pl.lit(0),
        "ended_because": pl.lit("completed"),  # as in simulations, whatever the status
        "nominal_runtime_seconds": pl.col("runtime_seconds"),
    }
    kept = ("job_id", "submit_seconds", "user", "requested_seconds", "deadline_seconds")
    table = schema.laid_out(jobs.select(*kept, **known), schema.SCHEDULE)
    return Schedule(table, ScheduleMeta(RECORDED, processors, workload.meta.source, RECORDED))
