"""Write the campaign file of the recommendation study: the candidates, and EASY to compare with.

usage: python experiments/recommendation/candidates.py LOG ... > recommendation.toml
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

QUEUES = (
    "max(q50,10)*sqrt(cpus)/probe",
    "max(q50,10)*cpus/probe",
    "max(q50,10)/probe",
    "max(q25,10)*sqrt(cpus)/probe",
)
"""Likely runtime weighted by width in four ways."""

PREDICTORS = (
    "similar(decays=[0.999,0.95,0.9,0.9,0.8])",
    "similar(decays=[0.999,0.9,0.9,0.9,0.9])",
    "recent(partial=true)",
)

GUARDS = ((0.7, 1.0), (0.8, 0.95), (0.8, 1.0), (0.8, 1.05), (0.9, 1.0))
"""Shares of the longest wait under EASY so far: of patience, and of the bound."""

SHAKES = (0.97, 1.0, 1.03)
"""Factors on the guard's shares. A schedule is chaotic: one run says little about a candidate."""


def candidate(queue: str, predictor: str, guard: tuple[float, float], shake: float) -> str:
    """Short form of one candidate with its guard's shares shaken."""
    patience, bound = (share * shake for share in guard)
    shares = f"patience={patience:.4f},bound={bound:.4f}"
    return f"guarded_backfilling(queue={queue},{shares}),{predictor}"


def candidates() -> dict[str, list[str]]:
    """Short forms of each candidate under all shakes, by the one that is not shaken."""
    return {
        candidate(*parts, 1.0): [candidate(*parts, shake) for shake in SHAKES]
        for parts in itertools.product(QUEUES, PREDICTORS, GUARDS)
    }


if __name__ == "__main__":
    policies = ["easy", "guarded_backfilling,clairvoyant", *itertools.chain(*candidates().values())]
    print("policies = [")
    for policy in policies:
        print(f"    '{policy}',")
    print("]")
    for log in map(Path, sys.argv[1:]):
        print(f"\n[[logs]]\npath = '{log.resolve()}'")
