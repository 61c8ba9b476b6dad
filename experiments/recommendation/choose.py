"""Choose the recommended policy by leave-one-out from the results of the campaign.

usage: python experiments/recommendation/choose.py FOLDER     (after ``foresail campaign report``)

A candidate's score on a log is the mean, over the shaken guards, of its reduction of the average
bounded slowdown against EASY; its longest wait is the longest of them against EASY's. For each log,
a candidate is chosen by the *other* logs: among those whose longest wait there is at most ``LIMIT``
times EASY's, and whose average score there is within ``NOISE`` of the best, the one with the
shortest longest wait. The figures shown are those of the log left out, for the candidate as written
(not shaken) and for all its shakes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from candidates import candidates

from foresail.control.policy import parse_policy

LIMIT = 1.25
NOISE = 0.015
"""What the score of one run of a candidate moves by when its guard's limits are shaken: candidates
that differ by less are not told apart by it, and the safer is taken."""


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


def choose(table: pl.DataFrame, noise: float) -> str:
    """The candidate that the logs of a table recommend."""
    over_logs = table.group_by("candidate").agg(
        pl.col("score").mean(), pl.col("longest_shaken").max()
    )
    allowed = over_logs.filter(pl.col("longest_shaken") <= LIMIT)
    alike = allowed.filter(pl.col("score") >= pl.col("score").max() - noise)
    order = alike.sort("longest_shaken", "score", "candidate", descending=[False, True, False])
    return str(order["candidate"][0])


def leave_one_out(table: pl.DataFrame, noise: float) -> pl.DataFrame:
    """For each log the candidate that the others choose, and what it does there."""
    rows = []
    for log in table["log"].unique(maintain_order=True):
        chosen = choose(table.filter(pl.col("log") != log), noise)
        here = table.filter((pl.col("log") == log) & (pl.col("candidate") == chosen))
        rows.append(here.row(0, named=True))
    return pl.DataFrame(rows)


def main(folder: Path) -> None:
    """Print the choice per log, its mean, and what all logs together recommend."""
    table = by_candidate(scores(pl.read_csv(folder / "results.csv")))
    for noise, rule in ((NOISE, "the safest within the noise"), (0.0, "the best score alone")):
        print(f"leave-one-out, {rule}:")
        show(leave_one_out(table, noise))
    print(
        f"mean score of all {table['candidate'].n_unique()} candidates: {table['score'].mean():.1%}"
    )
    print("what all five logs recommend:")
    show(table.filter(pl.col("candidate") == choose(table, NOISE)))


def show(rows: pl.DataFrame) -> None:
    """Print reductions and longest waits, as written and (shaken), and their mean and maximum."""
    total = {
        "log": "mean, max",
        "reduction": rows["reduction"].mean(),
        "score": rows["score"].mean(),
        "longest": rows["longest"].max(),
        "longest_shaken": rows["longest_shaken"].max(),
        "candidate": "",
    }
    for row in [*rows.iter_rows(named=True), total]:
        print(
            f"  {row['log']:10s} {row['reduction']:6.1%} ({row['score']:.1%})  longest wait "
            f"{row['longest']:.2f} ({row['longest_shaken']:.2f})  {row['candidate']}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
