"""Engines: what each can, the quickest that can do what a scenario needs, and what it compiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

from foresail.control.policy import Policy, is_compiled
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import STANDARD
from foresail.scenario.own_requests import require_places_by_options
from foresail.scenario.scenario import Scenario, says_speeds
from foresail.simulator.conditions import IDEAL

if TYPE_CHECKING:
    from foresail.kernels.beside import BackgroundCompiler
    from foresail.schedulers.of_tasks.scheduler import QueuesTasks


class Need(StrEnum):
    """Need of a scenario beyond a policy that learns, on one pool of processors."""

    COMMANDS = "real commands"
    WORKLOAD = "jobs of a log"
    TRUTH = "predictors that know how long jobs will run"
    PLACES = "places other than one pool of processors"
    PARTITIONS = "partitions with processors of their own"
    TOGETHER = "partitions that are decided about together"
    SPEEDS = "processors of different speeds"
    DEPENDENCIES = "jobs that wait for others"
    OWN_REQUESTS = "jobs with STRL of their own"
    ANY_POLICY = "policies with parts that are not compiled"
    EVENT_LOG = "a file for an event log"
    LEARNED_BEFORE = "predictors that have learned before"
    CYCLES = "scheduling in cycles"
    CONDITIONS = "delays, noise and outages"
    NODE_CHANGES = "nodes that come, change and go"
    CONVENTIONS = "conventions other than the standard"
    SHARED_NODES = "tasks that share nodes"
    LIMITS = "limits that end jobs"
    GANGS = "jobs whose tasks start together"
    TASKS = "tasks that start apart"
    TASK_QUEUES = "queues of tasks"
    TASK_BELIEFS = "predictors of tasks"
    TASKS_OF_GANGS = "tasks made of jobs whose tasks are unknown"


@dataclass(frozen=True, slots=True)
class ScenarioEngine:
    """An engine, and what it can do."""

    name: str
    can: frozenset[Need]


COMPILED_REPLAY: Final = ScenarioEngine(
    "compiled-replay",
    frozenset(
        {*(Need.GANGS, Need.LIMITS, Need.WORKLOAD, Need.TRUTH, Need.CONVENTIONS), Need.PARTITIONS}
    ),
)
_OF_TASKS: Final = frozenset({Need.TASKS, Need.TASK_QUEUES, Need.TASK_BELIEFS, Need.TASKS_OF_GANGS})
TASK_REPLAY: Final = ScenarioEngine(
    "task-replay",
    frozenset({Need.WORKLOAD, Need.TRUTH, Need.LEARNED_BEFORE, Need.SPEEDS}) | _OF_TASKS,
)
EVENT_ENGINE: Final = ScenarioEngine(
    "event-engine", frozenset(Need) - {Need.COMMANDS, Need.TASK_BELIEFS, Need.TASKS_OF_GANGS}
)
LIVE: Final = ScenarioEngine(
    "live",
    frozenset(
        {
            *(Need.GANGS, Need.LIMITS, Need.COMMANDS, Need.DEPENDENCIES),
            *(Need.OWN_REQUESTS, Need.ANY_POLICY, Need.LEARNED_BEFORE),
        }
    ),
)
ENGINES: Final = {each.name: each for each in (COMPILED_REPLAY, TASK_REPLAY, EVENT_ENGINE, LIVE)}
"""The quickest first; those that simulate give the same schedule where they can give one."""


def engine_of(scenario: Scenario) -> ScenarioEngine:
    """The engine asked for by name, or the quickest that can what the scenario needs.

    Raises ``UnknownNameError`` if there is no engine of this name; ``InputError`` if it cannot do
    what is needed, or none can do all of it.
    """
    needs = frozenset(_needs(scenario))
    able = [engine for engine in ENGINES.values() if needs <= engine.can]
    if scenario.engine is not None and scenario.engine not in ENGINES:
        raise UnknownNameError("engine", scenario.engine, ENGINES)
    if not able and Need.COMMANDS in needs:
        raise InputError(f"{Need.COMMANDS} cannot be run with {_words(needs - LIVE.can)}")
    if not able:
        words = _words(needs & _OF_TASKS), _words(needs - TASK_REPLAY.can)
        raise InputError(f"{words[0]} cannot be simulated with {words[1]}")
    if scenario.engine is None:
        return able[0]
    engine = ENGINES[scenario.engine]
    if engine not in able:
        raise InputError(
            f"this engine does not have {_words(needs - engine.can)}",
            field="engine",
            value=engine.name,
            expected=" or ".join(each.name for each in able),
        )
    return engine


def task_queues_of(policy: Policy) -> QueuesTasks | None:
    """The scheduler of a policy, if it has the queues of tasks that a replay has."""
    scheduler = policy.build()[0]
    # Asked for what it has, not for its class: other policies begin without the module of that.
    return cast("QueuesTasks", scheduler) if hasattr(scheduler, "compiled_tasks") else None


def starts_apart(policy: Policy) -> bool:
    """Return whether a policy starts tasks by themselves; none of these knows partitions."""
    return policy.starts_tasks or task_queues_of(policy) is not None


def _needs(scenario: Scenario) -> Iterator[Need]:
    workload, conditions = scenario.workload, scenario.conditions
    if scenario.commands is not None:
        yield Need.COMMANDS
    if scenario.commands is None or workload is not None:
        yield Need.WORKLOAD
    if scenario.policy.needs_truth:
        yield Need.TRUTH
    if scenario.place != "processors":
        yield Need.PLACES
    elif workload is not None and workload.partitions:
        yield Need.PARTITIONS
        from foresail.simulator.replay import replays_apart

        if not replays_apart(workload, scenario.policy, scenario.conventions):
            yield Need.TOGETHER
    elif workload is not None and says_speeds(workload) and scenario.cluster.has_speeds:
        yield Need.SPEEDS
    if workload is not None and workload.has_dependencies:
        yield Need.DEPENDENCIES
    if workload is not None and workload.has_own_requests:
        require_places_by_options(scenario.policy, workload.meta.source)
        yield Need.OWN_REQUESTS
    yield from _needs_of_tasks(scenario)
    if scenario.enforce_limits:
        yield Need.LIMITS
    if scenario.event_log is not None:
        yield Need.EVENT_LOG
    if scenario.learned_before is not None:
        yield Need.LEARNED_BEFORE
    if conditions.cycle_seconds is not None:
        yield Need.CYCLES
    others = replace(
        conditions, cycle_seconds=None, node_changes=(), share_nodes=False, seed=IDEAL.seed
    )
    if others != IDEAL:
        yield Need.CONDITIONS
    if conditions.node_changes:
        yield Need.NODE_CHANGES
    if scenario.conventions != STANDARD:
        yield Need.CONVENTIONS
    if conditions.share_nodes:
        yield Need.SHARED_NODES


def _needs_of_tasks(scenario: Scenario) -> Iterator[Need]:
    workload = scenario.workload
    scheduler = task_queues_of(scenario.policy)
    if scheduler is None:
        yield Need.GANGS
        if not is_compiled(scenario.policy):
            yield Need.ANY_POLICY
        if workload is not None and workload.tasks is not None and scenario.policy.starts_tasks:
            yield Need.TASKS
        return
    yield Need.TASK_QUEUES
    if scheduler.compiled_tasks().asks_predictor:
        yield Need.TASK_BELIEFS
    if workload is not None:
        starts_all = workload.has_tasks_of_all or (
            workload.tasks is not None and scheduler.starts_gangs
        )
        yield Need.TASKS if starts_all else Need.TASKS_OF_GANGS


def _words(needs: frozenset[Need]) -> str:
    return ", ".join(need for need in Need if need in needs)


@contextmanager
def compiling_for(scenarios: Iterable[Scenario]) -> Iterator[BackgroundCompiler]:
    """Compile what scenarios need beside what is done meanwhile."""
    from foresail.kernels.beside import Rehearsal, Task, compiling_beside
    from foresail.simulator.replay import steps_of, steps_of_parts

    rehearsals: list[Task] = []
    steps: list[Task] = []
    for each in scenarios:
        if engine_of(each) is TASK_REPLAY:
            from foresail.simulator.task_replay import steps_of_tasks

            steps += steps_of_tasks(each.policy)
            continue
        if engine_of(each) is not EVENT_ENGINE:
            steps += steps_of(each.policy)
            continue
        steps += steps_of_parts(each.policy)
        if each.policy.is_built_in:  # the other process knows no files of the user's
            rehearsals.append(
                Rehearsal("foresail.scenario.beginning:rehearse_policy", each.policy.text)
            )
    with compiling_beside([*rehearsals, *steps]) as beside:
        yield beside
