"""Planning ahead before more jobs than it has time for: a cycle beside one with a tenth of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.measuring import Measurement, benchmark, best_in_turns
from benchmarks.plan_growth import Scene, planner, view_of

_NODES = 12_583
_FEW = 2_000
_MANY = 20_000


@benchmark("overload")
def measure() -> Iterator[Measurement]:
    """20,000 waiting jobs against 2,000, on 12,583 nodes; each cycle from scratch."""
    few, many = (view_of(Scene(_NODES, pending)) for pending in (_FEW, _MANY))
    reference, seconds = best_in_turns(
        10.0,
        lambda: planner("3sigma").decide(few),
        lambda: planner("3sigma").decide(many),
        clock=time.process_time,
    )
    name = f"overload {_MANY} waiting"
    yield Measurement(name, seconds, f"{_FEW} waiting", reference, 1, "cycle")
