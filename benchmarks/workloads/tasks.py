"""Tasks that start apart: a replay of SLearn, also while very many tasks wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.model.short_form import part_of
from foresail.simulator.task_replay import replay_task_arrays
from foresail.traces.generating import generate
from foresail.traces.workload import Workload

_POLICY = parse_policy("slearn")


@benchmark("tasks")
def measure() -> Iterator[Measurement]:
    """A million tasks of jobs that come by and by; 100,000 and a million that wait from the start.

    Stages, queues and arrays are part of it, the table of the schedule is not. Against NumPy:
    sorting the tasks' runtimes twice. In seconds of processor time.
    """
    yield _measured("tasks by and by", _made(20_000, 50))
    for jobs in (10_000, 100_000):
        workload = _made(jobs, 10)
        at_once = workload.with_jobs(workload.jobs.with_columns(submit_seconds=pl.lit(0.0)))
        yield _measured(f"tasks {10 * jobs} waiting", at_once)


def _made(jobs: int, width: int) -> Workload:
    part = part_of("generator", f"task_regimes(jobs={jobs},width={width})")
    return generate(part.entry.name, part.parameters, seed=1)


def _measured(name: str, workload: Workload) -> Measurement:
    runtimes = workload.tasks["runtime_seconds"].to_numpy()  # type: ignore[index]
    both = np.concatenate((runtimes, runtimes[::-1]))
    seconds, reference = best_in_turns(
        3.0,
        partial(replay_task_arrays, workload, _POLICY),
        lambda: np.sort(both, kind="stable"),
        clock=time.process_time,
    )
    return Measurement(name, seconds, "NumPy", reference, runtimes.size, "task")
