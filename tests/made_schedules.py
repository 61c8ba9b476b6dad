"""Schedules made for tests of metrics and reports: by hand, at random, and from the real oracle."""

from __future__ import annotations

import gzip
import heapq

import numpy as np
import polars as pl

from foresail.traces.schedule import Schedule, ScheduleMeta
from foresail.traces.schema import SCHEDULE
from shared import shared

ORACLE_PROCESSORS = {"KTH-SP2": 100, "CTC-SP2": 338, "SDSC-SP2": 128}
ORACLE_POLICIES = {
    "easy": "wait_easy",
    "easy, clairvoyant": "wait_easy_clairvoyant",
    "easy(order=shortest), clairvoyant": "wait_sjbf_clairvoyant",
    "easy(order=shortest), recent(jobs=2), incremental": "wait_easypp_tsafrir",
}


def made_schedule(
    columns: dict[str, object], processors: float = 4, policy: str = "easy", **meta: object
) -> Schedule:
    """A schedule from some of its columns; ids count from 1, cpus are 1, the rest is null."""
    given = pl.DataFrame(columns, strict=False)
    if "job_id" not in given.columns:
        given = given.with_columns(job_id=pl.Series([str(i + 1) for i in range(given.height)]))
    for name, default in (("attempt", 1), ("cpus", 1.0), ("ended_because", "completed")):
        if name not in given.columns:
            given = given.with_columns(pl.lit(default).alias(name))
    table = given.select(
        (pl.col(name) if name in given.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in SCHEDULE.items()
    )
    return Schedule(table, ScheduleMeta(policy, processors, "made", **meta))


def waits_schedule(workload: pl.DataFrame, waits: object, **meta: object) -> Schedule:
    """A schedule of a table (job_id, submit, runtime, cpus, user, ...) from each job's wait."""
    start = workload["submit_seconds"] + pl.Series(waits).cast(pl.Float64)
    columns = {
        name: workload[name]
        for name in workload.columns
        if name in SCHEDULE and name not in ("start_seconds", "end_seconds")
    }
    return made_schedule(
        {**columns, "start_seconds": start, "end_seconds": start + workload["runtime_seconds"]},
        **meta,
    )


def random_workload(jobs: int, seed: int = 0, mean_gap_seconds: float = 300.0) -> pl.DataFrame:
    """Lognormal runtimes, power-of-two widths, a daily and weekly rhythm, 40 users."""
    generator = np.random.default_rng(seed)
    gaps = generator.exponential(mean_gap_seconds, jobs)
    submit = np.cumsum(gaps)
    submit += 20000 * np.sin(2 * np.pi * submit / 86400) / (2 * np.pi)
    submit = np.sort(submit - submit.min()).round()
    runtime = np.maximum(generator.lognormal(6.5, 2.0, jobs), 1.0).round().clip(max=172800.0)
    predicted = (runtime * generator.lognormal(0.3, 0.8, jobs)).round().clip(1.0)
    return pl.DataFrame(
        {
            "job_id": [str(i + 1) for i in range(jobs)],
            "submit_seconds": submit,
            "runtime_seconds": runtime,
            "cpus": 2.0 ** generator.integers(0, 6, jobs),
            "user": [f"user{u}" for u in generator.zipf(1.5, jobs).clip(max=40)],
            "requested_seconds": np.minimum(runtime * 3, 172800.0),
            "predicted_seconds": predicted,
            "predicted_low_seconds": predicted * 0.3,
            "predicted_high_seconds": predicted * 2.5,
        }
    )


def list_schedule(
    workload: pl.DataFrame, processors: float, priority: object = None, **meta: object
) -> Schedule:
    """Plain list scheduling: of the waiting jobs that fit, by priority, each as soon as it can."""
    submit = workload["submit_seconds"].to_numpy()
    runtime = workload["runtime_seconds"].to_numpy()
    cpus = workload["cpus"].to_numpy()
    rank = submit if priority is None else np.asarray(priority)
    start = np.zeros(len(submit))
    running: list[tuple[float, float]] = []
    waiting: list[tuple[float, int]] = []
    free = processors
    arrived = 0
    while arrived < len(submit) or waiting:
        coming = submit[arrived] if arrived < len(submit) else np.inf
        now = min(coming, running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while arrived < len(submit) and submit[arrived] <= now:
            heapq.heappush(waiting, (float(rank[arrived]), arrived))
            arrived += 1
        while waiting and cpus[waiting[0][1]] <= free:
            job = heapq.heappop(waiting)[1]
            start[job] = now
            free -= cpus[job]
            heapq.heappush(running, (now + runtime[job], cpus[job]))
    return waits_schedule(workload, start - submit, processors=processors, **meta)


def oracle_schedules(log: str) -> list[Schedule]:
    """The published study's own schedules of one log, under four policies."""
    swf = shared(f"traces/predictsim-sc15/{log}.filtered.swf.gz")
    waits = pl.read_csv(shared(f"traces/predictsim-sc15/{log}.oracle-waits.csv.gz"))
    with gzip.open(swf, "rt") as lines:
        rows = [line.split() for line in lines if not line.startswith(";")]
    fields = pl.Series(rows)
    workload = pl.DataFrame(
        {
            "job_id": fields.list.get(0),
            "submit_seconds": fields.list.get(1).cast(pl.Float64),
            "runtime_seconds": fields.list.get(3).cast(pl.Float64),
            "cpus": fields.list.get(7).cast(pl.Float64),
            "requested_seconds": fields.list.get(8).cast(pl.Float64),
            "user": fields.list.get(11),
        }
    )
    if workload["job_id"].cast(pl.Int64).to_list() != waits["job"].to_list():
        raise AssertionError("the waits are of other jobs than the log")
    schedules = []
    for policy, column in ORACLE_POLICIES.items():
        predicted = workload["requested_seconds"]
        if "clairvoyant" in policy:
            predicted = workload["runtime_seconds"]
        if "recent" in policy:
            predicted = waits["pred_easypp_tsafrir"].cast(pl.Float64)
        schedules.append(
            waits_schedule(
                workload.with_columns(predicted_seconds=predicted),
                waits[column],
                processors=ORACLE_PROCESSORS[log],
                policy=policy,
            )
        )
    return schedules
