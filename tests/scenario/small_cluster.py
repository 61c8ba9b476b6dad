"""A rack of four nodes, and six jobs to which every option makes a difference."""

from dataclasses import replace

import polars as pl

from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

CYCLE_SECONDS = 7.0
NODES = pl.DataFrame(
    [
        {"node": f"n{number}", "partition": "rack", "count": 1, "cpus": 1.0, "gpus": 0.0}
        for number in range(1, 5)
    ],
    schema=schema.NODES,
)
ROWS = [(1, 2, 10, 20), (1, 2, 10, 20), (2, 4, 50, 40), (3, 2, 5, 5), (5, 1, 30, 90), (6, 3, 9, 60)]
"""When it comes, its tasks, its runtime and its limit; the third is to run into its own."""


def workload(after: dict[str, str] | None = None) -> Workload:
    """The jobs; ``after`` says which wait for which others."""
    submit, tasks, runtime, limit = (list(map(float, column)) for column in zip(*ROWS, strict=True))
    ids = [str(number) for number in range(1, len(ROWS) + 1)]
    given = {
        "job_id": ids,
        "submit_seconds": submit,
        "runtime_seconds": runtime,
        "requested_seconds": limit,
        "tasks": [int(count) for count in tasks],
        "user": ["ann"] * len(ROWS),
        "after_jobs": [(after or {}).get(each) for each in ids],
    }
    return Workload(jobs_table(given), WorkloadMeta("small", "hand", 4), NODES)


def asking(text: str, of: str = "4", made: Workload | None = None, **columns: object) -> Workload:
    """The workload, of which one job (two tasks, 5 s, submitted at 3 s) asks for itself in STRL."""
    made = workload() if made is None else made
    said = {
        name: pl.when(pl.col("job_id") == of).then(pl.lit(value)).alias(name)
        for name, value in {"strl": text, **columns}.items()
    }
    return made.with_jobs(made.jobs.with_columns(**said))


def in_parts() -> Workload:
    """The jobs, of which the third has maps and a reduce that start apart."""
    tasks = [("3", "map", None, task, 10.0 + task, None, None) for task in range(3)]
    tasks.append(("3", "reduce", "map", 0, 20.0, None, None))
    return replace(workload(), tasks=pl.DataFrame(tasks, schema=schema.TASKS, orient="row"))


def with_a_fast_node() -> Workload:
    """The jobs, on nodes of which one is twice as fast."""
    speeds = pl.Series(schema.SPEED, [1.0, 2.0, 1.0, 1.0])
    return replace(workload(), nodes=NODES.with_columns(speeds))


def history() -> Workload:
    """What ann's jobs took before."""
    given = {
        "job_id": ["h1", "h2"],
        "submit_seconds": [0.0, 100.0],
        "runtime_seconds": [3.0, 4.0],
        "requested_seconds": [50.0, 50.0],
        "tasks": [1, 1],
        "user": ["ann", "ann"],
    }
    return Workload(jobs_table(given), WorkloadMeta("earlier", "hand", 4))


def two_partitions():
    """One partition that is full, and one that is idle; each has eight processors."""
    return Workload(
        jobs_table(
            {
                "job_id": ["1", "2", "3", "4"],
                "submit_seconds": [0.0, 1.0, 3.0, 4.0],
                "recorded_wait_seconds": [0.0, 99.0, 0.0, 0.0],
                "runtime_seconds": [100.0, 100.0, 100.0, 100.0],
                "tasks": [8, 8, 2, 2],
                "partition": ["A", "A", "B", "B"],
            }
        ),
        WorkloadMeta("made", "hand", 16),
    )
