"""What learning a runtime costs: the replay with a predictor against the one with requests."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.simulator.replay import replay_arrays
from foresail.traces.workload import Workload

PREDICTORS = ("recent", "regression")


@benchmark("learning")
def measure() -> Iterator[Measurement]:
    """FCFS, so that all predictors meet the same schedule and only their steps differ."""
    for log, workload in [("lublin", logs.generated(50_000)), *logs.real()]:
        yield from _measure(log, workload)


def _measure(log: str, workload: Workload) -> Iterator[Measurement]:
    names = ("requested", *PREDICTORS)
    policies = [parse_policy(f"fcfs,{name}") for name in names]
    seconds: list[list[float]] = [[] for _ in names]

    def replaying(number: int) -> None:
        runtime = workload.runtime_seconds.copy()
        seconds[number].append(replay_arrays(workload, runtime, policies[number]).seconds)

    best_in_turns(0.5, *(lambda number=i: replaying(number) for i in range(len(names))))
    requested, *others = (min(each) for each in seconds)
    for name, taken in zip(PREDICTORS, others, strict=True):
        yield Measurement(
            f"learning {log} {name}",
            taken - requested,
            "replay with requested times",
            requested,
            len(workload),
            "job",
        )
