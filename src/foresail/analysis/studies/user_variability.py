"""Variation of what one user submits: sizes, runtimes, and the same job again."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.columns import UNSUCCESSFUL, cumulative_plot, cumulative_shares, outcomes
from foresail.analysis.finding import Answer, study
from foresail.model.registry import register
from foresail.model.words import count, number, percent
from foresail.traces.workload import Workload

_MOST_USERS: Final = 2000


@register("analysis", "user_variability")
@study("Does a user always ask for the same?", "3.4")
def user_variability(workload: Workload) -> Answer | str:
    """Variation of the cpus asked for within each user's jobs, and the furthest from the mean.

    Park's dissertation, section 3.4. The deviation of a user is
    the largest over the jobs of max(cpus / mean, mean / cpus). Users with at least two jobs of
    known size.
    """
    asked = pl.Series("cpus", columns.cpus(workload), nan_to_null=True)
    jobs = workload.jobs.select("user").with_columns(asked).drop_nulls()
    if not jobs.height:
        return "No job's user and cpus are both known."
    mean, cpus = pl.col("mean_cpus"), pl.col("cpus")
    users = (
        jobs.group_by("user")
        .agg(
            jobs=pl.len(),
            mean_cpus=cpus.mean(),
            deviation=cpus.std(ddof=0),
            least=cpus.min(),
            most=cpus.max(),
        )
        .filter(pl.col("jobs") >= 2)
        .select(
            "user",
            "jobs",
            "mean_cpus",
            coefficient_of_variation=pl.col("deviation") / mean,
            largest_deviation=pl.max_horizontal(pl.col("most") / mean, mean / pl.col("least")),
        )
        .sort("jobs", "user", descending=[True, False])
    )
    if not users.height:
        return "No user has two jobs of known size."
    furthest = users["largest_deviation"].to_numpy()
    cov = users["coefficient_of_variation"].to_numpy()
    scalars = {
        "users": float(users.height),
        "share_of_users_within_2_times": float((furthest < 2).mean()),
        "share_of_users_2_to_10_times": float(((furthest >= 2) & (furthest < 10)).mean()),
        "share_of_users_10_times_or_more": float((furthest >= 10).mean()),
        "share_of_users_2_times_or_more": float((furthest >= 2).mean()),
        "median_coefficient_of_variation": float(np.median(cov)),
    }
    verdict = (
        f"{percent(scalars['share_of_users_within_2_times'])} of the users keep within twice "
        f"or half of their mean size, {percent(scalars['share_of_users_2_to_10_times'])} "
        f"deviate 2–10 times, {percent(scalars['share_of_users_10_times_or_more'])} more."
    )
    plots = tuple(
        cumulative_plot(table, table, label, "share of users", said, log_x=log)
        for table, label, log, said in (
            (
                "largest_deviation",
                "furthest job from the user's mean, times (log scale)",
                True,
                verdict,
            ),
            (
                "coefficient_of_variation",
                "coefficient of variation of a user's sizes",
                False,
                f"For half of the users the coefficient of variation is at most "
                f"{number(float(np.median(cov)))}.",
            ),
        )
    )
    return Answer(
        verdict,
        scalars,
        {
            "largest_deviation": cumulative_shares(furthest, "largest_deviation"),
            "coefficient_of_variation": cumulative_shares(cov, "coefficient_of_variation"),
            "users": users.head(_MOST_USERS),
        },
        plots,
        (
            f"{count(users.height, 'user')} with at least two jobs.",
            "Size: cpus asked for. Standard deviations are those of the population.",
        ),
    )


@register("analysis", "resubmissions")
@study("Are jobs submitted again?", "3.5")
def resubmissions(workload: Workload) -> Answer | str:
    """Count submissions of jobs of one name; a name is an executable together with its user.

    Park's dissertation, section 3.5. Submissions per name, over the jobs whose
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
        for name, among in (("successful", ["successful"]), ("unsuccessful", list(UNSUCCESSFUL))):
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


HIGH: Final = 1.0
"""Coefficient of variation of the exponential distribution, above which variability is high."""


@register("analysis", "runtime_variability")
@study("Do similar jobs run equally long?", "4.1")
def runtime_variability(workload: Workload) -> Answer | str:
    """Coefficient of variation of runtimes within each user's jobs, and within each size.

    Park's dissertation, figures 4.2b and 4.2c. Groups of one job, or of no runtime
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
