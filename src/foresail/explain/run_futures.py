"""Futures of a run, each a simulation of what is left of it; nodes fail in them as they did."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

import numpy as np

from foresail.control.loop import Controller
from foresail.explain.forecast import Draw
from foresail.explain.job_columns import columns_of
from foresail.model.cluster import Cluster
from foresail.model.decision import Start
from foresail.model.event import (
    REQUEUED,
    Ended,
    NodeDown,
    NodeRemoved,
    NodeUp,
    Outcome,
    Unit,
    unit_of,
)
from foresail.record.job_life import JobState
from foresail.record.log_text import LogClock
from foresail.record.records import EventTaken, Instructed, Manifest, Record
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import Outage, random_outages
from foresail.simulator.driver import simulate_forward

_FURTHEST: Final = 10.0
_LATEST: Final = 500
"""Failures of nodes are drawn for so many times as long as the run has gone on, and starts take as
long as the latest did."""


def records_until(records: Iterable[Record], now: float) -> Iterator[Record]:
    """Yield the records of a log up to a time (seconds on its clock)."""
    return takewhile(lambda record: getattr(record, "time", now) <= now, records)


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of nodes in a run so far, and delays of its starts; both go on in futures."""

    delay_seconds: float = 0.0
    """Mean time from the instruction to start a job to its start."""
    up_seconds: float = math.inf
    repair_seconds: float = math.inf
    """Mean times that a node is up, and down; infinite where none has come back."""
    down: frozenset[str] = frozenset()
    ahead_seconds: float = 0.0
    """Nodes that are down, and time for which failures are drawn."""

    @classmethod
    def so_far(cls, records: Iterable[Record], now: float) -> Failures:
        """Return those of a run up to a time."""
        repairs, down, clock, nodes = list[float](), dict[str, float](), LogClock(), 0
        begun, delays = dict[Unit, float](), deque[float](maxlen=_LATEST)
        for record in records_until(records, now):
            clock.see(record)
            match record:
                case Manifest(cluster=cluster):
                    nodes = sum(len(each.nodes) for each in cluster.partitions)
                case Instructed(time=time, instruction=Start() as start):
                    begun[unit_of(start)] = time
                case EventTaken(event=Ended(outcome=outcome)) if unit_of(outcome) in begun:
                    delays.append(outcome.start_seconds - begun.pop(unit_of(outcome)))
                case EventTaken(event=NodeDown(time=time, node=node)):
                    down.setdefault(node, time)
                case EventTaken(event=NodeUp(time=time, node=node)) if node in down:
                    repairs.append(time - down.pop(node))
                case EventTaken(event=NodeRemoved(node=node)):
                    down.pop(node, None)
        delay = max(0.0, sum(delays) / max(1, len(delays)))
        if not repairs:
            return cls(delay)
        lasted = now - clock.zero
        up = nodes * lasted - sum(repairs) - sum(now - since for since in down.values())
        failed, repair = len(repairs) + len(down), sum(repairs) / len(repairs)
        return cls(delay, up / failed, repair, frozenset(down), _FURTHEST * lasted)

    def outages(self, cluster: Cluster, now: float, seed: int) -> Iterator[Outage]:
        """Yield those of a future: times are exponential, nodes that are down come back."""
        if math.isinf(self.repair_seconds):
            return
        random, means = np.random.default_rng([seed]), (self.up_seconds, self.repair_seconds)
        back = {node: now + random.exponential(means[1]) for node in sorted(self.down)}
        for node, up in back.items():
            yield Outage(node, now, up)
        for each in random_outages(cluster, self.ahead_seconds, *means, seed):
            since = back.get(each.node, now)
            yield Outage(each.node, since + each.down_seconds, since + each.up_seconds)


def futures_of_run(
    controller: Controller,
    scenario: Scenario,
    now: float,
    draw: Draw,
    failures: Failures,
    count: int,
    job_ids: Set[str],
) -> Iterator[Mapping[str, tuple[float, float, float]]]:
    """Simulate futures until some jobs have ended: yield start, end and runtime of each."""
    waiting, running = columns_of([*controller.pending]), [*controller.running.values()]
    runtimes = np.concatenate(draw(waiting, running, now, count, 0), axis=1)
    ids = [*waiting.places, *(each.job.job_id for each in running)]
    policy, goes = scenario.policy_in_force, scenario.conditions.node_changes
    for future, lasting in enumerate(runtimes.tolist()):
        scheduler, _, correction = policy.build()
        fork = controller.fork(scheduler, copy.deepcopy(controller.predictor), correction)
        fork.foresee(each for each in goes if isinstance(each, NodeRemoved))
        drawn = dict(zip(ids, lasting, strict=True))
        conditions = replace(
            scenario.conditions,
            outages=tuple(failures.outages(controller.cluster, controller.now, future)),
            start_delay_seconds=failures.delay_seconds,
            seed=future,
        )
        outcomes = simulate_forward(fork, drawn, enforce_limits=True, conditions=conditions)
        spans = _spans(fork, outcomes, job_ids)
        late = failures.delay_seconds
        yield {each: (start + late, end, drawn[each]) for each, (start, end) in spans.items()}


def _spans(
    future: Controller, outcomes: Iterator[Outcome], job_ids: Set[str]
) -> dict[str, tuple[float, float]]:
    """Simulate until jobs have ended; return their starts and ends."""
    found, left = dict.fromkeys(sorted(job_ids), (math.inf, math.inf)), set(job_ids)
    for outcome in outcomes:
        job_id = outcome.job_id
        if job_id in left:
            found[job_id] = min(found[job_id][0], outcome.start_seconds), outcome.end_seconds
            if not outcome.stage and outcome.ended_because not in REQUEUED:
                left.remove(job_id)
        if not left:
            return found
    lives = {each for each in left if future.state.stage_of(each) is not JobState.ENDED}
    return found | {each: (found[each][0], math.inf) for each in lives}
