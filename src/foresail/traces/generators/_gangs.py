"""Tables of generated jobs: gangs that have completed, and what some of them demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.traces.workload import jobs_table


def gangs(
    submit: Floats, runtime: Floats, width: Integers, letter: str = "", /, **columns: Any
) -> pl.DataFrame:
    """A jobs table of gangs of single-cpu tasks; all arrays have shape (jobs,).

    Ids are numbers from 1 behind a letter; ``columns`` are further ones.
    """
    return jobs_table(
        {
            "job_id": np.char.mod(letter + "%d", np.arange(1, submit.size + 1)),
            "submit_seconds": submit,
            "runtime_seconds": runtime,
            "tasks": width,
            "allocated_cpus": width.astype(np.float64),
            "status": ["completed"] * submit.size,
            **columns,
        }
    )


def demands(
    deadline: Floats, slo: Booleans, preferred: list[str | None], slowdown_elsewhere: float
) -> dict[str, pl.Series]:
    """Columns: deadlines of the SLO jobs, where jobs run best, and how long elsewhere."""
    slowdown = [None if where is None else slowdown_elsewhere for where in preferred]
    return {
        "deadline_seconds": pl.Series(np.where(slo, deadline, np.nan)).fill_nan(None),
        "preferred": pl.Series(preferred, dtype=pl.String),
        "slowdown_elsewhere": pl.Series(slowdown, dtype=pl.Float64),
    }
