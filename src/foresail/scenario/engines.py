"""What each engine can, what a scenario needs, and which engine it gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from foresail.model.conventions import STANDARD
from foresail.model.errors import InputError, UnknownNameError
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import IDEAL
from foresail.simulator.replay import is_compiled
from foresail.simulator.task_replay import starts_tasks


class Need(StrEnum):
    """What a scenario may need beyond a compiled policy on one pool of processors."""

    GANGS = "jobs whose tasks start together"
    TASKS_APART = "jobs whose tasks start apart"
    LIMITS = "limits that end jobs"
    PUBLISHED_ORDER = "other conventions than the standard ones"
    PLACES = "places other than one pool of processors"
    DEPENDENCIES = "jobs that wait for others"
    ANY_POLICY = "policies with parts that are not compiled"
    EVENT_LOG = "an event log"
    LEARNED_BEFORE = "predictors that have learned before"
    CYCLES = "scheduling in cycles"
    CONDITIONS = "delays, noise and outages"
    NODE_CHANGES = "nodes that come, change and go"


@dataclass(frozen=True, slots=True)
class SimulationEngine:
    """An engine, and what it can do."""

    name: str
    can: frozenset[Need]


COMPILED_REPLAY: Final = SimulationEngine(
    "compiled-replay", frozenset({Need.GANGS, Need.LIMITS, Need.PUBLISHED_ORDER})
)
TASK_REPLAY: Final = SimulationEngine(
    "task-replay", frozenset({Need.TASKS_APART, Need.LEARNED_BEFORE})
)
EVENT_ENGINE: Final = SimulationEngine("event-engine", frozenset(Need) - {Need.TASKS_APART})
ENGINES: Final = {each.name: each for each in (COMPILED_REPLAY, TASK_REPLAY, EVENT_ENGINE)}
"""The quickest first; all give the same schedule where they can give one."""


def engine_of(scenario: Scenario) -> SimulationEngine:
    """The engine asked for by name, or the quickest that can what the scenario needs.

    Raises
    ------
    UnknownNameError
        If there is no engine of this name.
    InputError
        If it cannot do what is needed.
    """
    needs = frozenset(_needs(scenario))
    if scenario.engine is None:
        able = [engine for engine in ENGINES.values() if needs <= engine.can]
        if able:
            return able[0]
        others = needs - TASK_REPLAY.can
        raise InputError(
            f"no engine has {_words(frozenset({Need.TASKS_APART}))} and {_words(others)}",
            field="policy",
            value=scenario.policy.label,
            expected="a policy whose jobs start all tasks together",
        )
    if scenario.engine not in ENGINES:
        raise UnknownNameError("engine", scenario.engine, ENGINES)
    engine = ENGINES[scenario.engine]
    if not needs <= engine.can:
        names = [each.name for each in ENGINES.values() if needs <= each.can]
        raise InputError(
            f"this engine does not have {_words(needs - engine.can)}",
            field="engine",
            value=engine.name,
            expected=" or ".join(names),
        )
    return engine


def _needs(scenario: Scenario) -> Iterator[Need]:
    workload, conditions = scenario.workload, scenario.conditions
    if scenario.place != "processors":
        yield Need.PLACES
    if workload is not None and workload.has_dependencies:
        yield Need.DEPENDENCIES
    if starts_tasks(scenario.policy):
        yield Need.TASKS_APART
    else:
        yield Need.GANGS
        if not is_compiled(scenario.policy):
            yield Need.ANY_POLICY
    if scenario.enforce_limits:
        yield Need.LIMITS
    if scenario.conventions != STANDARD:
        yield Need.PUBLISHED_ORDER
    if scenario.event_log is not None:
        yield Need.EVENT_LOG
    if scenario.learned_before is not None:
        yield Need.LEARNED_BEFORE
    if conditions.cycle_seconds is not None:
        yield Need.CYCLES
    if replace(conditions, cycle_seconds=None, node_changes=(), seed=IDEAL.seed) != IDEAL:
        yield Need.CONDITIONS
    if conditions.node_changes:
        yield Need.NODE_CHANGES


def _words(needs: frozenset[Need]) -> str:
    return ", ".join(need for need in Need if need in needs)
