"""How well runtimes are predicted from the history of similar jobs."""

from __future__ import annotations

import numpy as np

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study_with_parameters
from foresail.analysis.prediction_errors import error_histogram, error_shares
from foresail.evaluation.analyses._predictability import PredictabilityParameters
from foresail.evaluation.replaying import evaluate
from foresail.model.registry import register
from foresail.model.words import count, percent
from foresail.traces.workload import Workload


@register("analysis", "runtime_predictability", parameters=PredictabilityParameters)
@study_with_parameters("Can runtimes be predicted?", "3.6")
def runtime_predictability(
    parameters: PredictabilityParameters, workload: Workload
) -> Answer | str:
    """Histogram of the errors of runtime estimates from history.

    Spec section 10, W14 (dissertation, figures 3.10 and 4.2d; golden value G23). Jobs are learned
    from when they have ended. Errors over the jobs that ran for more than 0 s.
    """
    first = workload.with_jobs(workload.jobs.head(parameters.most_jobs))
    runtimes = columns.runtimes(first)
    if not (runtimes > 0).any():
        return "No job's runtime is known and above 0."
    jobs = evaluate(first, parameters.predictor).jobs
    estimate, actual = jobs["predicted"].to_numpy(), jobs["actual"].to_numpy()
    shares = error_shares(estimate, actual)
    if not shares.jobs:
        return "No runtime was predicted."
    verdict = (
        f"{percent(shares.within_factor_two)} of the estimates lie within a factor of two, "
        f"{percent(shares.tail)} are more than 95 % too long, "
        f"{percent(shares.under_by_half)} more than 50 % too short."
    )
    plot = Plot(
        kind="line",
        table="errors",
        x="bucket_percent",
        y="share",
        x_label="(estimate − runtime) ÷ runtime, %; the last point is all above 95 %",
        y_label="share of jobs",
        alternative=verdict,
        y_kind="share",
    )
    left_out = int(np.isfinite(runtimes).sum()) - shares.jobs
    scalars = {
        "jobs": float(shares.jobs),
        "share_within_factor_2": shares.within_factor_two,
        "share_under": shares.under,
        "share_under_by_half": shares.under_by_half,
        "share_over": shares.over,
        "share_in_tail": shares.tail,
    }
    notes = (
        f"Estimates of the predictor {parameters.predictor}.",
        *([f"The first {len(first):,} jobs."] if len(first) < len(workload) else []),
        *([f"{count(left_out, 'job')} of 0 s left out."] if left_out else []),
    )
    return Answer(verdict, scalars, {"errors": error_histogram(estimate, actual)}, (plot,), notes)
