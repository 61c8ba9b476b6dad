"""Simulation of a scenario by the quickest engine that can: what each can, and what is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from foresail.control.policy import Policy, is_compiled
from foresail.model.cluster import Cluster, NamedPartitions
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import STANDARD
from foresail.model.protocols import ProgressCallback
from foresail.scenario.own_requests import require_places_by_options
from foresail.scenario.scenario import Scenario, says_speeds
from foresail.schedulers.of_tasks.scheduler import QueuesTasks
from foresail.simulator.conditions import IDEAL

if TYPE_CHECKING:  # tables: a service, which asks here what it may run, has none
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload

_NO_PARTITIONS: Final = "policies that start tasks apart know none"


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
        {
            *(Need.GANGS, Need.LIMITS, Need.WORKLOAD, Need.TRUTH, Need.CONVENTIONS),
            Need.PARTITIONS,
        }
    ),
)
_OF_TASKS: Final = frozenset({Need.TASKS, Need.TASK_QUEUES, Need.TASK_BELIEFS, Need.TASKS_OF_GANGS})
TASK_REPLAY: Final = ScenarioEngine(
    "task-replay",
    frozenset({Need.WORKLOAD, Need.TRUTH, Need.LEARNED_BEFORE, Need.SPEEDS}) | _OF_TASKS,
)
EVENT_ENGINE: Final = ScenarioEngine(
    "event-engine",
    frozenset(Need) - {Need.COMMANDS, Need.TASK_BELIEFS, Need.TASKS_OF_GANGS},
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
    return scheduler if isinstance(scheduler, QueuesTasks) else None


def starts_apart(policy: Policy) -> bool:
    """Return whether a policy starts tasks by themselves; none of these knows partitions."""
    return policy.starts_tasks or task_queues_of(policy) is not None


def on_partitions(workload: Workload, *, one_pool: bool) -> Workload:
    """Return the workload on the partitions that it is replayed on, which say how they are known.

    ``one_pool``: a policy that it is replayed under ``starts_apart``, so that for all policies the
    partitions are one pool of processors.

    Raises ``InputError`` if partitions were given, and are to be one pool.
    """
    from foresail.traces.partitions import divided, in_one_pool, named_partitions

    if one_pool and workload.partitions:
        raise InputError(_NO_PARTITIONS, field="--partitions")
    if one_pool and named_partitions(workload):
        return in_one_pool(workload, _NO_PARTITIONS)
    return divided(workload)


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


def run_scenario(scenario: Scenario, watch: ProgressCallback | None = None) -> Schedule:
    """Simulate a scenario; whichever engine is chosen, the schedule is the same, job by job.

    Real commands are not for it (``foresail.scenario.by_daemon``). ``watch`` is given a measure of
    the seconds of the log that are simulated.

    Raises ``InputError`` if the engine that was asked for cannot do what the scenario needs, a
    runtime is unknown or negative, a job is wider than the machine or prefers what no node has, the
    place is not known, or a file cannot be read or written; ``UnknownNameError`` if there is no
    engine of this name, or a predictor looks at a column that a history does not have.
    """
    from foresail.traces.schedule import with_partitions

    schedule = _carried_out(scenario, watch)
    jobs = scenario.jobs
    lost = tuple(each.words for each in jobs.meta.lost)
    told = replace(schedule, meta=replace(schedule.meta, lost=lost, unit=jobs.meta.unit))
    if scenario.place == "processors":
        return with_partitions(told, jobs.jobs, jobs.partitions, jobs.partitions_said)
    return _with_partitions_of_nodes(told, jobs, scenario.cluster)


def _with_partitions_of_nodes(told: Schedule, jobs: Workload, cluster: Cluster) -> Schedule:
    from foresail.traces.partitions import few, named_partitions
    from foresail.traces.schedule import with_partitions

    named, known = named_partitions(jobs), NamedPartitions(cluster).records
    unknown = few(name for name in named if name not in known)
    if len(cluster.partitions) < 2 or known.keys().isdisjoint(named):
        is_odd = unknown and len(cluster.partitions) + len(named) > 2
        said = f"All nodes are one pool: they are of {few(known)}, and jobs name {unknown}."
        return with_partitions(told, jobs.jobs, {}, said if is_odd else "")
    sizes = {each.name: each.total.cpus for each in cluster.partitions}
    said = "Partitions as the nodes have them"
    said += f"; jobs that name others ({unknown}) run in any" if unknown else ""
    return with_partitions(told, jobs.jobs, sizes, f"{said}.")


def _carried_out(scenario: Scenario, watch: ProgressCallback | None) -> Schedule:
    engine = engine_of(scenario)
    if engine is TASK_REPLAY:
        return _named(_run_tasks(scenario, watch), engine)
    if engine is COMPILED_REPLAY:
        from foresail.simulator.replay import replay

        schedule = replay(
            scenario.jobs,
            scenario.policy,
            scenario.conventions,
            enforce_limits=scenario.enforce_limits,
            watch=watch,
        )
        return _named(schedule, engine)
    from foresail.scenario.by_events import run_logged  # imported here: replays begin sooner

    return run_logged(scenario, watch)


def _run_tasks(scenario: Scenario, watch: ProgressCallback | None) -> Schedule:
    from foresail.scenario.learned_before import HistoryWorkload
    from foresail.simulator.task_replay import replay_tasks

    learned = scenario.learned_before
    if learned is not None and not isinstance(learned, HistoryWorkload):
        raise InputError(
            "a replay of tasks learns from nothing else than jobs and their tasks",
            field="learned_before",
            value=type(learned).__name__,
            expected="a log, or a workload folder",
        )
    history = None if learned is None else learned.workload
    return replay_tasks(scenario.jobs, scenario.policy, history, watch)


def _named(schedule: Schedule, engine: ScenarioEngine) -> Schedule:
    return replace(schedule, meta=replace(schedule.meta, engine=engine.name))
