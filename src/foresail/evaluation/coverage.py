"""Whether stated ranges hold what they state: over time, by user, and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from foresail.evaluation.replaying import Evaluation
from foresail.metrics.bootstrap import WEEK_SECONDS

STATED: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {50: ("q25", "q75"), 80: ("q10", "q90"), 90: ("q05", "q95"), 95: ("q025", "q975")}
)
"""The stated ranges: per cent, and the quantiles at their ends."""


def coverage_over_time(
    evaluation: Evaluation, stretch_seconds: float = WEEK_SECONDS
) -> pl.DataFrame:
    """What stated ranges cover, over time since the first submission.

    Returns
    -------
    DataFrame
        A row per stretch (a week) with jobs: ``stretch`` (1 is the first), ``jobs``, and for every
        stated per cent ``covered_90`` (share of the truths inside, ends included) and
        ``relative_width_90`` (median width over the median prediction, null if that is 0).
    """
    begin = pl.col("submit_seconds").min()
    stretch = ((pl.col("submit_seconds") - begin) / stretch_seconds).floor().cast(pl.Int64) + 1
    grouped = evaluation.jobs.with_columns(stretch=stretch).group_by("stretch")
    return grouped.agg(pl.len().alias("jobs"), *_columns()).sort("stretch")


def coverage_by_user(evaluation: Evaluation, most: int = 10) -> pl.DataFrame:
    """What stated ranges cover for the users with most jobs, these first.

    The columns are those of ``coverage_over_time``, with ``user`` instead of ``stretch``. Jobs
    without a user are left out.
    """
    return (
        evaluation.jobs.filter(pl.col("user").is_not_null())
        .group_by("user")
        .agg(pl.len().alias("jobs"), *_columns())
        .sort("jobs", "user", descending=[True, False])
        .head(most)
    )


def _columns() -> list[pl.Expr]:
    middle = pl.col("predicted").median()
    covered = [
        pl.col("actual").is_between(low, high).mean().alias(f"covered_{stated}")
        for stated, (low, high) in STATED.items()
    ]
    widths = [
        pl.when(middle > 0)
        .then((pl.col(high) - pl.col(low)).median() / middle)
        .alias(f"relative_width_{stated}")
        for stated, (low, high) in STATED.items()
    ]
    return covered + widths
