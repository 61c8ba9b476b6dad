"""The range in which each ratio must lie, with where it comes from (``ranges.toml``).

``python -m benchmarks.ranges RUN.json ...`` prints the file anew from the results of several runs;
what they did not measure stays. With ``--widen`` a range also keeps what it allowed before: the
runs were of another machine, or of one that was less busy.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.measuring import Measurement

RANGES: Final = Path(__file__).with_name("ranges.toml")
_SLACK: Final = 1.5
"""Beyond what was seen: machines differ, and so does what else they do."""


def departures(measurements: Sequence[Measurement]) -> Iterator[str]:
    """A sentence for each ratio above its range, and for each without one.

    One below it is no fault: the reference may suffer more from what else the machine does.
    """
    ranges = tomllib.loads(RANGES.read_text())
    for each in measurements:
        allowed = ranges.get(each.name)
        if allowed is None:
            yield f"{each.name}: no range in {RANGES.name}"
        elif not each.ratio <= allowed["high"]:
            yield (
                f"{each.name}: {each.ratio:.3g} x {each.reference}, "
                f"expected at most {allowed['high']}"
            )


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _section(name: str, values: Mapping[str, float | str]) -> str:
    lines = (f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    return f'["{name}"]\n' + "".join(lines)


def _measured(
    ratios: Sequence[float], made: str, before: Mapping[str, Any] | None
) -> dict[str, float | str]:
    low, high = min(ratios) / _SLACK, max(ratios) * _SLACK
    if before is not None:
        low, high = min(low, before["low"]), max(high, before["high"])
    spread = statistics.stdev(ratios) if len(ratios) > 1 else 0.0
    figures = {"low": low, "high": high, "average": statistics.mean(ratios), "spread": spread}
    return {**{key: _three_digits(value) for key, value in figures.items()}, "made": made}


def main(arguments: Sequence[str]) -> None:
    """Print ranges from runs' results: the smallest / 1.5 and the largest x 1.5 of each ratio."""
    paths = [each for each in arguments if each != "--widen"]
    runs = [json.loads(Path(path).read_text()) for path in paths]
    ranges = tomllib.loads(RANGES.read_text())
    made = (
        f"{datetime.date.today().isoformat()}, {len(runs)} runs, "
        f"{platform.machine()}, {os.cpu_count()} cores shared with other work"
    )
    if "--widen" in arguments:
        made += "; and what was allowed before"
    print("# Ratios to the reference of the same run; see `python -m benchmarks.ranges`.")
    for name in dict.fromkeys([*ranges, *(row["name"] for run in runs for row in run)]):
        ratios = [row["ratio"] for run in runs for row in run if row["name"] == name]
        before = ranges.get(name) if "--widen" in arguments else None
        print()
        print(_section(name, _measured(ratios, made, before) if ratios else ranges[name]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
