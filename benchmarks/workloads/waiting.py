"""Waiting policies on a generated year, against a bare compiled loop over one pool of cores."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.cloud.waiting.jobs import FixedMachines, proportional_family
from foresail.cloud.waiting.policies import Beliefs, Foresight, waiting_policy
from foresail.cloud.waiting.simulating import simulate
from foresail.cloud.waiting.year import university_year

_JOBS = 1_000_000


@numba.njit(cache=True)
def _bare(
    submit: NDArray[np.float64],
    runtime: NDArray[np.float64],
    cores: NDArray[np.int64],
    total: int,
) -> NDArray[np.float64]:
    """Start times where nobody overtakes."""
    start = np.empty(submit.size)
    ends = [(np.inf, 0)]
    free = total
    now = 0.0
    for job in range(submit.size):
        now = max(now, submit[job])
        while ends[0][0] <= now or free < cores[job]:
            end, width = heapq.heappop(ends)
            now = max(now, end)
            free += width
        start[job] = now
        free -= cores[job]
        heapq.heappush(ends, (now + runtime[job], cores[job]))
    return start


@benchmark("waiting")
def measure() -> Iterator[Measurement]:
    """A million jobs: all wait for 225 machines of 64 cores, or the compound for 150."""
    jobs = university_year(jobs=_JOBS)
    family = proportional_family()
    beliefs = Beliefs.true_runtimes(jobs)
    foreseen = Beliefs.true_runtimes(jobs, Foresight())
    all_wait, compound = waiting_policy("ajw"), waiting_policy("compound", 86400.0, 180.0)
    seconds, compound_seconds, reference = best_in_turns(
        3.0,
        lambda: simulate(jobs, FixedMachines(225), family, all_wait, beliefs),
        lambda: simulate(jobs, FixedMachines(150), family, compound, foreseen),
        lambda: _bare(jobs.submit_seconds, jobs.runtime_seconds, jobs.cores, 225 * 64),
    )
    bare = "bare loop, one pool"
    yield Measurement("waiting all wait", seconds, bare, reference, _JOBS, "job")
    yield Measurement("waiting compound", compound_seconds, bare, reference, _JOBS, "job")
