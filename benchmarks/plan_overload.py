"""``python -m benchmarks.plan_overload [PENDING NODES [RACKS]]``: a cycle before too long a queue.

Each size in a process of its own, whose peak of memory is told: cycles of a scheduler before the
crowd of ``plan_growth``. All jobs wait on, also those that a cycle starts, so that no cycle is
easier than the first.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import replace
from typing import Final

import numpy as np

from benchmarks.plan_cycles import Watched
from benchmarks.plan_growth import Scene, planner, view_of

SIZES: Final = (
    (1_000, 12_583),
    (5_000, 12_583),
    (10_000, 12_583),
    (20_000, 12_583),
    (20_000, 50_000),
)
RACKS: Final = (8, 40)
_CYCLES: Final = 5
_CYCLE_SECONDS: Final = 4.0
_POLICY: Final = f"3sigma(cycle_seconds={_CYCLE_SECONDS:g})"


def main(pending: int, nodes: int, racks: int = RACKS[0]) -> None:
    """Processor time of the cycles (seconds), and the most memory that the process had."""
    planner(_POLICY).decide(view_of(Scene(256, 512)))  # compiled before anything is timed
    view = view_of(Scene(nodes, pending, racks=racks))
    watched = Watched(planner(_POLICY))
    for cycle in range(_CYCLES):
        watched.decide(replace(view, now=view.now + _CYCLE_SECONDS * cycle))
    median, longest = np.median(watched.processor_seconds), max(watched.processor_seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    left_out = watched.records[0].left_out
    print(
        f"{pending:>9,}{nodes:>9,}{racks:>7}{left_out:>10,}{median:>10.2f}{longest:>9.2f}{peak:>8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*map(int, sys.argv[1:4]))
    else:
        print("  waiting    nodes  racks  left out    median  longest     GB", flush=True)
        for racks in RACKS:
            for pending, nodes in SIZES:
                size = map(str, (pending, nodes, racks))
                subprocess.run([sys.executable, "-m", __spec__.name, *size], check=True)
