"""Whether unsuccessful jobs are larger than successful ones."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Finding, PlainAnalysis, Unavailable
from foresail.analysis.outcomes import DEFINITION, NOT_TOLD, UNSUCCESSFUL, outcomes
from foresail.analysis.samples import cumulative_plot, cumulative_shares
from foresail.model.registry import register
from foresail.model.words import number
from foresail.traces.workload import Workload

TITLE: Final = "Are unsuccessful jobs larger?"


@register("analysis", "sizes_by_outcome")
class SizesByOutcome(PlainAnalysis):
    """Cumulative shares of cpus asked for, successful and unsuccessful jobs apart.

    Spec section 10, W11 (dissertation, figure 3.8).
    """

    section: ClassVar[str] = "3.5"

    def examine(self, workload: Workload) -> Finding | Unavailable:
        """Sizes of the jobs whose size and outcome are known."""
        outcome = outcomes(workload)
        if outcome is None:
            return Unavailable("sizes_by_outcome", TITLE, NOT_TOLD)
        cpus = columns.cpus(workload)
        sized = np.isfinite(cpus)
        successful = cpus[sized & (outcome == "successful").fill_null(value=False).to_numpy()]
        among = outcome.is_in(list(UNSUCCESSFUL)).fill_null(value=False).to_numpy()
        unsuccessful = cpus[sized & among]
        for sample, name in ((successful, "successful"), (unsuccessful, "unsuccessful")):
            if not sample.size:
                reason = f"No {name} job of known size."
                return Unavailable("sizes_by_outcome", TITLE, reason)
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
        return Finding(
            "sizes_by_outcome", TITLE, verdict, scalars, {"sizes": table}, (plot,), (DEFINITION,)
        )
