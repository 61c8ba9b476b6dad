"""Distance of requests from what jobs use: cpus, memory and time."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.prediction_errors import TAIL, error_histogram, error_shares
from foresail.model.arrays import Floats
from foresail.model.registry import register
from foresail.model.words import percent
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload


@register("analysis", "request_against_usage")
@study("Do jobs use what they ask for?", "5.1")
def request_against_usage(workload: Workload) -> Answer | str:
    """Error of requests taken as estimates of what is used: cpus, memory, and time.

    Spec section 10, W17 (dissertation, figure 5.1; golden value G23). Used cpus are the mean over
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
