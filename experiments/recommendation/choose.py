"""Choose the recommended policy by leave-one-out from the results of the campaign.

usage: python experiments/recommendation/choose.py FOLDER     (after ``foresail campaign report``)

A candidate's score on a log is the mean, over its shakes, of its reduction of the average bounded
slowdown against EASY. Its excess is the longest of their longest waits over what is allowed: 1.2
times EASY's longest wait, or an hour more where that is larger. For each log, a candidate is chosen
by the *other* logs that have a queue (EASY's slowdown above 2): among those whose average score is
within ``NOISE`` of the best, the one with the least worst excess. The figures shown are those of
the log left out, for the candidate as written and (in parentheses) for all its shakes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
from candidates import LOGS, candidates

from foresail.control.policy import parse_policy

FIVE = tuple(LOGS)[:5]
NOISE = 0.03
"""What an average score may cost: of candidates that differ by less, the safest is taken. Shaking a
guard's shares by three percent moves the score of one log by as much, and that of CEA-Curie by ten.
"""


def scores(results: pl.DataFrame) -> pl.DataFrame:
    """Reduction, longest wait against EASY's and against what is allowed, by log and policy."""
    easy = results.filter(pl.col("policy") == "easy").select(
        "log",
        easy_slowdown="average_bounded_slowdown",
        easy_wait="max_wait_seconds",
    )
    allowed = pl.max_horizontal(1.2 * pl.col("easy_wait"), pl.col("easy_wait") + 3600.0)
    return results.join(easy, on="log", maintain_order="left").select(
        "log",
        "policy",
        "easy_slowdown",
        reduction=1 - pl.col("average_bounded_slowdown") / pl.col("easy_slowdown"),
        longest=pl.col("max_wait_seconds") / pl.max_horizontal(pl.col("easy_wait"), 1.0),
        excess=pl.col("max_wait_seconds") / allowed,
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
        scored.join(shaken, on="policy", maintain_order="left")
        .drop_nulls("candidate")
        .group_by("log", "candidate", maintain_order=True)
        .agg(
            pl.col("easy_slowdown").first(),
            score=pl.col("reduction").mean(),
            longest_shaken=pl.col("longest").max(),
            excess=pl.col("excess").max(),
            reduction=pl.col("reduction").filter(as_written).first(),
            longest=pl.col("longest").filter(as_written).first(),
            excess_as_written=pl.col("excess").filter(as_written).first(),
        )
    )


def choose(table: pl.DataFrame) -> str:
    """The candidate that the logs of a table recommend."""
    over_logs = (
        table.filter(pl.col("easy_slowdown") > 2.0)
        .group_by("candidate")
        .agg(pl.col("score").mean(), pl.col("excess").max())
    )
    alike = over_logs.filter(pl.col("score") >= pl.col("score").max() - NOISE)
    order = alike.sort("excess", "score", "candidate", descending=[False, True, False])
    return str(order["candidate"][0])


def leave_one_out(table: pl.DataFrame) -> pl.DataFrame:
    """For each log the candidate that the others choose, and what it does there."""
    rows = []
    for log in table["log"].unique(maintain_order=True):
        chosen = choose(table.filter(pl.col("log") != log))
        here = table.filter((pl.col("log") == log) & (pl.col("candidate") == chosen))
        rows.append(here.row(0, named=True))
    return pl.DataFrame(rows)


def main(folder: Path) -> None:
    """Print the choice per log, its means, and what all logs together recommend."""
    table = by_candidate(scores(pl.read_csv(folder / "results.csv")))
    print("leave-one-out:")
    show(leave_one_out(table))
    five = table.filter(pl.col("log").is_in(FIVE))
    count = table["candidate"].n_unique()
    print(f"mean score of all {count} candidates on the five: {five['score'].mean():.1%}")
    print("what all logs recommend:")
    show(table.filter(pl.col("candidate") == choose(table)))


def show(rows: pl.DataFrame) -> None:
    """Print reductions and longest waits, as written and (shaken), and their means and maxima."""
    for row in rows.iter_rows(named=True):
        within = "" if row["excess_as_written"] <= 1.0 else " too long"
        print(
            f"  {row['log']:16s} EASY {row['easy_slowdown']:6.1f}  less "
            f"{row['reduction']:6.1%} ({row['score']:6.1%})  longest wait {row['longest']:.2f} "
            f"({row['longest_shaken']:.2f}){within}  {row['candidate']}"
        )
    queues = rows.filter(pl.col("easy_slowdown") > 2.0)
    for name, some in (("the five", queues.filter(pl.col("log").is_in(FIVE))), ("all", queues)):
        print(
            f"  mean of {name}: {some['reduction'].mean():.1%} ({some['score'].mean():.1%}), "
            f"longest {some['longest'].max():.2f} ({some['longest_shaken'].max():.2f})"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
