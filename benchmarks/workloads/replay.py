"""The compiled replay against a bare compiled loop, and against plain Python on a small log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import logs, plain, yardstick
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.model.event import PREDICTSIM
from foresail.simulator.replay import replay_arrays
from foresail.traces.workload import Workload

POLICIES = {"easy": "easy", "sjbf": "easy(order=shortest),clairvoyant"}


@benchmark("replay")
def measure() -> Iterator[Measurement]:
    """Every log under EASY (requested times) and EASY-SJBF (real runtimes)."""
    small = logs.generated(2_000)
    for name in POLICIES:
        yield _against_plain(small, name)
    for log, workload in [("lublin", logs.generated(50_000)), *logs.real()]:
        for name in POLICIES:
            yield _against_yardstick(log, workload, name)


def _demand_same(ours: np.ndarray, reference: np.ndarray) -> None:
    different = int((ours != reference).sum())
    if different:
        raise RuntimeError(f"{different} jobs start at another time than in the reference")


def _against_yardstick(log: str, workload: Workload, name: str) -> Measurement:
    columns = logs.columns(workload, clairvoyant=name == "sjbf")
    policy = parse_policy(POLICIES[name])
    seconds: list[float] = []

    def ours() -> np.ndarray:
        replayed = replay_arrays(workload, workload.runtime_seconds.copy(), policy, PREDICTSIM)
        seconds.append(replayed.seconds)
        return replayed.start

    def bare() -> np.ndarray:
        submit, runtime, width, planned = columns
        processors = float(workload.processors)
        return yardstick.replay(submit, runtime, width, planned, processors, name == "sjbf")

    _demand_same(ours(), bare())
    reference = best_in_turns(0.5, ours, bare)[1]
    jobs = len(workload)
    return Measurement(
        f"replay {log} {name}", min(seconds), "bare compiled loop", reference, jobs, "job"
    )


def _against_plain(workload: Workload, name: str) -> Measurement:
    columns = [column.tolist() for column in logs.columns(workload, clairvoyant=name == "sjbf")]
    policy = parse_policy(POLICIES[name])

    def ours() -> np.ndarray:
        return replay_arrays(workload, workload.runtime_seconds.copy(), policy, PREDICTSIM).start

    def slow() -> list[float]:
        submit, runtime, width, planned = columns
        processors = float(workload.processors)
        shortest_first = name == "sjbf"
        return plain.replay(
            submit, runtime, width, planned, processors, shortest_first=shortest_first
        )

    _demand_same(ours(), np.array(slow()))
    seconds, reference = best_in_turns(0.5, ours, slow)
    return Measurement(
        f"replay small {name}", seconds, "plain Python", reference, len(workload), "job"
    )
