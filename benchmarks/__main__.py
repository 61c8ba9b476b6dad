"""``python -m benchmarks``: run workloads, print a table, keep the figures, check the ranges."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth import growth_of_policies, growth_table
from benchmarks.measuring import Measurement, workloads
from benchmarks.ranges import departures


def main() -> int:
    """Exit status 1 if ``--check`` finds a ratio outside its range, and does so again."""
    known = workloads()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(known)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--check", action="store_true", help="fail if a ratio leaves its range")
    parser.add_argument(
        "--growth",
        choices=("short", "full", "policies"),
        help="how costs grow with the queue, with exponents",
    )
    arguments = parser.parse_args()
    if arguments.growth:
        is_full = arguments.growth == "full"
        of_policies = arguments.growth == "policies"
        for line in growth_of_policies() if of_policies else growth_table(full=is_full):
            print(line, flush=True)
        return 0
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no workload {unknown[0]!r}; there are {', '.join(known)}")
    measurements = _measured(arguments.names or list(known))
    if arguments.json:
        rows = [{**asdict(each), "ratio": each.ratio} for each in measurements]
        arguments.json.write_text(json.dumps(rows, indent=1))
    if not arguments.check:
        return 0
    found = _confirmed([each for each in measurements if any(departures([each]))])
    print("\n".join(found) or "all ratios are in their ranges", file=sys.stderr)
    return 1 if found else 0


def _confirmed(departed: Sequence[Measurement]) -> list[str]:
    """What leaves its range when it is measured once more as well: machines are busy at times."""
    if not departed:
        return []
    print("measured once more:", *departures(departed), sep="\n", file=sys.stderr)
    again = _measured(dict.fromkeys(each.name.split()[0] for each in departed))
    names = {each.name for each in departed}
    return list(departures([each for each in again if each.name in names]))


def _measured(names: Iterable[str]) -> list[Measurement]:
    measurements = []
    print(f"{'workload':30}{'seconds':>10}{'us each':>12}{'ratio':>9}  reference")
    for name in names:
        for each in workloads()[name]():
            print(
                f"{each.name:30}{each.seconds:10.4f}{each.unit_microseconds:12.2f}"
                f"{each.ratio:9.3f}  {each.reference}",
                flush=True,
            )
            measurements.append(each)
    return measurements


if __name__ == "__main__":
    sys.exit(main())
