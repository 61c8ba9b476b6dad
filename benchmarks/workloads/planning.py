"""Planning ahead: what cycles take, with the solver's share apart, and how good their plans are.

Each run is measured in processor time: on a busy machine the wall also measures its neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.measuring import Measurement, benchmark
from benchmarks.plan_cycles import Cycles, e2e, gs_het, scalability
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay
from foresail.traces.workload import Workload


@benchmark("planning")
def measure() -> Iterator[Measurement]:
    """E2E on 256 nodes, 4,000 jobs an hour on 12,583 nodes, GS_HET on 10,000 nodes."""
    e2e(hours=0.1)  # kernels are compiled before anything is timed
    yield from _measured("planning e2e", e2e())
    yield from _measured("planning scalability", scalability())
    yield from _measured("planning gs_het", gs_het())


def _measured(name: str, run: Cycles) -> Iterator[Measurement]:
    """A cycle's median and slowest hundredth, and the parts of all cycles, beside one replay."""
    print(run.sentence(), flush=True)
    reference = min(_replay_seconds(run.workload) for _ in range(20))
    seconds = run.processor_seconds
    median, slow = np.quantile(seconds, (0.5, 0.99)).tolist()
    of = partial(
        Measurement, reference="compiled replay", reference_seconds=reference, unit="cycle"
    )
    yield of(f"{name} median", median, count=1)
    yield of(f"{name} slowest hundredth", slow, count=1)
    busy = seconds.sum() / run.of("cycle_seconds").sum()
    solving = run.of("solver_seconds") + run.of("pricing_seconds")
    for part, wall in (("solver", solving), ("building", run.of("building_seconds"))):
        yield of(f"{name} {part}", float(wall.sum() * busy), count=seconds.size)


def _replay_seconds(workload: Workload) -> float:
    began = time.thread_time()
    replay(workload, parse_policy("easy"))
    return time.thread_time() - began
