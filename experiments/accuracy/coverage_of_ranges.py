"""Do stated ranges hold what they state? Over whole logs, in the first month, for large users.

usage: python experiments/accuracy/coverage_of_ranges.py TRACES [--held-out | --stretched FACTOR]
       [--log NAME ...] [--predictor P ...]

TRACES is the folder with the logs. Without ``--held-out`` the development logs are evaluated, with
it those that nothing about ``calibrated`` was chosen on (decision page 0013 has the rule).
``--stretched`` multiplies the runtimes and requested times of the development logs: so it is known
later what held, as where jobs run for days. For every log and predictor a row: the CRPS over the
mean runtime, and per stated range the share of runtimes inside, in per cent: of all jobs, of those
submitted in the first 30 days, the least and the most of the ten users with most jobs and how many
of these are more than three points off; then the median width of the range over the median
prediction. The last columns are how many of the users' shares are off, of how many, and how many
would be if every range held exactly and jobs were independent: on average, and in 39 of 40 cases at
most.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from accuracy import FILTERS, LOGS, Log
from numpy.typing import NDArray

from foresail.evaluation.replaying import Evaluation, evaluate
from foresail.evaluation.scores import scores
from foresail.evaluation.tables import STATED, coverage_by_user, coverage_over_time
from foresail.metrics.statistics import DAY_SECONDS
from foresail.model.short_form import part_of
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.reading import read
from foresail.traces.workload import Workload

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
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--held-out", action="store_true", help="the logs held out")
    which.add_argument("--stretched", type=float, default=1.0, help="how many times as long")
    parser.add_argument("--log", action="append", help="of these logs; may be repeated")
    parser.add_argument("--predictor", action="append", help="short form; may be repeated")
    asked = parser.parse_args(arguments)
    development = tuple(log for log in LOGS if log.name not in HELD_OUT)
    held_out = (*(log for log in LOGS if log.name in HELD_OUT), *NEVER_USED)
    heads = [f"{stated} %: all | month | users | off | width" for stated in STATED]
    print(f"| log | predictor | CRPS | {' | '.join(heads)} | users' shares off | by chance |")
    print("|---" * (5 + 5 * len(STATED)) + "|")
    for log in held_out if asked.held_out else development:
        if asked.log and log.name not in asked.log:
            continue
        if not (asked.traces / log.path).exists():
            print(f"| {log.name} | not there |")
            continue
        choices = [part_of("filter", name) for name in FILTERS]
        workload = apply_filters(
            read(asked.traces / log.path),
            [FilterChoice(part.entry.name, part.parameters) for part in choices],
        )
        workload = stretched(workload, asked.stretched)
        for predictor in asked.predictor or PREDICTORS:
            row = cells(evaluate(workload, predictor, learning=log.learning))
            print(f"| {log.name} | `{predictor}` | {' | '.join(row)} |", flush=True)


def stretched(workload: Workload, factor: float) -> Workload:
    """The same jobs, submitted and started as recorded, that run and ask for so many times as long.

    Only how far a log's waits and arrivals go with its runtimes is not as it would be.
    """
    longer = [pl.col(name) * factor for name in ("runtime_seconds", "requested_seconds")]
    return workload.with_jobs(workload.jobs.with_columns(*longer))


def cells(evaluation: Evaluation) -> list[str]:
    """The numbers of one row."""
    told = scores(evaluation)
    month = coverage_over_time(evaluation, MONTH_SECONDS).row(0, named=True)
    users = coverage_by_user(evaluation)
    row = [f"{told.relative_crps.value:.3f}"]
    total = 0
    for stated in STATED:
        shares = users[f"covered_{stated}"]
        row.append(f"{100 * told.coverage[stated].value:.1f}")
        row.append(f"{100 * month[f'covered_{stated}']:.1f}")
        row.append(f"{100 * shares.min():.0f} to {100 * shares.max():.0f}" if users.height else "–")
        off = int(((shares - stated / 100).abs() > TOLERANCE).sum())
        total += off
        row.append(f"{off}" if users.height else "–")
        row.append(f"{told.width[stated]:.2f}")
    if not users.height:
        return [*row, "–", "–"]
    chance = off_by_chance(users["jobs"].to_list())
    most = np.quantile(chance, 39 / 40, method="inverted_cdf")
    of_all = f"{total} of {users.height * len(STATED)}"
    return [*row, of_all, f"{chance.mean():.1f}, at most {most:.0f}"]


def off_by_chance(jobs: Sequence[int]) -> NDArray[np.int64]:
    """How many shares of users are off by chance alone, if every range holds exactly.

    Parameters
    ----------
    jobs
        How many jobs each user has.

    Returns
    -------
    Array
        A number per draw. Ranges lie within each other, so a user's shares are drawn together: how
        many runtimes are in the first range, between it and the next, and so on.
    """
    random = np.random.default_rng(0)
    stated = np.array(list(STATED)) / 100
    between = np.diff([0.0, *stated, 1.0])
    off = np.zeros(DRAWS, np.int64)
    for count in jobs:
        inside = random.multinomial(count, between, DRAWS)[:, : stated.size].cumsum(axis=1) / count
        off += (np.abs(inside - stated) > TOLERANCE).sum(axis=1)
    return off


if __name__ == "__main__":
    main()
