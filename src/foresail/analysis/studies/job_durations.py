"""Runtimes of jobs as cumulative shares."""

from __future__ import annotations

import numpy as np

from foresail.analysis import columns
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares, known, variation
from foresail.model.registry import register
from foresail.model.words import count, duration
from foresail.traces.workload import Workload


@register("analysis", "job_durations")
@study("How long do jobs run?", "3.2")
def job_durations(workload: Workload) -> Answer | str:
    """Cumulative shares of runtimes.

    Spec section 10, W2 and the runtimes of W16 (dissertation, figures 3.2 and 4.2a). Jobs without
    a runtime are left out.
    """
    every = columns.runtimes(workload)
    runtimes = known(every)
    if not runtimes.size:
        return "No job's runtime is known."
    median, p80, p99 = (float(q) for q in np.quantile(runtimes, (0.5, 0.8, 0.99)))
    scalars = {
        "mean_seconds": float(runtimes.mean()),
        "p50_seconds": median,
        "p80_seconds": p80,
        "p99_seconds": p99,
        "longest_seconds": float(runtimes.max()),
        "share_of_zero": float((runtimes == 0).mean()),
    }
    if runtimes.any():
        scalars["coefficient_of_variation"] = variation(runtimes)
    verdict = (
        f"Half of the jobs run for at most {duration(median)}, four in five for at most "
        f"{duration(p80)}; the longest runs for {duration(scalars['longest_seconds'])}."
    )
    plot = cumulative_plot(
        "runtimes",
        "runtime_seconds",
        "runtime (log scale)",
        "share of jobs that run no longer",
        verdict,
        x_kind="duration",
    )
    left_out = every.size - runtimes.size
    return Answer(
        verdict,
        scalars,
        {"runtimes": cumulative_shares(runtimes, "runtime_seconds")},
        (plot,),
        (f"{count(left_out, 'job')} of unknown runtime left out.",) if left_out else (),
    )
