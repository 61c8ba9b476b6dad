"""Variation of runtimes among the jobs of one user, and among those of one size."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares
from foresail.model.registry import register
from foresail.model.words import percent
from foresail.traces.workload import Workload

HIGH: Final = 1.0
"""Coefficient of variation of the exponential distribution, above which variability is high."""


@register("analysis", "runtime_variability")
@study("Do similar jobs run equally long?", "4.1")
def runtime_variability(workload: Workload) -> Answer | str:
    """Coefficient of variation of runtimes within each user's jobs, and within each size.

    Spec section 10, W16 (dissertation, figures 4.2b and 4.2c). Groups of one job, or of no runtime
    but 0, have no variation. Variation over the groups of at least two jobs of known runtime.
    """
    jobs = workload.jobs.select("user").with_columns(
        pl.Series("cpus", columns.cpus(workload), nan_to_null=True),
        pl.Series("runtime", columns.runtimes(workload), nan_to_null=True),
    )
    scalars: dict[str, float] = {}
    tables, sentences = [], []
    for column, kind, said in (("user", "user", "users"), ("cpus", "size", "sizes")):
        groups = (
            jobs.select(column, "runtime")
            .drop_nulls()
            .group_by(column)
            .agg(
                jobs=pl.len(),
                mean=pl.col("runtime").mean(),
                deviation=pl.col("runtime").std(ddof=0),
            )
            .filter((pl.col("jobs") >= 2) & (pl.col("mean") > 0))
            .sort(column)
        )
        if not groups.height:
            continue
        cov = (groups["deviation"] / groups["mean"]).to_numpy()
        high = float((cov > HIGH).mean())
        scalars |= {
            f"{said}": float(cov.size),
            f"share_of_{said}_with_high_variability": high,
            f"share_of_jobs_in_{said}_with_high_variability": float(
                np.average(cov > HIGH, weights=groups["jobs"].to_numpy())
            ),
            f"median_coefficient_of_variation_per_{kind}": float(np.median(cov)),
        }
        sentences.append(f"{percent(high)} of the {said}")
        tables.append(
            cumulative_shares(cov, "coefficient_of_variation").with_columns(
                group=pl.lit(f"per {kind}")
            )
        )
    if not tables:
        return "No two jobs of known runtime above 0 share a user or a size."
    verdict = (
        f"Runtimes vary more than those of an exponential distribution for "
        f"{' and '.join(sentences)}."
    )
    plot = cumulative_plot(
        "variation",
        "coefficient_of_variation",
        "coefficient of variation of runtimes in a group",
        "share of groups that vary no more",
        verdict,
        series="group",
        log_x=False,
    )
    return Answer(
        verdict,
        scalars,
        {"variation": pl.concat(tables)},
        (plot,),
        (
            "Coefficient of variation: standard deviation (population) over mean; above 1 is "
            "high. Size: cpus asked for.",
        ),
    )
