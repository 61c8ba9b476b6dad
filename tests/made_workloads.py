"""Workloads that several tests simulate: by hand on nodes, or at random."""

from __future__ import annotations

import random

import numpy as np
import polars as pl

from foresail.checks.rules import tiny_workload
from foresail.traces import schema
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def nodes(racks=2, of=2, gpu_racks=()):
    """Nodes of one cpu in racks r1, r2, ...; those of some racks have a gpu."""
    rows = [
        {
            "node": f"n{rack}{number}",
            "partition": f"r{rack}",
            "count": 1,
            "cpus": 1.0,
            "gpus": 1.0 if rack in gpu_racks else 0.0,
        }
        for rack in range(1, racks + 1)
        for number in range(1, of + 1)
    ]
    return pl.DataFrame(rows, schema=schema.NODES)


def workload(jobs, table=None):
    """Jobs as dictionaries; ``tasks``, ``runtime_seconds`` and ``submit_seconds`` have defaults."""
    rows = [
        {
            "job_id": name,
            "submit_seconds": 0.0,
            "runtime_seconds": 10.0,
            "tasks": 1,
            "requested_seconds": 1000.0,
            "user": "ann",
            "deadline_seconds": None,
            "preferred": None,
            "slowdown_elsewhere": None,
            "cpus_per_task": 1.0,
            **fields,
        }
        for name, fields in jobs.items()
    ]
    kinds = {name: kind for name, kind in schema.JOBS.items() if name in rows[0]}
    given = pl.DataFrame(rows, schema=kinds).to_dict(as_series=True)
    table = nodes() if table is None else table
    processors = int(table["cpus"].sum())
    return Workload(jobs_table(given), WorkloadMeta("made", "hand", processors), table)


def random_workload(seed, jobs=80):
    draw = random.Random(seed)
    submit, made = 0.0, {}
    for number in range(jobs):
        submit += draw.choice([0.0, 1.0, 7.5])
        kind = draw.choice([None, "partition:r1,r2", "same:rack", "spread:rack", "attribute:gpu"])
        runtime = draw.choice([0.0, 3.0, 20.0, 55.5])
        made[f"j{number}"] = {
            "submit_seconds": submit,
            "runtime_seconds": runtime,
            "tasks": draw.randint(1, 9),
            "deadline_seconds": submit + 60.0 if draw.random() < 0.4 else None,
            "preferred": kind,
            "slowdown_elsewhere": 1.5 if kind else None,
        }
    return workload(made, nodes(racks=3, of=3, gpu_racks=(3,)))


def busy_workload(seed: int) -> Workload:
    """Sixty jobs of one user on 4 cpus, many of the same second and with ends that coincide."""
    draw = random.Random(seed)
    rows = []
    for submit in sorted(draw.randint(0, 400) for _ in range(60)):
        runtime = draw.randint(1, 60)
        requested = runtime + draw.choice([0, draw.randint(0, 200)])
        rows.append((submit, draw.randint(1, 4), runtime, float(requested)))
    return tiny_workload(rows)


def hourly_workload(submit_hours, hours, tasks, **columns):
    """Jobs by submission and runtime in hours, with further columns of the jobs table."""
    size = len(submit_hours)
    table = jobs_table(
        {
            "job_id": [str(at) for at in range(size)],
            "submit_seconds": np.asarray(submit_hours, float) * 3600.0,
            "runtime_seconds": np.asarray(hours, float) * 3600.0,
            "tasks": tasks,
        }
        | columns
    )
    return Workload(table, WorkloadMeta("made", "made"))
