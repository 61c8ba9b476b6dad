"""The event engine, which live clusters share, against the compiled replay of the same jobs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.log import MemoryLog
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay
from foresail.simulator.simulate import manifest, simulate_by_events
from foresail.traces.workload import Workload

_STREAM = 2_000
"""Jobs that come one by one, while as many wait."""


@benchmark("events")
def measure() -> Iterator[Measurement]:
    """Two events a job: its submission and its end."""
    policy = parse_policy("easy")

    def against_replay(name: str, workload: Workload) -> Measurement:
        seconds, reference = best_in_turns(
            1.0, lambda: simulate_by_events(workload, policy), lambda: replay(workload, policy)
        )
        count = 2 * len(workload)
        return Measurement(name, seconds, "compiled replay", reference, count, "event")

    yield against_replay("events easy", logs.generated(1_000))
    for waiting in (100, 10_000):
        yield against_replay(f"events {waiting} waiting", logs.backlog(waiting, _STREAM))
    workload = logs.backlog(100, _STREAM)
    seconds, reference = best_in_turns(
        1.0,
        lambda: simulate_by_events(workload, policy, log=MemoryLog(manifest(workload, policy))),
        lambda: simulate_by_events(workload, policy),
    )
    yield Measurement(
        "events logged, 100 waiting", seconds, "no log", reference, 2 * len(workload), "event"
    )
