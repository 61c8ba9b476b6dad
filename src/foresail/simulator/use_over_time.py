"""The news of shared machines as a table: who needed, had and held what, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.allocation import Allocation
from foresail.simulator.kernels import shared_machines as kernel
from foresail.traces.use_file import GONE, USE


def use_over_time(
    news: Sequence[NDArray[np.float64]],
    tasks: Sequence[tuple[Allocation, int]],
    machines: Sequence[str],
    ends: Mapping[Allocation, float],
) -> pl.DataFrame:
    """The table (``foresail.traces.use_file.USE``) of a run.

    Parameters
    ----------
    news
        Rows as ``kernels.shared_machines`` has them, in order.
    tasks, machines
        Names of the numbers in these.
    ends
        When allocations ended (seconds): their tasks left then, if they had not before.
    """
    rows = np.concatenate((np.empty((0, kernel.NEWS_COLUMNS)), *news))
    whole = {
        "kind": rows[:, kernel.NEWS_KIND].astype(np.int64),
        "run": rows[:, kernel.NEWS_TASK].astype(np.int64),
        "machine": rows[:, kernel.NEWS_MACHINE].astype(np.int64),
    }
    told = pl.DataFrame(
        {
            "seconds": rows[:, kernel.NEWS_TIME],
            "what": np.array(kernel.KIND_NAMES, dtype=object)[whole["kind"]],
            "node": np.array([*machines, ""], dtype=object)[whole["machine"]],
            "run": whole["run"],
            "cpus_needed": rows[:, kernel.NEWS_DEMAND],
            "cpus_given": rows[:, kernel.NEWS_ALLOCATED],
            "memory_bytes": rows[:, kernel.NEWS_MEMORY],
        },
        schema_overrides={"what": pl.String, "node": pl.String},
    )
    last = told.group_by("run", maintain_order=True).last()
    stayed = last.filter(~pl.col("what").is_in(GONE))
    left = stayed.with_columns(
        seconds=pl.Series([ends[tasks[run][0]] for run in stayed["run"]], dtype=pl.Float64),
        what=pl.lit("left"),
    )
    names = pl.DataFrame(
        {
            "run": range(len(tasks)),
            "job_id": [allocation.job_id for allocation, _ in tasks],
            "stage": [allocation.stage or None for allocation, _ in tasks],
            "task": [task for _, task in tasks],
        },
        schema={"run": pl.Int64, "job_id": pl.String, "stage": pl.String, "task": pl.Int64},
    )
    every = pl.concat([told, left.select(told.columns)]).sort("seconds", maintain_order=True)
    return every.join(names, on="run", maintain_order="left").select(USE.names()).cast(USE)
