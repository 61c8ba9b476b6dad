"""Frequency of submitting the same job again: the same executable of the same user."""

from __future__ import annotations

import numpy as np
import polars as pl

from foresail.analysis.columns import UNSUCCESSFUL, outcomes
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares
from foresail.model.registry import register
from foresail.model.words import count, number, percent
from foresail.traces.workload import Workload


@register("analysis", "resubmissions")
@study("Are jobs submitted again?", "3.5")
def resubmissions(workload: Workload) -> Answer | str:
    """Count submissions of jobs of one name; a name is an executable together with its user.

    Spec section 10, W13 (dissertation, section 3.5). Submissions per name, over the jobs whose
    executable is known.
    """
    jobs = workload.jobs.select("user", "executable")
    outcome = outcomes(workload)
    if outcome is not None:
        jobs = jobs.with_columns(outcome=outcome)
    named = jobs.filter(pl.col("executable").is_not_null())
    if not named.height:
        return "No job's executable is known."
    times = pl.len().over("user", "executable").alias("submissions")
    named = named.with_columns(times)
    names = named.group_by("user", "executable").len("submissions")
    per_name = names["submissions"].to_numpy().astype(float)
    once = float((per_name == 1).mean())
    scalars = {
        "names": float(per_name.size),
        "share_of_names_submitted_once": once,
        "share_of_jobs_submitted_once": float((named["submissions"] == 1).to_numpy().mean()),
        "mean_submissions": float(per_name.mean()),
        "most_submissions": float(per_name.max()),
    }
    if outcome is not None:
        for name, among in (
            ("successful", ["successful"]),
            ("unsuccessful", list(UNSUCCESSFUL)),
        ):
            ended = named.filter(pl.col("outcome").is_in(among))["submissions"]
            if ended.len():
                scalars[f"median_submissions_of_{name}_jobs"] = float(np.median(ended.to_numpy()))
    verdict = (
        f"{percent(once)} of the names are submitted exactly once, which are "
        f"{percent(scalars['share_of_jobs_submitted_once'])} of the jobs; a name is submitted "
        f"{number(scalars['mean_submissions'])} times on average."
    )
    plot = cumulative_plot(
        "submissions",
        "submissions",
        "times a name is submitted (log scale)",
        "share of names submitted no more often",
        verdict,
    )
    unknown = len(workload) - named.height
    return Answer(
        verdict,
        scalars,
        {"submissions": cumulative_shares(per_name, "submissions")},
        (plot,),
        (
            "A name is an executable together with its user.",
            *([f"{count(unknown, 'job')} without executable left out."] if unknown else []),
        ),
    )
