"""``python -m benchmarks.plan_triage [SEEDS]``: what leaving jobs out of cycles loses over a run.

E2E at six times what the nodes can do for 12 minutes, planned by ``3sigma`` in cycles of ten
seconds until all is done, when a cycle looks at all who wait, and at some of them only. Equal jobs;
what differs is who is looked at. The cap is given by hand, as the one that follows from the work of
a cycle is never below 2,500 groups.
"""

from __future__ import annotations

import sys
from typing import Any, Final
from unittest import mock

import numpy as np
import polars as pl

from benchmarks.plan_cycles import e2e
from foresail.schedulers._planning import problem as problems

CAPS: Final = (10**9, 100, 30)
"""Groups that a cycle looks at; nearly all jobs have two."""
CROWDED: Final[dict[str, Any]] = {"hours": 0.2, "load": 6.0, "history_hours": 2.0}


def row(cap: int, seed: int) -> dict[str, float]:
    """What a run with a cap comes to."""
    with mock.patch.object(problems, "groups_within", return_value=cap):
        cycles = e2e(seed=seed, **CROWDED)
    jobs = cycles.schedule.jobs.filter(ended_because="completed")
    hours = jobs.select(pl.col("submit_seconds", "start_seconds", "end_seconds") / 3600.0)
    submitted, started, ended = (hours[name].to_numpy() for name in hours.columns)
    deadline = jobs["deadline_seconds"].to_numpy() / 3600.0
    limited, met = np.isfinite(deadline), ended <= deadline
    return {
        "waiting, most": float(cycles.of("pending").max()),
        "left out, most": float(cycles.of("left_out").max()),
        "deadlines met": float(met[limited].mean()),
        "cpu hours in time": float(((ended - started) * jobs["cpus"].to_numpy())[met].sum()),
        "wait of others, hours": float((started - submitted)[~limited].mean()),
        "last end, hours": float(ended.max()),
        "processor seconds": float(cycles.processor_seconds.sum()),
    }


def main(seeds: int) -> None:
    """A line for every cap and seed, as soon as it is known."""
    for seed in range(1, seeds + 1):
        for cap in CAPS:
            told = ", ".join(f"{name} {value:.3g}" for name, value in row(cap, seed).items())
            print(f"seed {seed}, {'all' if cap == CAPS[0] else cap} groups: {told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
