"""Estimates from everything known at submission at once, and the schedules they make.

usage: python studies/knowledge/all_at_once.py TRACES [--log NAME ...]

Every estimator of ``estimating`` takes the place of ``similar``'s median at submission, under the
same policy as in ``ablation``. Per log: the average bounded slowdown against EASY's (less is a
gain), the longest wait against EASY's; in parentheses the summed absolute errors over the summed
runtimes, and the rank correlation (Spearman) of estimates with runtimes: over all jobs, within
users (the mean over users with fifty jobs, by their jobs) and between these users (of their
medians). Needs the extra ``learn``. The filtered logs record no waits: what is learned there is
learned as if every job had started at once, which flatters all rows alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from ablation import asked_logs, corrected, measured, rank_correlation, tell
from estimating import ESTIMATORS, Floats, estimated

from foresail.evaluation.replaying import evaluate
from foresail.traces.workload import Workload

FEWEST_OF_USER = 50


def by_user(workload: Workload, estimates: Floats) -> tuple[float, float]:
    """Rank correlation within users and between them."""
    jobs = pl.DataFrame(
        {
            "user": workload.jobs["user"],
            "estimate": estimates,
            "runtime": workload.runtime_seconds,
        }
    )
    users = (
        jobs.group_by("user")
        .agg(
            pl.len().alias("jobs"),
            pl.corr("estimate", "runtime", method="spearman").alias("within"),
            pl.median("estimate", "runtime"),
        )
        .filter(pl.col("jobs") >= FEWEST_OF_USER)
    )
    told_apart = users.filter(pl.col("within").is_not_nan())
    within = np.average(told_apart["within"].to_numpy(), weights=told_apart["jobs"].to_numpy())
    return float(within), rank_correlation(
        users["estimate"].to_numpy(), users["runtime"].to_numpy()
    )


def cells(workload: Workload) -> Iterator[tuple[str, float, str]]:
    """The estimator, the slowdown against EASY's, and the cell."""
    easy, easy_longest = measured(workload, "easy")
    medians = evaluate(workload, "similar").jobs["q50"].to_numpy()
    runtime = workload.runtime_seconds
    told = {
        "`similar`, from which the others learn": medians,
        "the same times what it was off by so far": corrected(
            workload, medians, [0] * len(runtime)
        ),
    }
    for name in (*told, *ESTIMATORS):
        estimates = told[name] if name in told else estimated(workload, medians, ESTIMATORS[name])
        tell(workload, estimates)
        slowdown, longest = measured(workload, "guarded,told")
        error = np.abs(estimates - runtime).sum() / runtime.sum()
        within, between = by_user(workload, estimates)
        ranks = f"{rank_correlation(estimates, runtime):.2f}, {within:.2f}, {between:.2f}"
        gain = slowdown / easy
        yield name, gain, f"{gain:.2f}, {longest / easy_longest:.2f} ({error:.3f}; {ranks})"


def main() -> None:
    """Print a table in Markdown."""
    logs = asked_logs(__doc__)
    tables = [list(cells(workload)) for workload in logs.values()]
    print(f"| estimate | mean slowdown | {' | '.join(logs)} |")
    print("|---" * (2 + len(logs)) + "|")
    for same in zip(*tables, strict=True):
        mean = np.mean([slowdown for _, slowdown, _ in same])
        print(f"| {same[0][0]} | {mean:.2f} | {' | '.join(cell for _, _, cell in same)} |")


if __name__ == "__main__":
    main()
