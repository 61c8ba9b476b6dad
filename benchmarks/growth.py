"""Growth of costs with what waits, or comes: each at three sizes, beside a reference."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import logs
from foresail.control.policy import parse_policy
from foresail.distributions.basic import Point
from foresail.metrics.summary import summary
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.containers import replaced
from foresail.model.decision import Instruction, Placement
from foresail.model.errors import InputError
from foresail.model.event import Ended, Event, Submitted
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.registry import entries
from foresail.model.view import ClusterView, PendingJob, RunningJob
from foresail.scenario.beginning import controller_of
from foresail.scenario.by_events import run_by_events
from foresail.scenario.scenario import Scenario
from foresail.simulator.replay import replay, replay_arrays
from foresail.traces.swf_writer import write_swf

_STREAM: Final = 2_000
_WARM_STEPS: Final = 20
_COUNTED: Final = 400
"""Jobs that come one by one while others wait; steps after which events are counted, and how many
are: about as many wait all the while."""

_MOST_SECONDS: Final = 10.0
"""Processor seconds after which fewer have been enough."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Processor seconds of something, and of its reference in the same run."""

    seconds: float
    reference: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what is measured in which sizes, in CI and in full."""

    name: str
    reference: str
    measure: Callable[[int], Pair]
    short: tuple[int, int, int]
    full: tuple[int, ...]


def rows() -> Iterator[Row]:
    """All rows: events by jobs that wait, the others by jobs that come, wait for nodes or end."""
    yield Row("event foresail", "easy", _events("foresail"), (100, 1_000, 10_000), _TO_100K)
    yield Row("event conservative", "easy", _events("conservative"), (100, 300, 1_000), _TO_10K)
    yield Row(
        "replay foresail 1.3",
        "easy",
        _replays("foresail", 1.3),
        (3_000, 10_000, 30_000),
        _SIZES[1],
    )
    yield Row(
        "replay conservative 1.3",
        "easy",
        _replays("conservative", 1.3),
        (1_000, 3_000, 10_000),
        (3_000, 10_000, 30_000),
    )
    yield Row("replay fcfs 0.8", "easy", _replays("fcfs", 0.8), *_SIZES)
    yield Row("decision priority", "easy, tables anew", _decision, (100, 300, 1_000), _TO_10K)
    yield Row("measuring", "replay of easy", _measuring, *_SIZES)
    yield Row("compare", "importing libraries", _run, (300, 1_000, 3_000), (300, 3_000, 30_000))


_WAITING: Final = (100, 1_000, 3_000)
_GROWS: Final = 0.4
"""Exponent from which on an event is said to grow: noise is below, a walk of the queue above."""

_TO_10K: Final = (1_000, 3_000, 10_000)
_TO_100K: Final = (100, 1_000, 10_000, 100_000)
_SIZES: Final = ((10_000, 30_000, 100_000), (30_000, 100_000, 300_000))


def growth_table(*, full: bool) -> Iterator[str]:
    """Lines of the table; the exponent is the slope on log-log axes."""
    yield f"{'processor seconds (x reference) at size':40}" + " " * 40 + "exponent"
    for row in rows():
        sizes = row.full if full else row.short
        pairs = [row.measure(size) for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log([each.seconds for each in pairs]), 1)[0]
        cells = (
            f"{size:,}: {each.seconds:.3g} ({each.seconds / each.reference:.3g})"
            for size, each in zip(sizes, pairs, strict=True)
        )
        yield f"{row.name:24}" + "".join(f"{cell:>25}" for cell in cells) + f"{slope:7.2f}"


def growth_of_policies() -> Iterator[str]:
    """Lines of microseconds of an event under each built-in policy, and the exponent.

    What grows with the jobs that wait says so in its summary (``foresail policies``).
    """
    yield f"{'microseconds of an event, while so many wait':45}" + " " * 30 + "exponent"
    parts = [(each, f"{each.name},requested") for each in entries("scheduler")]
    parts += [(each, f"easy,{each.name}") for each in entries("predictor")]
    for entry, policy in parts:
        try:
            costs = [_of_event(policy, waiting) for waiting in _WAITING]
        except InputError:
            continue  # it decides on tasks, or needs what this queue does not have
        slope = np.polyfit(np.log(_WAITING), np.log(costs), 1)[0]
        cells = (f"{size:,}: {1e6 * cost:.0f}" for size, cost in zip(_WAITING, costs, strict=True))
        said = "O(waiting jobs" in entry.summary
        note = "said" if said else "NOT SAID" if slope > _GROWS else ""
        yield f"{policy:24}" + "".join(f"{cell:>17}" for cell in cells) + f"{slope:7.2f}  {note}"


def _best(*functions: Callable[[], object]) -> Pair:
    """The least seconds of two functions, called in turns: after the first time, thrice or once."""
    best = [float("inf")] * len(functions)
    begin = time.process_time()
    for turn in range(4):
        for i, function in enumerate(functions):
            before = time.process_time()
            function()
            if turn > 0 or before - begin > 2.0:  # the first is for compilation and caches
                best[i] = min(best[i], time.process_time() - before)
        if time.process_time() - begin > 4.0 and turn > 0:
            break
    return Pair(*best)


class _EnoughError(Exception):
    """End of a run of which enough has been measured."""


def _events(text: str) -> Callable[[int], Pair]:
    """Seconds of an event of the event engine, all that follows from it included."""
    return lambda waiting: Pair(
        *(min(_of_event(each, waiting) for _ in "123") for each in (text, "easy"))
    )


def _of_event(text: str, waiting: int) -> float:
    """Seconds of a submission or end while so many wait, once all of these have come."""
    scenario = Scenario(logs.backlog(waiting, _STREAM), parse_policy(text))
    controller = controller_of(scenario)
    step, steps, counted, begin = controller.step, 0, 0, 0.0

    def timed(now: float, events: Iterable[Event]) -> list[Instruction]:
        nonlocal steps, counted, begin
        taken = [*events]
        done = step(now, taken)
        steps += 1
        if steps == _WARM_STEPS:
            begin = time.process_time()
        elif steps > _WARM_STEPS:
            counted += sum(isinstance(each, Submitted | Ended) for each in taken)
            if counted >= _COUNTED or (counted and time.process_time() - begin > _MOST_SECONDS):
                raise _EnoughError
        return done

    controller.step = timed  # type: ignore[method-assign] # it is looked on, not changed
    with suppress(_EnoughError):
        run_by_events(scenario, controller)
    return (time.process_time() - begin) / counted


def _replays(text: str, load: float) -> Callable[[int], Pair]:
    """Seconds of the compiled replay of so many jobs."""

    def measure(jobs: int) -> Pair:
        workload = logs.generated(jobs, load)

        def run(text: str) -> None:
            replay_arrays(workload, workload.runtime_seconds.copy(), parse_policy(text))

        return _best(partial(run, text), partial(run, "easy"))

    return measure


def _measuring(jobs: int) -> Pair:
    """Seconds for all metrics of a schedule of so many jobs."""
    workload, policy = logs.generated(jobs), parse_policy("easy")
    schedule = replay(workload, policy)
    return _best(partial(summary, schedule), partial(replay, workload, policy))


@cache
def _full_nodes(count: int) -> ClusterView:
    """So many nodes, each with a job that may be stopped and one that may not; as many jobs wait.

    Half of these have a deadline; every fourth fits no node even if others are stopped.
    """
    nodes = [Node(f"n{number}", Resources(cpus=16.0)) for number in range(count)]
    cluster = Cluster((Partition("all", Resources(cpus=16.0 * count), tuple(nodes)),))

    def job(name: str, tasks: int, cpus: float, *, urgent: bool) -> Job:
        made = Job(name, 0.0, (Stage(tasks=tasks, request=Resources(cpus=cpus)),), 3600.0)
        return replaced(made, value=DeadlineValue(7200.0)) if urgent else made

    running = tuple(
        RunningJob(
            job(f"r{number}", 1, 7.0, urgent=number % 2 == 0),
            0.0,
            number,
            Placement((("all", 1),), ((f"n{number // 2}", 1),)),
            Point(3600.0),
            3600.0,
        )
        for number in range(2 * count)
    )
    pending = tuple(
        PendingJob(
            job(f"p{number}", 1 + number % 5, 4.0 * (1 + number % 4), urgent=number % 8 < 4),
            number,
            Point(3600.0),
            3600.0,
        )
        for number in range(count)
    )
    left = Resources(cpus=2.0)
    free = {"all": Resources(cpus=2.0 * count)}
    return ClusterView(0.0, cluster, free, pending, running, {each.name: left for each in nodes})


def _decision(count: int) -> Pair:
    """Seconds of one pass that stops jobs for others, over so many nodes and waiting jobs."""
    view = _full_nodes(count)

    def decide(text: str) -> None:
        parse_policy(text).build()[0].decide(view)

    return _best(partial(decide, "priority"), partial(decide, "easy"))


def _run(jobs: int) -> Pair:
    """Seconds of a whole ``foresail compare`` of so many jobs."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.swf"
        write_swf(logs.generated(jobs), log)
        command = str(Path(sys.executable).with_name("foresail"))
        importing = "import numba, polars, pydantic, typer, rich"
        alone = [_used([command, "compare", str(log)]) for _ in range(3)][1:]
        imports = [_used([sys.executable, "-c", importing]) for _ in range(3)][1:]
        return Pair(min(alone), min(imports))


def _used(command: list[str]) -> float:
    """Processor seconds of a command and of what it starts."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])  # of children, as user and in the system
