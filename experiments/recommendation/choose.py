"""Choose the recommended policy by leave-one-out from the results of the campaign.

usage: python experiments/recommendation/choose.py FOLDER     (after ``foresail campaign report``)

A candidate's score on a log is the mean, over the shaken guards, of its reduction of the average
bounded slowdown against EASY; its longest wait is the longest of them against EASY's. For each log,
the candidate is chosen that scores best on average on the *other* logs among those whose longest
wait there is at most ``LIMIT`` times EASY's; the figures shown are those of the log left out, for
the candidate as written (not shaken) and as the mean over the shakes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from candidates import candidates

from foresail.control.policy import parse_policy

LIMIT = 1.25


def scores(results: pl.DataFrame) -> pl.DataFrame:
    """Reduction and longest wait against EASY, a row per log and policy."""
    easy = results.filter(pl.col("policy") == "easy").select(
        "log",
        easy_slowdown="average_bounded_slowdown",
        easy_wait="max_wait_seconds",
    )
    return results.join(easy, on="log").select(
        "log",
        "policy",
        reduction=1 - pl.col("average_bounded_slowdown") / pl.col("easy_slowdown"),
        longest=pl.col("max_wait_seconds") / pl.col("easy_wait"),
    )


def by_candidate(scored: pl.DataFrame) -> pl.DataFrame:
    """The same for candidates: means and maxima over the shakes, and the one as written."""
    shaken = pl.DataFrame(
        [
            {"candidate": parse_policy(name).text, "policy": parse_policy(policy).text}
            for name, policies in candidates().items()
            for policy in policies
        ]
    )
    as_written = pl.col("policy") == pl.col("candidate")
    return (
        scored.join(shaken, on="policy")
        .group_by("log", "candidate", maintain_order=True)
        .agg(
            score=pl.col("reduction").mean(),
            longest_shaken=pl.col("longest").max(),
            reduction=pl.col("reduction").filter(as_written).first(),
            longest=pl.col("longest").filter(as_written).first(),
        )
    )


def leave_one_out(table: pl.DataFrame) -> pl.DataFrame:
    """For each log the candidate that the others choose, and what it does there."""
    rows = []
    for log in table["log"].unique(maintain_order=True):
        others = table.filter(pl.col("log") != log).group_by("candidate").agg(
            score=pl.col("score").mean(), longest=pl.col("longest_shaken").max()
        )
        allowed = others.filter(pl.col("longest") <= LIMIT)
        chosen = allowed.sort("score", "candidate", descending=[True, False])["candidate"][0]
        rows.append(
            table.filter((pl.col("log") == log) & (pl.col("candidate") == chosen)).row(0, named=True)
        )
    return pl.DataFrame(rows)


def main(folder: Path) -> None:
    """Print the choice per log, its mean, and what all logs together recommend."""
    table = by_candidate(scores(pl.read_csv(folder / "results.csv")))
    chosen = leave_one_out(table)
    for row in chosen.iter_rows(named=True):
        print(
            f"{row['log']:10s} reduction {row['reduction']:6.1%} (mean of shakes {row['score']:6.1%})"
            f"  longest wait {row['longest']:.2f} ({row['longest_shaken']:.2f})  {row['candidate']}"
        )
    print(f"leave-one-out mean: {chosen['reduction'].mean():.1%}, shaken {chosen['score'].mean():.1%}")
    overall = (
        table.group_by("candidate")
        .agg(
            pl.col("score").mean(),
            pl.col("reduction").mean(),
            pl.col("longest_shaken").max(),
            pl.col("longest").max(),
        )
        .sort("score", descending=True)
    )
    print(f"mean over all {overall.height} candidates: {overall['score'].mean():.1%}")
    for row in overall.filter(pl.col("longest_shaken") <= LIMIT).head(3).iter_rows(named=True):
        print(
            f"all five logs: {row['score']:.1%} (as written {row['reduction']:.1%}), longest wait "
            f"{row['longest_shaken']:.2f} ({row['longest']:.2f}): {row['candidate']}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
