"""What each engine can, what a scenario needs, and which engine it gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from foresail.model.errors import InputError, UnknownNameError
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import IDEAL
from foresail.simulator.replay import is_compiled


class Need(StrEnum):
    """What a scenario may need beyond gangs of a compiled policy on one pool of processors."""

    PLACES = "places other than one pool of processors"
    DEPENDENCIES = "jobs that wait for others"
    ANY_POLICY = "policies with parts that are not compiled"
    EVENT_LOG = "an event log"
    LEARNED_BEFORE = "predictors that have learned before"
    CYCLES = "scheduling in cycles"
    CONDITIONS = "delays, noise and outages"
    NODE_CHANGES = "nodes that come, change and go"
    TASKS = "tasks that start apart"


@dataclass(frozen=True, slots=True)
class SimulationEngine:
    """An engine, and what it can do; all can gangs, both conventions, and limits."""

    name: str
    can: frozenset[Need]


COMPILED_REPLAY: Final = SimulationEngine("compiled-replay", frozenset())
EVENT_ENGINE: Final = SimulationEngine("event-engine", frozenset(Need))
ENGINES: Final = {each.name: each for each in (COMPILED_REPLAY, EVENT_ENGINE)}
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
        return next(engine for engine in ENGINES.values() if needs <= engine.can)
    if scenario.engine not in ENGINES:
        raise UnknownNameError("engine", scenario.engine, ENGINES)
    engine = ENGINES[scenario.engine]
    if not needs <= engine.can:
        able = [each.name for each in ENGINES.values() if needs <= each.can]
        raise InputError(
            f"this engine does not have {_words(needs - engine.can)}",
            field="engine",
            value=engine.name,
            expected=" or ".join(able),
        )
    return engine


def _needs(scenario: Scenario) -> Iterator[Need]:
    workload, conditions = scenario.workload, scenario.conditions
    if scenario.place != "processors":
        yield Need.PLACES
    if workload is not None and workload.has_dependencies:
        yield Need.DEPENDENCIES
    if not is_compiled(scenario.policy):
        yield Need.ANY_POLICY
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
    if workload is not None and workload.tasks is not None and scenario.policy.starts_tasks:
        yield Need.TASKS


def _words(needs: frozenset[Need]) -> str:
    return ", ".join(need for need in Need if need in needs)
