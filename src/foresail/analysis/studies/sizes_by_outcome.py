"""Sizes of unsuccessful jobs beside those of successful ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.columns import DEFINITION, NOT_TOLD, UNSUCCESSFUL, outcomes
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares
from foresail.model.registry import register
from foresail.model.words import number
from foresail.traces.workload import Workload


@register("analysis", "sizes_by_outcome")
@study("Are unsuccessful jobs larger?", "3.5")
def sizes_by_outcome(workload: Workload) -> Answer | str:
    """Cumulative shares of cpus asked for, successful and unsuccessful jobs apart.

    Spec section 10, W11 (dissertation, figure 3.8). Sizes of the jobs whose size and outcome are
    known.
    """
    outcome = outcomes(workload)
    if outcome is None:
        return NOT_TOLD
    cpus = columns.cpus(workload)
    sized = np.isfinite(cpus)
    successful = cpus[sized & (outcome == "successful").fill_null(value=False).to_numpy()]
    among = outcome.is_in(list(UNSUCCESSFUL)).fill_null(value=False).to_numpy()
    unsuccessful = cpus[sized & among]
    for sample, name in ((successful, "successful"), (unsuccessful, "unsuccessful")):
        if not sample.size:
            return f"No {name} job of known size."
    scalars = {
        "mean_cpus_successful": float(successful.mean()),
        "mean_cpus_unsuccessful": float(unsuccessful.mean()),
        "p50_cpus_successful": float(np.median(successful)),
        "p50_cpus_unsuccessful": float(np.median(unsuccessful)),
        "p90_cpus_successful": float(np.quantile(successful, 0.9)),
        "p90_cpus_unsuccessful": float(np.quantile(unsuccessful, 0.9)),
    }
    scalars["unsuccessful_to_successful_mean"] = (
        scalars["mean_cpus_unsuccessful"] / scalars["mean_cpus_successful"]
    )
    verdict = (
        f"Unsuccessful jobs ask for {number(scalars['unsuccessful_to_successful_mean'])} times "
        f"as many cpus in the mean; medians {number(scalars['p50_cpus_unsuccessful'])} and "
        f"{number(scalars['p50_cpus_successful'])}."
    )
    table = pl.concat(
        cumulative_shares(sample, "cpus").with_columns(outcome=pl.lit(name))
        for name, sample in (("successful", successful), ("unsuccessful", unsuccessful))
    )
    plot = cumulative_plot(
        "sizes",
        "cpus",
        "cpus of a job (log scale)",
        "share of jobs that ask for no more",
        verdict,
        series="outcome",
    )
    return Answer(verdict, scalars, {"sizes": table}, (plot,), (DEFINITION,))
