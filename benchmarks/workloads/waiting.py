"""Waiting policies on a generated year, against a bare compiled loop over one pool of cores."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import replace

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.cloud.waiting.jobs import GIB, FixedMachines, RentedType
from foresail.cloud.waiting.simulating import Beliefs, Foresight, simulate, waiting_policy
from foresail_studies.generators.university import university_year

_JOBS = 1_000_000


def proportional_family() -> tuple[RentedType, ...]:
    """Machines of 1 to 64 cores with 4 GiB each, whose price grows with them, as published."""
    return tuple(
        RentedType(f"{n}-core", n, n * 4.0 * GIB, n * 0.0481) for n in (1, 2, 4, 8, 16, 32, 64)
    )


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
    """A million jobs on machines of 64 cores: 225 on which all wait, or 150 and the compound.

    The compound also where nobody overtakes and an oracle knows the plan, and where half of the
    jobs ask for up to a gpu of the machines' eight.
    """
    jobs = university_year(jobs=_JOBS)
    shares = np.random.default_rng(0).choice([0.0, 0.0, 0.0, 0.25, 0.5, 1.0], _JOBS)
    with_gpus = replace(jobs, gpus=shares)
    family = proportional_family()
    gpu_family = tuple(replace(kind, gpus=math.ceil(kind.cores / 8)) for kind in family)
    beliefs = Beliefs.true_runtimes(jobs)
    foreseen = Beliefs.true_runtimes(jobs, Foresight())
    all_wait, compound = waiting_policy("ajw"), waiting_policy("compound", 86400.0, 180.0)
    in_order = replace(compound, queue="strict-fcfs")
    many, few, few_with_gpus = FixedMachines(225), FixedMachines(150), FixedMachines(150, gpus=8.0)
    *seconds, reference = best_in_turns(
        3.0,
        lambda: simulate(jobs, many, family, all_wait, beliefs),
        lambda: simulate(jobs, few, family, compound, foreseen),
        lambda: simulate(jobs, few, family, in_order, foreseen),
        lambda: simulate(with_gpus, few_with_gpus, gpu_family, compound, foreseen),
        lambda: _bare(jobs.submit_seconds, jobs.runtime_seconds, jobs.cores, 225 * 64),
    )
    names = ("all wait", "compound", "strict oracle", "gpus")
    for name, each in zip(names, seconds, strict=True):
        yield Measurement(f"waiting {name}", each, "bare loop, one pool", reference, _JOBS, "job")
