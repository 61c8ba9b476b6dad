"""The event engine, which live clusters share, against a plain replay of the same jobs.

Both are interpreted, so that their ratio says little of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Final

import polars as pl

from benchmarks import logs, plain
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.record.log_text import MemoryLog
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.scenario import Scenario
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

_STREAM = 10_000
"""Jobs that come one by one, while as many wait."""

_MANY = (10, 1_000, 10_000)
"""How many wait at first, beside the 100 that these are compared with."""

_LOGGED = (100, 10_000)
"""How many wait at first where all is logged, in memory."""

_HALVES: Final = Cluster(
    tuple(Partition(name, Resources(cpus=logs.PROCESSORS / 2)) for name in ("left", "right"))
)

_best = partial(best_in_turns, 1.0, clock=time.process_time)


@benchmark("events")
def measure() -> Iterator[Measurement]:
    """Two events a job: its submission and its end; a pass after each but for the first waiting."""
    policy = parse_policy("easy")

    def by_events(workload: Workload) -> Schedule:
        scenario = Scenario(workload, policy)
        return run_by_events(scenario, controller_of(scenario))

    def logged(workload: Workload, place: Cluster | str = "processors") -> Schedule:
        scenario = Scenario(workload, policy, place=place)
        log = MemoryLog(manifest_of(scenario))
        return run_by_events(scenario, controller_of(scenario, log))

    def against_replay(name: str, workload: Workload, events: int) -> Measurement:
        columns = [each.tolist() for each in logs.columns(workload, clairvoyant=False)]
        seconds, reference = _best(
            lambda: by_events(workload),
            lambda: plain.replay(*columns, logs.PROCESSORS, shortest_first=False),
        )
        return Measurement(name, seconds, "plain replay", reference, events, "event")

    alone = logs.generated(1_000)
    yield against_replay("events easy", alone, 2 * len(alone))
    hundred = logs.backlog(100, _STREAM)
    of_hundred = against_replay("events 100 waiting", hundred, 100 + 2 * _STREAM)
    yield of_hundred
    for waiting in _MANY:
        workload, events = logs.backlog(waiting, _STREAM), waiting + 2 * _STREAM
        seconds = _best(partial(by_events, workload))[0]
        reference = events * of_hundred.seconds / of_hundred.count
        yield Measurement(
            f"events {waiting} waiting", seconds, "100 waiting", reference, events, "event"
        )
    for waiting in _LOGGED:
        workload, events = logs.backlog(waiting, _STREAM), waiting + 2 * _STREAM
        seconds, reference = _best(partial(logged, workload), partial(by_events, workload))
        name = f"events logged, {waiting} waiting"
        yield Measurement(name, seconds, "no log", reference, events, "event")
    for waiting in _LOGGED:
        anywhere, named = (_for_halves(waiting, names) for names in ([None], ["left", "right"]))
        events = waiting + 2 * _STREAM
        seconds, reference = _best(
            partial(logged, anywhere, _HALVES), partial(logged, named, _HALVES)
        )
        name = f"events in any of two partitions, {waiting} waiting"
        yield Measurement(name, seconds, "each job names one", reference, events, "event")


def _for_halves(waiting: int, names: list[str | None]) -> Workload:
    """Jobs for two partitions, of which they name these in turn; none is wider than one of them."""
    workload = logs.backlog(waiting, _STREAM)
    half = logs.PROCESSORS // 2
    jobs = workload.jobs.with_columns(
        pl.col("tasks").clip(upper_bound=half),
        partition=pl.Series(list(islice(cycle(names), len(workload))), dtype=pl.String),
    )
    return replace(workload, jobs=jobs)
