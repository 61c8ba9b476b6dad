"""Use against allocation: tasks that were sampled, requests, and capacity over time."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.prediction_errors import TAIL, error_histogram, error_shares
from foresail.model.distribution import Floats
from foresail.model.registry import register
from foresail.model.words import count, duration, number, percent
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload


@register("analysis", "request_against_usage")
@study("Do jobs use what they ask for?", "5.1")
def request_against_usage(workload: Workload) -> Answer | str:
    """Error of requests taken as estimates of what is used: cpus, memory, and time.

    Park's dissertation, figure 5.1. Used cpus are the mean over
    the job's life: from the usage table, or else its cpu time over its runtime. Histograms over the
    jobs whose request is known and whose use is known and not 0.
    """
    scalars: dict[str, float] = {}
    tables, sentences = [], []
    for what, (asked, used) in _pairs(workload).items():
        usable = np.isfinite(asked) & np.isfinite(used) & (asked > 0) & (used > 0)
        if not usable.any():
            continue
        shares = error_shares(asked[usable], used[usable])
        scalars |= {
            f"jobs_with_{what}": float(shares.jobs),
            f"{what}_within_factor_2": shares.within_factor_two,
            f"{what}_over_requested": shares.over,
            f"{what}_under_requested": shares.under,
            f"{what}_median_used_share": float(np.median(used[usable] / asked[usable])),
        }
        sentences.append(
            f"{percent(shares.within_factor_two)} of the requests of {what} "
            f"({percent(shares.over)} ask for too much)"
        )
        tables.append(
            error_histogram(asked[usable], used[usable]).with_columns(quantity=pl.lit(what))
        )
    if not tables:
        return "No job's request and use are both known, of cpus, memory or time."
    verdict = f"Within a factor of two of the use: {'; '.join(sentences)}."
    plot = Plot(
        kind="line",
        table="errors",
        x="bucket_percent",
        y="share",
        x_label=f"(request − use) ÷ use, %; the last point ({TAIL}) is all above 95 %",
        y_label="share of jobs",
        alternative=verdict,
        series="quantity",
        y_kind="share",
    )
    return Answer(
        verdict,
        scalars,
        {"errors": pl.concat(tables)},
        (plot,),
        ("Jobs whose use is unknown or 0 are left out, quantity by quantity.",),
    )


def _pairs(workload: Workload) -> dict[str, tuple[Floats, Floats]]:
    """Requested and used amounts per job, by quantity; cpus and memory are per task."""
    asked = workload.jobs.select(
        pl.col("cpus_per_task", "memory_bytes_per_task", "requested_seconds").cast(pl.Float64)
    ).to_numpy()
    pairs = {
        "cpus": (asked[:, 0], quantity(workload, "cpu")),
        "memory": (asked[:, 1], quantity(workload, "memory")),
        "time": (asked[:, 2], quantity(workload, "runtime")),
    }
    if "memory_unit" in workload.meta.header:
        del pairs["memory"]
    return pairs


_BINS: Final = 400


@register("analysis", "allocation_over_time")
@study("How much of the machine is allocated?", "3.4")
def allocation_over_time(workload: Workload) -> Answer | str:
    """Cpus of the running jobs as a step function of time, against the machine's.

    Park's dissertation, section 3.4. Use between the first and the last submission,
    by what the log says of starts and ends. Means over bins and over all time are exact; a job
    holds what was allocated to it, or else what it asked for.
    """
    jobs = workload.jobs.select(
        start=pl.col("submit_seconds") + pl.col("recorded_wait_seconds"),
        seconds=pl.col("runtime_seconds"),
        cpus=pl.coalesce("allocated_cpus", pl.col("tasks") * pl.col("cpus_per_task")),
    ).cast(pl.Float64)
    every = jobs.to_numpy()
    usable = every[np.isfinite(every).all(axis=1) & (every[:, 1] > 0) & (every[:, 2] > 0)]
    if not usable.size:
        return "No job's start, runtime above 0 and cpus are all known."
    start, seconds, cpus = usable.T
    submit = columns.submissions(workload)
    begin, end = float(submit[0]), float(submit[-1])
    if end <= begin:
        begin, end = float(start.min()), float((start + seconds).max())
    edges = np.linspace(begin, end, _BINS + 1)
    at, held, done = _steps(start, start + seconds, cpus)
    work = np.interp(edges, at, done, left=0.0)
    means = np.diff(work) / np.diff(edges)
    inside = (at >= begin) & (at < end)
    mean = float(work[-1] - work[0]) / (end - begin)
    scalars = {
        "mean_allocated_cpus": mean,
        "most_allocated_cpus": float(held[inside].max(initial=0.0)),
    }
    table = pl.DataFrame(
        {"from_seconds": edges[:-1] - begin, "to_seconds": edges[1:] - begin, "cpus": means}
    )
    processors = workload.meta.processors
    y, label = "cpus", "cpus allocated"
    verdict = f"{number(mean)} cpus are allocated on average"
    if processors:
        table = table.with_columns(share=pl.col("cpus") / processors)
        low, high = (float(q) for q in np.quantile(means / processors, (0.1, 0.9)))
        scalars |= {
            "mean_allocated_share": mean / processors,
            "p10_allocated_share": low,
            "p90_allocated_share": high,
            "most_allocated_share": scalars["most_allocated_cpus"] / processors,
        }
        y, label = "share", "share of cpus allocated"
        verdict = (
            f"{percent(mean / processors)} of the cpus are allocated on average, "
            f"{percent(low)} to {percent(high)} most of the time, "
            f"{percent(scalars['most_allocated_share'])} at most."
        )
    else:
        verdict += "; the machine's size is unknown."
    left_out = every.shape[0] - usable.shape[0]
    lacking = f"{count(left_out, 'job')} that did not run, or lack a start, left out."
    step = duration((end - begin) / _BINS)
    note = f"Averages over {step}; “most of the time”: 10 % and 90 % quantile of these."
    plot = Plot(
        kind="line",
        table="use",
        x="from_seconds",
        y=y,
        x_label="time from the first submission",
        y_label=label,
        alternative=verdict,
        x_kind="duration",
        y_kind="share" if processors else "number",
    )
    return Answer(
        verdict, scalars, {"use": table}, (plot,), (note, *([lacking] if left_out else []))
    )


def _steps(start: Floats, end: Floats, cpus: Floats) -> tuple[Floats, Floats, Floats]:
    """Instants, cpus held from each of them on, and cpu-seconds done by each."""
    times, place = np.unique(np.concatenate((start, end)), return_inverse=True)
    change = np.bincount(place, weights=np.concatenate((cpus, -cpus)))
    held = np.maximum(np.cumsum(change), 0.0)
    done = np.concatenate(([0.0], np.cumsum(held[:-1] * np.diff(times))))
    return times, held, done
