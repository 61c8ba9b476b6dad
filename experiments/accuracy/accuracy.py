"""Evaluate predictors on every log that names users, and tabulate how good they are.

usage: python experiments/accuracy/accuracy.py TRACES OUTPUT [--predictor P ...] [--log NAME ...]

TRACES is the folder with the logs (``LOGS`` has their places in it), OUTPUT one for the results. A
result that is there already is not computed again, so that an interrupted study goes on where it
stopped, and a further predictor costs only its own time. At the end OUTPUT has ``accuracy.csv`` (a
row per log and predictor, all scores) and ``accuracy-tables.txt`` (for the documentation).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from foresail.evaluation.replaying import evaluate
from foresail.evaluation.scores import scores
from foresail.model.short_form import PlugIn, part_of
from foresail.model.whole_files import make_folder, write_whole
from foresail.predictors.training import Learning
from foresail.traces.filtering import FilterChoice, apply_filters
from foresail.traces.reading import read
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class Log:
    """A log by the name it has in the tables; where it is; how its jobs are learned."""

    name: str
    path: str
    learning: Learning = "on_completion"


LOGS = (
    Log("KTH-SP2", "pwa/KTH-SP2-1996-2.swf.gz"),
    Log("CTC-SP2", "predictsim-sc15/CTC-SP2.filtered.swf.gz"),
    Log("SDSC-SP2", "predictsim-sc15/SDSC-SP2.filtered.swf.gz"),
    Log("SDSC-BLUE", "pwa/SDSC-BLUE-2000-4.2-cln.swf.gz"),
    Log("CEA-Curie", "pwa/CEA-Curie-2011-2.1-cln.swf.gz"),
    Log("LLNL-Thunder", "pwa/LLNL-Thunder-2007-1.1-cln.swf.gz"),
    Log("MetaCentrum", "pwa/METACENTRUM-2009-2.swf.gz"),
    Log("MetaCentrum-2013", "metacentrum-wagap-2013/wagap-2013.swf.gz"),
    Log("LCG", "pwa/LCG-2005.swf.gz"),
    Log("NASA-iPSC", "pwa/NASA-iPSC-1993-3.1-cln.swf.gz"),
    Log("Google-sample", "google-3sigma-sample/test.3SigmaWarmUp.gz", "in_order"),
)
"""The Google sample knows submissions to the hour and no waits, so it is learned in order."""

PREDICTORS = (
    "requested",
    "recent",
    "regression",
    "quantile_regression",
    "similar",
    "jvu",
    "history",
    "calibrated",
    "combined",
)

FILTERS = ("fill_processors", "drop_no_runtime")

_TABLES = (
    ("Estimates within a factor of two, per cent", "within_factor_two", 100.0, 1, 1),
    ("NMAE: summed absolute errors over summed runtimes", "nmae", 1.0, 3, -1),
    ("NMAE of the median of each belief", "nmae_of_median", 1.0, 3, -1),
    ("Medians within a factor of two, per cent", "within_factor_two_of_median", 100.0, 1, 1),
    ("CRPS over the mean runtime", "relative_crps", 1.0, 3, -1),
    ("Runtimes within the stated 80 % interval, per cent", "coverage_80", 100.0, 1, 0),
    ("Runtimes within the stated 90 % interval, per cent", "coverage_90", 100.0, 1, 0),
    ("Under-estimates, per cent", "errors_under", 100.0, 1, 0),
    ("Microseconds a job, median", "median_seconds", 1e6, 1, 0),
    ("Microseconds a job, 99.9 % quantile", "p999_seconds", 1e6, 0, 0),
)
"""Heading, column, factor, decimals, and whether less (-1) or more (1) is better."""


_COMPOSITES = ("combined", "calibrated")
_GAINS = (
    ("CRPS", "relative_crps", -1),
    ("NMAE of the median", "nmae_of_median", -1),
    ("medians within a factor of two", "within_factor_two_of_median", 1),
)
"""What is compared of them: heading, column, and whether less (-1) or more (1) is better."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not there yet, then write the tables."""
    asked = _parser().parse_args(arguments)
    names = asked.log or [log.name for log in LOGS]
    parts = [part_of("predictor", text) for text in asked.predictor or PREDICTORS]
    results = asked.output / "results"
    make_folder(results)
    rows = []
    for log in (log for log in LOGS if log.name in names):
        rows += _rows_of(log, parts, asked.traces, results)
    if not rows:
        sys.exit("accuracy: no log was found")
    table = pl.DataFrame(rows, infer_schema_length=None)
    write_whole(asked.output / "accuracy.csv", table.write_csv().encode())
    write_whole(asked.output / "accuracy-tables.txt", markdown(table).encode())


def markdown(table: pl.DataFrame) -> str:
    """Tables for the documentation: a row per log, a column per predictor, the best in bold."""
    predictors = table["predictor"].unique(maintain_order=True).to_list()
    blocks = []
    for heading, column, factor, decimals, better in _TABLES:
        lines = [
            f"**{heading}**",
            "",
            f"| log | jobs | {' | '.join(f'`{name}`' for name in predictors)} |",
            f"|---|---{'|---' * len(predictors)}|",
        ]
        for rows in table.partition_by("log", maintain_order=True):
            values = dict(rows.select("predictor", column).iter_rows())
            if column.startswith("coverage"):
                stating = dict(rows.select("predictor", "ranges").iter_rows())
                values = {name: v for name, v in values.items() if stating[name]}
            said = {
                name: f"{factor * value:,.{decimals}f}"
                for name, value in values.items()
                if value is not None
            }
            best = _best({name: values[name] for name in said}, better)
            cells = [
                f"**{said[name]}**" if said.get(name) == said.get(best, "") else said.get(name, "–")
                for name in predictors
            ]
            jobs = int(rows["jobs"].to_numpy().max())
            lines.append(f"| {rows['log'][0]} | {jobs:,} | {' | '.join(cells)} |")
        blocks.append("\n".join(lines) + "\n")
    if _COMPOSITES[0] in predictors and not set(predictors) <= set(_COMPOSITES):
        blocks.append(_gains(table))
    return "\n".join(blocks)


def _gains(table: pl.DataFrame) -> str:
    """What combining gains on each log over the best predictor that is not combined."""
    heads = [heading for heading, _, _ in _GAINS]
    lines = [
        "**`combined` against the best of the others, which may be another one on each log**",
        "",
        f"| log | {' | '.join(heads)} |",
        f"|---{'|---' * len(heads)}|",
    ]
    for rows in table.partition_by("log", maintain_order=True):
        cells = []
        for _, column, better in _GAINS:
            values = dict(rows.select("predictor", column).iter_rows())
            others = {name: v for name, v in values.items() if name not in _COMPOSITES}
            best = _best(others, better)
            change = 100.0 * (values[_COMPOSITES[0]] / others[str(best)] - 1.0)
            cells.append(f"{change:+.1f} % (`{best}`)".replace("-", "\u2212"))
        lines.append(f"| {rows['log'][0]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _best(values: dict[str, float], better: int) -> str | None:
    if not better or not values:
        return None
    return max(values, key=lambda name: better * values[name])


def _rows_of(
    log: Log, parts: Sequence[PlugIn], traces: Path, results: Path
) -> list[dict[str, Any]]:
    """A row per predictor: read where it is there, computed where not."""
    workload: Workload | None = None
    rows = []
    for part in parts:
        file = results / f"{log.name}--{re.sub('[^A-Za-z0-9_.=-]+', '_', part.text)}.json"
        if not file.exists():
            if workload is None:
                if not (traces / log.path).exists():
                    print(f"accuracy: {log.path} is not there, left out", file=sys.stderr)
                    return []
                workload = _load(traces / log.path)
            begin = time.perf_counter()
            told = scores(evaluate(workload, part, learning=log.learning))
            row = {"log": log.name, **told.as_row()}
            print(f"{log.name}, {part.text}: {time.perf_counter() - begin:.1f} s", file=sys.stderr)
            write_whole(file, json.dumps(row, indent=1).encode())
        rows.append(json.loads(file.read_text("utf-8")))
    return rows


def _load(path: Path) -> Workload:
    choices = []
    for text in FILTERS:
        part = part_of("filter", text)
        choices.append(FilterChoice(part.entry.name, part.parameters))
    return apply_filters(read(path), choices)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", type=Path, help="the folder with the logs")
    parser.add_argument("output", type=Path, help="the folder for the results")
    parser.add_argument("--predictor", action="append", help="short form; may be repeated")
    parser.add_argument(
        "--log",
        action="append",
        choices=[log.name for log in LOGS],
        help="only this log; may be repeated",
    )
    return parser


if __name__ == "__main__":
    main()
