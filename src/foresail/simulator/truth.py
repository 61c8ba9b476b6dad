"""The locked-away truth of a workload, checked before a simulation uses it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.errors import InputError
from foresail.traces.workload import Workload

_LONGEST_SECONDS: Final = 1e10
"""Beyond these, times are in another unit, or mistakes, and sums with them lose small ones."""


def real_runtimes(workload: Workload, *, enforce_limits: bool = False) -> NDArray[np.float64]:
    """Real runtimes in seconds, a row per job in order of submission.

    Parameters
    ----------
    workload
        Its jobs and its number of processors.
    enforce_limits
        Cut them at the requested time, as a cluster that enforces limits does.

    Raises
    ------
    InputError
        If there are no jobs, a runtime is unknown, negative or beyond belief, or a job is wider
        than the machine.
    """
    if len(workload) == 0:
        raise InputError("no jobs to replay", source=workload.meta.source)
    runtime = workload.runtime_seconds.copy()
    _refuse(workload, ~(runtime >= 0), "runtime_seconds", runtime, "a known runtime, 0 or more")
    endless = runtime > _LONGEST_SECONDS
    _refuse(workload, endless, "runtime_seconds", runtime, "seconds, fewer than of three centuries")
    wide = workload.cpus > workload.processors
    _refuse(
        workload,
        wide,
        "cpus",
        workload.cpus,
        f"at most the machine's {workload.processors}, or the filter that drops such jobs",
    )
    if enforce_limits:
        requested = workload.jobs["requested_seconds"].fill_null(np.inf).to_numpy()
        runtime = np.minimum(runtime, requested)
    return runtime


def _refuse(
    workload: Workload,
    bad: NDArray[np.bool_],
    field: str,
    values: NDArray[np.float64],
    expected: str,
) -> None:
    if not bad.any():
        return
    first = int(np.argmax(bad))
    raise InputError(
        f"{int(bad.sum())} jobs cannot be replayed, the first is job "
        f"{workload.jobs['job_id'][first]!r}",
        source=workload.meta.source,
        field=field,
        value=float(values[first]),
        expected=expected,
    )
