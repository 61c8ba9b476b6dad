"""The range in which each ratio must lie, with where it comes from (``ranges.toml``).

``python -m benchmarks.ranges RUN.json ...`` prints the file anew from the results of several runs.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.measuring import Measurement

RANGES: Final = Path(__file__).with_name("ranges.toml")
_SLACK: Final = 1.5
"""Beyond what was seen: machines differ, and so does what else they do."""


def departures(measurements: Sequence[Measurement]) -> Iterator[str]:
    """A sentence for each ratio outside its range, and for each without one."""
    ranges = tomllib.loads(RANGES.read_text())
    for each in measurements:
        allowed = ranges.get(each.name)
        if allowed is None:
            yield f"{each.name}: no range in {RANGES.name}"
        elif not allowed["low"] <= each.ratio <= allowed["high"]:
            yield (
                f"{each.name}: {each.ratio:.3g} x {each.reference}, "
                f"expected {allowed['low']} to {allowed['high']}"
            )


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _section(name: str, ratios: Sequence[float], made: str) -> str:
    spread = statistics.stdev(ratios) if len(ratios) > 1 else 0.0
    low, high = min(ratios) / _SLACK, max(ratios) * _SLACK
    return (
        f'["{name}"]\nlow = {_three_digits(low)}\nhigh = {_three_digits(high)}\n'
        f"average = {_three_digits(statistics.mean(ratios))}\nspread = {_three_digits(spread)}\n"
        f'made = "{made}"\n'
    )


def main(paths: Sequence[str]) -> None:
    """Print ranges from runs' results: the smallest / 1.5 and the largest x 1.5 of each ratio."""
    runs = [json.loads(Path(path).read_text()) for path in paths]
    made = (
        f"{datetime.date.today().isoformat()}, {len(runs)} runs, "
        f"{platform.machine()}, {os.cpu_count()} cores shared with other work"
    )
    names = dict.fromkeys(row["name"] for run in runs for row in run)
    print("# Ratios to the reference of the same run; see `python -m benchmarks.ranges`.\n")
    for name in names:
        ratios = [row["ratio"] for run in runs for row in run if row["name"] == name]
        print(_section(name, ratios, made))


if __name__ == "__main__":
    main(sys.argv[1:])
