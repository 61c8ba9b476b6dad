"""Runtimes of a log as waiting policies believe them."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.evaluation.replaying import evaluate
from foresail.model.errors import InputError
from foresail.traces.workload import Workload

KNOWN = "known"
REQUESTED = "requested"


def believed_runtimes(workload: Workload, by: str) -> NDArray[np.float64]:
    """Seconds by job, shape (jobs,).

    Raises ``InputError`` if the log has no limits, where these are asked for, or the short form is
    malformed; ``UnknownNameError`` if there is no such predictor.

    Parameters
    ----------
    workload
        The log.
    by
        ``known``: the truth. ``requested``: the users' limits. Else a predictor's short form: its
        medians, as it learns while jobs end. Jobs that it says nothing of are taken for endless.
    """
    if by == KNOWN:
        return workload.runtime_seconds
    if by == REQUESTED:
        limits = workload.jobs["requested_seconds"]
        if limits.null_count() == len(limits):
            raise InputError(
                "no job has a limit", source=workload.meta.source, field="requested_seconds"
            )
        return limits.cast(pl.Float64).fill_null(np.inf).to_numpy().astype(np.float64)
    return told_quantiles(workload, by, q50=np.inf)[0]


def told_quantiles(
    workload: Workload, predictor: str, **unknown: float
) -> list[NDArray[np.float64]]:
    """Quantiles (``q50``, ...) of what a predictor believed that learns as jobs end, by job.

    Each is named with what stands for it where nothing is believed.
    """
    told = evaluate(workload, predictor).jobs.select("job_id", *unknown)
    found = workload.jobs.select("job_id").join(told, on="job_id", how="left")
    return [
        found[name].cast(pl.Float64).fill_null(value).to_numpy().astype(np.float64)
        for name, value in unknown.items()
    ]
