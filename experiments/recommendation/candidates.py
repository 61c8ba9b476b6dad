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

GUARDS = ((1.5, 2.5, 3.0, 2), (1.5, 2.5, 3.0, 1), (1.0, 2.0, 2.5, 2), (2.0, 2.5, 3.0, 2))
"""Days after which the oldest job and after which every job goes first, bound of the wait in days,
and how many of the oldest jobs are protected."""

SHAKES = (0.97, 1.0, 1.03)
"""Factors on the guard's limits. A schedule is chaotic: one run says little about a candidate."""


def candidate(
    queue: str, predictor: str, guard: tuple[float, float, float, int], shake: float
) -> str:
    """Short form of one candidate with its guard's limits shaken."""
    oldest, age, bound, protected = guard
    limits = (
        f"oldest_limit_seconds={86_400 * oldest * shake:.0f},"
        f"age_limit_seconds={86_400 * age * shake:.0f},"
        f"wait_bound_seconds={86_400 * bound * shake:.0f}"
    )
    return f"guarded_backfilling(queue={queue},{limits},protected={protected}),{predictor}"


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
