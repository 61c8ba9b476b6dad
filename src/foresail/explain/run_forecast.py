"""Forecasts of a run by its log: what decides it, or another policy, decides each drawn future.

``foresail.explain.forecast`` starts jobs by a queue's order, in milliseconds a future. Here each
future is a simulation of what is left of the run: it takes as long, and every policy decides as it
does, on the nodes and in the partitions that there are, with jobs that start in parts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import numpy as np

from foresail.control.loop import Controller
from foresail.control.policy import Policy, parse_policy
from foresail.explain.forecast import Draw, WaitingForecast, ranges_of
from foresail.explain.job_columns import columns_of
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.errors import InputError
from foresail.model.event import REQUEUED, NodeRemoved, Outcome
from foresail.model.protocols import ProgressCallback
from foresail.record.job_life import ImpossibleTransition, JobState
from foresail.record.records import EventTaken, Manifest, PolicyChanged, Record
from foresail.record.run_fold import folded, misfit
from foresail.scenario.beginning import controller_of
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions
from foresail.simulator.driver import simulate_forward

SCENARIOS: Final = 100
"""Futures that are drawn unless another number is asked for."""


def scenario_at(records: Sequence[Record], now: float, policy: Policy | None = None) -> Scenario:
    """Return the scenario at a time (seconds on the log's clock), or with another policy.

    Nodes go in it that were known then to go later.

    Raises ``InputError`` if tasks share nodes, so that how long they take depends on each other; a
    policy knew how long jobs run, which its beliefs in the log depend on; or the run was in cycles,
    and its policy does not say how long these were.
    """
    manifest: Manifest | None = None
    for record in _until(records, now):
        match record:
            case Manifest():
                manifest = record
            case PolicyChanged() if manifest is not None:
                manifest = replace(manifest, policy=record.policy)
    if manifest is None:
        raise InputError("does not begin with a manifest", expected="an event log")
    if manifest.cluster.shared:
        raise InputError(
            "tasks share nodes: how long they will take depends on each other",
            expected="the log of a run whose tasks have their cpus to themselves",
        )
    decided = parse_policy(manifest.policy)
    decides = policy or decided
    for each in (decided, decides):
        if each.needs_truth:
            raise InputError(
                "its predictor needs to know how long jobs run, which is not known before",
                value=each.text,
                expected="a policy whose predictor learns",
            )
    in_cycles = manifest.conventions.passes == "per_tick"
    cycle_seconds = _cycle_seconds(decided) if in_cycles else None
    conditions = ClusterConditions(cycle_seconds, node_changes=tuple(_known_to_go(records, now)))
    return Scenario(None, decides, manifest.cluster, manifest.conventions, conditions)


def controller_at(
    records: Iterable[Record], now: float, scenario: Scenario
) -> tuple[Controller, StartForecaster]:
    """Return how a run stood after its last step up to a time, and what was learned of it by then.

    Raises ``InputError`` if the log does not fit together, or jobs have begun in parts and the
    policy starts none.
    """
    controller = controller_of(scenario)
    forecaster = StartForecaster()
    try:
        run = folded(_until(records, now), controller.compares_with)
        controller.take_over(run)
    except (KeyError, ImpossibleTransition) as error:
        raise misfit(error) from error
    forecaster.catch_up(run.history)
    return controller, forecaster


def forecast_in_run(
    controller: Controller,
    scenario: Scenario,
    job_id: str,
    now: float,
    draw: Draw,
    *,
    scenarios: int = SCENARIOS,
    seed: int = 0,
    watch: ProgressCallback | None = None,
) -> WaitingForecast:
    """Forecast start and end of a waiting job, if no more jobs come.

    Jobs that run into the time they requested are ended there.

    Raises ``InputError`` if the job does not wait.

    Parameters
    ----------
    controller
        Stands where the futures begin; it is only looked at.
    scenario
        What is run: whose policy decides, and in which cycles.
    job_id, now
        Which job, and since when it is known that what runs has not ended.
    draw
        Draws the runtimes.
    scenarios, seed
        How many futures are drawn; equal seeds draw equal runtimes for equal jobs.
    watch
        Is given a measure of the futures.
    """
    pending = controller.state.pending_job(job_id)
    if pending is None:
        raise InputError("does not wait then", field="job", value=job_id, expected="one that does")
    waiting, running = columns_of([*controller.pending]), [*controller.running.values()]
    runtimes = np.concatenate(draw(waiting, running, now, scenarios, seed), axis=1)
    ids = [*waiting.places, *(each.job.job_id for each in running)]
    drawn = dict(zip(ids, runtimes.T, strict=True))
    policy, goes = scenario.policy_in_force, scenario.conditions.node_changes
    spans: list[tuple[float, float]] = []
    if watch is not None:
        watch(lambda: (float(len(spans)), float(scenarios)))
    for future in range(scenarios):
        scheduler, _, correction = policy.build()
        fork = controller.fork(scheduler, copy.deepcopy(controller.predictor), correction)
        fork.foresee(each for each in goes if isinstance(each, NodeRemoved))
        outcomes = simulate_forward(
            fork,
            {name: float(runtimes[future]) for name, runtimes in drawn.items()},
            enforce_limits=True,
            conditions=scenario.conditions,
        )
        spans.append(_span(fork, outcomes, job_id))
    times = np.array(spans)
    start, end, runtime = ranges_of(np.column_stack((times, drawn[job_id])))
    deadline = pending.job.deadline_seconds
    return WaitingForecast(
        start,
        end,
        runtime,
        float(np.isinf(times[:, 0]).mean()),
        None if deadline is None else float((times[:, 1] > deadline).mean()),
    )


def _known_to_go(records: Iterable[Record], now: float) -> Iterator[NodeRemoved]:
    """Yield which nodes go after a time, as was known by then."""
    for record in records:
        match record:
            case EventTaken(event=NodeRemoved(time=time, known_from_seconds=float(known)) as goes):
                if known <= now < time:
                    yield goes


def _until(records: Iterable[Record], now: float) -> Iterator[Record]:
    return takewhile(lambda record: getattr(record, "time", now) <= now, records)


def _cycle_seconds(policy: Policy) -> float:
    for part in (policy.scheduler, policy.correction):
        seconds = getattr(part.parameters, "cycle_seconds", None)
        if seconds is not None:
            return float(seconds)
    raise InputError(
        "the run was in cycles, and its log does not say how long these were",
        value=policy.text,
        expected="a policy with cycle_seconds",
    )


def _span(future: Controller, outcomes: Iterator[Outcome], job_id: str) -> tuple[float, float]:
    """Simulate until a job has ended; return its start and end."""
    start = end = math.inf
    for outcome in outcomes:
        if outcome.job_id == job_id:
            start, end = min(start, outcome.start_seconds), outcome.end_seconds
            if not outcome.stage and outcome.ended_because not in REQUEUED:
                return start, end
    return start, end if future.state.stage_of(job_id) is JobState.ENDED else math.inf
