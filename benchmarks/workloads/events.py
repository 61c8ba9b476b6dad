"""The event engine, which live clusters share, against the compiled replay of the same jobs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay
from foresail.simulator.simulate import simulate_by_events


@benchmark("events")
def measure() -> Iterator[Measurement]:
    """Two events a job: its submission and its end."""
    workload = logs.generated(1_000)
    policy = parse_policy("easy")
    seconds, reference = best_in_turns(
        1.0, lambda: simulate_by_events(workload, policy), lambda: replay(workload, policy)
    )
    yield Measurement(
        "events easy", seconds, "compiled replay", reference, 2 * len(workload), "event"
    )
