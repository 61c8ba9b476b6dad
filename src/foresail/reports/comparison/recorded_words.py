"""The log's own waits beside simulated ones: whether to use the model of its machine at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from foresail.metrics.comparison import (
    LEAST_RANK_CORRELATION,
    MOST_TIMES,
    Resemblance,
    Side,
    nearest,
    recorded_waits,
)
from foresail.model.words import count, duration, number
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload


def verdict_of(workload: Workload, schedules: Sequence[Schedule]) -> Mapping[str, Any] | None:
    """What a log's recorded waits say of simulations of it: ``words``, and the figures.

    None where nobody is known to have waited. Of fewer than half of the jobs, and of a machine of
    another size, they say nothing.
    """
    recorded = recorded_waits(workload)
    if recorded is None:
        waited = workload.jobs.filter(pl.col("recorded_wait_seconds") > 0.0).height
        known = f"{count(waited, 'job')} of {len(workload):,} are known to have waited"
        told = f"{known}: the log's waits are known of too few jobs to be compared."
        return {"words": told} if waited else None
    stated, simulated = workload.meta.stated_processors, workload.meta.processors
    if stated not in (None, simulated):
        of = f"{stated:,} processors, not of {simulated:,}"
        return {"words": f"What the log recorded is of {of}: it is not compared."}
    found = nearest(recorded, schedules)
    if found is None:
        return {"words": "No job whose wait was recorded came to its end here."}
    return {"words": _said(found), "is_usable": found.is_usable, **dataclasses.asdict(found)}


def _said(found: Resemblance) -> str:
    every = count(found.of_jobs, "job")
    jobs = f"all {every}"
    if found.jobs < found.of_jobs:
        jobs = f"{found.jobs:,} of {every}, those with a recorded wait that came to their end,"
    compared = (
        f"{jobs} {_side_said(found.recorded)} as recorded, and "
        f"{_side_said(found.simulated)} under {found.policy}, which comes nearest; the rank "
        f"correlation of their waits is {number(found.rank_correlation)}"
    )
    if not found.is_judged:
        return f"Too few jobs that waited to judge the model of the machine by: {compared}."
    if found.is_usable:
        return (
            f"The model of the machine passes: {compared}. It knows nothing of outages, "
            "reservations and limits of queues and users, so go by the differences between "
            "policies, not by how long their waits are."
        )
    return (
        f"Do not use this model of the machine: {compared}. To be of use, that is to be at least "
        f"{number(LEAST_RANK_CORRELATION)}, and mean and median within {number(MOST_TIMES)} times "
        "of each other. Partitions, limits of queues and users, reservations, outages or another "
        "number of processors, which it knows nothing of, decided how long jobs waited."
    )


def _side_said(side: Side) -> str:
    return (
        f"waited {duration(side.mean_wait_seconds)} on average (median "
        f"{duration(side.median_wait_seconds)}, slowdown {number(side.average_bounded_slowdown)})"
    )
