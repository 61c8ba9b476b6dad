"""Forecasts of a run by its log: what decides it, or another policy, decides each drawn future.

``foresail.explain.forecast`` starts jobs by a queue's order, in milliseconds a future. Here each
future is a simulation of what is left of the run: it takes as long, and every policy decides as it
does, on the nodes and in the partitions that there are, with jobs that start in parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from foresail.control.loop import Controller
from foresail.control.policy import Policy, parse_policy
from foresail.explain.forecast import Draw, WaitingForecast, ranges_of
from foresail.explain.run_futures import Failures, futures_of_run, records_until
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.decision import Start
from foresail.model.errors import InputError
from foresail.model.event import NodeRemoved, Submitted
from foresail.model.protocols import ProgressCallback
from foresail.record.job_life import ImpossibleTransition
from foresail.record.records import EventTaken, Instructed, Manifest, PolicyChanged, Record
from foresail.record.run_fold import folded, misfit
from foresail.scenario.beginning import controller_of
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions

SCENARIOS: Final = 100
"""Futures that are drawn unless another number is asked for."""

_MOMENTS: Final = 5
_PAST_SCENARIOS: Final = 20
"""Ranges are looked back at from so many moments at most, each by so many futures."""


def scenario_at(records: Sequence[Record], now: float, policy: Policy | None = None) -> Scenario:
    """Return the scenario at a time (seconds on the log's clock), or with another policy.

    Nodes go in it that were known then to go later.

    Raises ``InputError`` if tasks share nodes, so that how long they take depends on each other; a
    policy knew how long jobs run, which its beliefs in the log depend on; or the run was in cycles,
    and its policy does not say how long these were.
    """
    manifest: Manifest | None = None
    for record in records_until(records, now):
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
        run = folded(records_until(records, now), controller.compares_with)
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
    past: Iterable[Record] = (),
    scenarios: int = SCENARIOS,
    watch: ProgressCallback | None = None,
) -> WaitingForecast:
    """Forecast start and end of a waiting job, if no more jobs come.

    Jobs that run into the time they requested are ended there.

    The controller stands where the futures begin, and is only looked at; that what runs has not
    ended is known up to ``now``. Nodes fail, and starts take, as in its ``past``. ``watch`` is
    given a measure of the futures.

    Raises ``InputError`` if the job does not wait.
    """
    pending = controller.state.pending_job(job_id)
    if pending is None:
        raise InputError("does not wait then", field="job", value=job_id, expected="one that does")
    spans: list[Mapping[str, tuple[float, float, float]]] = []
    if watch is not None:
        watch(lambda: (float(len(spans)), float(scenarios)))
    failures = Failures.so_far(past, now)
    spans.extend(futures_of_run(controller, scenario, now, draw, failures, scenarios, {job_id}))
    times = np.array([each[job_id] for each in spans])
    start, end, runtime = ranges_of(times)
    deadline = pending.job.deadline_seconds
    return WaitingForecast(
        start,
        end,
        runtime,
        float(np.isinf(times[:, 0]).mean()),
        None if deadline is None else float((times[:, 1] > deadline).mean()),
    )


def past_ranges(
    records: Sequence[Record], now: float, scenario: Scenario, stands: Controller
) -> list[bool]:
    """Return which starts up to a time were in their range, as if it had been asked for before.

    Asked is of all that waits when some jobs come that wait, as many of such apart from each other,
    since the policy decides. A job that still waits when its range is over was not in it; one that
    was cancelled does not count.
    """
    submitted: dict[str, float] = {}
    starts: dict[str, list[float]] = {}
    for record in records_until(records, now):
        match record:
            case Manifest() | PolicyChanged():
                submitted.clear()
            case EventTaken(event=Submitted(time=time, job=job)):
                submitted[job.job_id] = time
            case Instructed(time=time, instruction=Start(job_id=job_id)):
                starts.setdefault(job_id, []).append(time)
    held: list[bool] = []
    waited = [time for each, time in submitted.items() if time not in starts.get(each, ())]
    step = 1 + len(waited) // _MOMENTS
    for moment in sorted({*waited[step // 2 :: step]}):
        then = replace(scenario_at(records, moment), learned_before=scenario.learned_before)
        controller, forecaster = controller_at(records, moment, then)
        job_ids = {each.job.job_id for each in controller.pending}
        failures = Failures.so_far(records, moment)
        how = controller, then, moment, forecaster.draw, failures, _PAST_SCENARIOS, job_ids
        spans = [[each[job_id][0] for job_id in job_ids] for each in futures_of_run(*how)]
        for job_id, foreseen in zip(job_ids, ranges_of(np.array(spans)), strict=True):
            start = next((each for each in starts.get(job_id, ()) if each > moment), math.inf)
            if start < math.inf or (stands.state.pending_job(job_id) and now > foreseen.high):
                held.append(foreseen.low <= start <= foreseen.high)
    return held


def _known_to_go(records: Iterable[Record], now: float) -> Iterator[NodeRemoved]:
    """Yield which nodes go after a time, as was known by then."""
    for record in records:
        match record:
            case EventTaken(event=NodeRemoved(time=time, known_from_seconds=float(known)) as goes):
                if known <= now < time:
                    yield goes


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
