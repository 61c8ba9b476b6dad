"""Write the campaign file of the recommendation study: the candidates, and EASY to compare with.

usage: python experiments/recommendation/candidates.py TRACES GENERATED > recommendation.toml

TRACES is the folder with the logs (``LOGS`` has their places in it), GENERATED the one with the two
logs that README.md has the commands of.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

LOGS = {
    "KTH-SP2": "predictsim-sc15/KTH-SP2.filtered.swf.gz",
    "CTC-SP2": "predictsim-sc15/CTC-SP2.filtered.swf.gz",
    "SDSC-SP2": "predictsim-sc15/SDSC-SP2.filtered.swf.gz",
    "SDSC-BLUE": "predictsim-sc15/SDSC-BLUE.filtered.swf.gz",
    "CEA-Curie": "predictsim-sc15/CEA-Curie.filtered.swf.gz",
    "LLNL-Thunder": "pwa/LLNL-Thunder-2007-1.1-cln.swf.gz",
    "MetaCentrum": "pwa/METACENTRUM-2009-2.swf.gz",
    "MetaCentrum-2013": "metacentrum-wagap-2013/wagap-2013.swf.gz",
    "NASA-iPSC": "pwa/NASA-iPSC-1993-3.1-cln.swf.gz",
}
"""The first five are those of the published study."""

PROCESSORS = {"MetaCentrum": 806}
"""Of machines that the log does not tell."""

GENERATED = ("demonstration", "crowded")

QUEUES = (
    "max(q50,10)/probe",
    "max(q50,10)*sqrt(cpus)/probe",
    "sqrt(max(predicted,10)/urgency)/probe",
)
"""Likely runtime, the same weighted by width, and by how much waiting is likely to cost."""

PREDICTOR = "similar"

GUARDS = ((0.6, 0.8), (0.7, 0.8), (0.7, 0.9), (0.8, 0.9), (0.8, 1.0), (0.9, 1.0))
"""Shares of the longest wait under EASY so far: of patience, and of the bound."""

SHAKES = (0.97, 1.0, 1.03)
"""Factors on the guard's shares. A schedule is chaotic: one run says little about a candidate."""


def candidate(queue: str, guard: tuple[float, float], shake: float) -> str:
    """Short form of one candidate with its guard's shares shaken."""
    patience, bound = (share * shake for share in guard)
    shares = f"patience={patience:.4f},bound={bound:.4f}"
    return f"guarded_backfilling(queue={queue},{shares}),{PREDICTOR}"


def candidates() -> dict[str, list[str]]:
    """Short forms of each candidate under all shakes, by the one that is not shaken."""
    return {
        candidate(*parts, 1.0): [candidate(*parts, shake) for shake in SHAKES]
        for parts in itertools.product(QUEUES, GUARDS)
    }


def main(traces: Path, generated: Path) -> None:
    """Print the campaign file."""
    print("policies = [")
    for policy in ["easy", *itertools.chain(*candidates().values())]:
        print(f"    '{policy}',")
    print("]")
    paths = {name: traces / path for name, path in LOGS.items()}
    paths |= {name: generated / name for name in GENERATED}
    for name, path in paths.items():
        print(f"\n[[logs]]\nname = '{name}'\npath = '{path.resolve()}'")
        if name in PROCESSORS:
            print(f"processors = {PROCESSORS[name]}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
