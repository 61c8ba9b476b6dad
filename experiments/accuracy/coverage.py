"""Do stated ranges hold what they state? Over whole logs, in the first month, for large users.

usage: python experiments/accuracy/coverage.py TRACES [--held-out] [--predictor P ...]

TRACES is the folder with the logs. Without ``--held-out`` the development logs are evaluated, with
it those that nothing about ``calibrated`` was chosen on (decision page 0013 has the rule). For
every log and predictor a row: the CRPS over the mean runtime, and per stated range the share of
runtimes inside, in per cent: of all jobs, of those submitted in the first 30 days, the least and
the most of the ten users with most jobs and how many of these are more than three points off; then
the median width of the range over the median prediction. The last column is how many of the users'
shares would be off if every range held exactly and jobs were independent.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from accuracy import FILTERS, LOGS, Log

from foresail.evaluation.coverage import STATED, coverage_by_user, coverage_over_time
from foresail.evaluation.replaying import Evaluation, evaluate
from foresail.evaluation.scores import scores
from foresail.metrics.bootstrap import DAY_SECONDS
from foresail.model.short_form import part_of
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.reading import read

HELD_OUT = ("NASA-iPSC", "CEA-Curie", "MetaCentrum", "MetaCentrum-2013")
NEVER_USED = (
    Log("Philly", "philly/philly.csv.gz"),
    Log("Mustang", "gaia-100k/mustang-trace-2015-100k.csv.gz"),
    Log("Azure", "gaia-100k/azure-100k.csv.gz"),
    Log("PAI", "gaia-100k/pai-100k.csv.gz"),
)
PREDICTORS = ("combined", "calibrated")
MONTH_SECONDS = 30 * DAY_SECONDS
TOLERANCE = 0.03
DRAWS = 4000


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", type=Path, help="the folder with the logs")
    parser.add_argument("--held-out", action="store_true", help="the logs held out")
    parser.add_argument("--predictor", action="append", help="short form; may be repeated")
    asked = parser.parse_args(arguments)
    development = tuple(log for log in LOGS if log.name not in HELD_OUT)
    held_out = (*(log for log in LOGS if log.name in HELD_OUT), *NEVER_USED)
    heads = [f"{stated} %: all | month | users | off | width" for stated in STATED]
    print(f"| log | predictor | CRPS | {' | '.join(heads)} | by chance |")
    print("|---" * (4 + 5 * len(STATED)) + "|")
    for log in held_out if asked.held_out else development:
        if not (asked.traces / log.path).exists():
            print(f"| {log.name} | not there |")
            continue
        choices = [part_of("filter", name) for name in FILTERS]
        workload = apply_filters(
            read(asked.traces / log.path),
            [FilterChoice(part.entry.name, part.parameters) for part in choices],
        )
        for predictor in asked.predictor or PREDICTORS:
            row = cells(evaluate(workload, predictor, learning=log.learning))
            print(f"| {log.name} | `{predictor}` | {' | '.join(row)} |", flush=True)


def cells(evaluation: Evaluation) -> list[str]:
    """The numbers of one row."""
    told = scores(evaluation)
    month = coverage_over_time(evaluation, MONTH_SECONDS).row(0, named=True)
    users = coverage_by_user(evaluation)
    row = [f"{told.relative_crps.value:.3f}"]
    for stated in STATED:
        shares = users[f"covered_{stated}"]
        row.append(f"{100 * told.coverage[stated].value:.1f}")
        row.append(f"{100 * month[f'covered_{stated}']:.1f}")
        row.append(f"{100 * shares.min():.0f} to {100 * shares.max():.0f}" if users.height else "–")
        off = ((shares - stated / 100).abs() > TOLERANCE).sum()
        row.append(f"{off}" if users.height else "–")
        row.append(f"{told.width[stated]:.2f}")
    return [*row, f"{expected_off(users):.1f}" if users.height else "–"]


def expected_off(users: pl.DataFrame) -> float:
    """How many shares of users are off by chance alone, if every range holds exactly."""
    random = np.random.default_rng(0)
    total = 0.0
    for jobs in users["jobs"]:
        for stated in STATED:
            held = random.binomial(jobs, stated / 100, DRAWS) / jobs
            total += float((np.abs(held - stated / 100) > TOLERANCE).mean())
    return total


if __name__ == "__main__":
    main()
