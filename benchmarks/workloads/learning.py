"""What learning a runtime costs: the replay with a predictor against the one with requests."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay_arrays
from foresail.traces.workload import Workload


@benchmark("learning")
def measure() -> Iterator[Measurement]:
    """FCFS, so that both predictors meet the same schedule and only their steps differ."""
    for log, workload in [("lublin", logs.generated(50_000)), *logs.real()]:
        yield _regression(log, workload)


def _regression(log: str, workload: Workload) -> Measurement:
    seconds: dict[str, list[float]] = {"requested": [], "regression": []}

    def replaying(name: str) -> None:
        runtime = workload.runtime_seconds.copy()
        policy = parse_policy(f"fcfs,{name}")
        seconds[name].append(replay_arrays(workload, runtime, policy).seconds)

    best_in_turns(0.5, *(partial(replaying, name) for name in seconds))
    requested = min(seconds["requested"])
    return Measurement(
        f"learning {log} regression",
        min(seconds["regression"]) - requested,
        "replay with requested times",
        requested,
        len(workload),
        "job",
    )
