"""Variation of the sizes of one user's jobs."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares
from foresail.model.registry import register
from foresail.model.words import count, number, percent
from foresail.traces.workload import Workload

_MOST_USERS: Final = 2000


@register("analysis", "user_variability")
@study("Does a user always ask for the same?", "3.4")
def user_variability(workload: Workload) -> Answer | str:
    """Variation of the cpus asked for within each user's jobs, and the furthest from the mean.

    Spec section 10, W9 (dissertation, section 3.4; golden value G22). The deviation of a user is
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
