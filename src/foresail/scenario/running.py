"""Simulation of a scenario by the quickest engine that can."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foresail.model.cluster import Cluster, NamedPartitions
from foresail.model.errors import InputError
from foresail.model.protocols import ProgressCallback
from foresail.scenario import engines
from foresail.scenario.own_requests import with_options
from foresail.scenario.scenario import Scenario

if TYPE_CHECKING:  # tables: replays begin sooner
    from foresail.traces.schedule import Schedule
    from foresail.traces.workload import Workload

_NO_PARTITIONS: Final = "policies that start tasks apart know none"


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
    labelled = replace(schedule, meta=replace(schedule.meta, lost=lost, unit=jobs.meta.unit))
    if scenario.place == "processors":
        return with_partitions(labelled, jobs.jobs, jobs.partitions, jobs.partitions_said)
    return _with_partitions_of_nodes(labelled, jobs, scenario.cluster)


def _with_partitions_of_nodes(labelled: Schedule, jobs: Workload, cluster: Cluster) -> Schedule:
    from foresail.traces.partitions import few, named_partitions
    from foresail.traces.schedule import with_partitions

    named, known = named_partitions(jobs), NamedPartitions(cluster).records
    unknown = few(name for name in named if name not in known)
    if len(cluster.partitions) < 2 or known.keys().isdisjoint(named):
        is_odd = unknown and len(cluster.partitions) + len(named) > 2
        said = f"All nodes are one pool: they are of {few(known)}, and jobs name {unknown}."
        return with_partitions(labelled, jobs.jobs, {}, said if is_odd else "")
    sizes = {each.name: each.total.cpus for each in cluster.partitions}
    said = "Partitions as the nodes have them"
    said += f"; jobs that name others ({unknown}) run in any" if unknown else ""
    return with_partitions(labelled, jobs.jobs, sizes, f"{said}.")


def _carried_out(scenario: Scenario, watch: ProgressCallback | None) -> Schedule:
    engine = engines.engine_of(scenario)
    if engine is engines.TASK_REPLAY:
        return _named(_run_tasks(scenario, watch), engine)
    if engine is engines.COMPILED_REPLAY:
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

    return run_logged(_ready_for_events(scenario), watch)


def _ready_for_events(scenario: Scenario) -> Scenario:
    """Return the scenario with requests of its own read, once the event engine can carry it out."""
    from foresail.simulator.truth import known_runtimes, real_runtimes
    from foresail.traces.nodes import (
        require_known_preferences,
        require_processors_bind,
        with_processors_alone,
    )

    jobs = scenario.jobs
    if jobs.has_own_requests:
        jobs = with_options(jobs, scenario.cluster, scenario.conditions.node_changes)
        scenario = replace(scenario, workload=jobs)
    if scenario.place == "processors":
        require_processors_bind(jobs)
        scenario = replace(scenario, workload=with_processors_alone(jobs))
    if jobs.tasks is not None and scenario.policy.starts_tasks:
        known_runtimes(jobs)  # what is wider than the machine starts in parts
    else:
        real_runtimes(jobs)
    if scenario.place != "processors":
        require_known_preferences(jobs.jobs, scenario.cluster, jobs.meta.source)
    named = NamedPartitions(scenario.cluster)
    first = next((each for each in jobs.jobs["partition"].unique() if named.asked(each)), None)
    if first is not None and engines.starts_apart(scenario.policy):
        raise InputError(
            "policies that start tasks apart know no partitions, and jobs name some",
            source=jobs.meta.source,
            field="partition",
            value=first,
            expected="another policy, or a log that names none",
        )
    return scenario


def _run_tasks(scenario: Scenario, watch: ProgressCallback | None) -> Schedule:
    from foresail.scenario.learned_before import HistoryWorkload
    from foresail.simulator.task_replay import replay_tasks

    learned = scenario.learned_before
    if learned is not None and not isinstance(learned, HistoryWorkload):
        raise InputError(
            "a replay of tasks learns from nothing else than jobs and their tasks",
            field="--learn-from",
            value=type(learned).__name__,
            expected="a log, or a workload folder",
        )
    history = None if learned is None else learned.workload
    return replay_tasks(scenario.jobs, scenario.policy, history, watch)


def _named(schedule: Schedule, engine: engines.ScenarioEngine) -> Schedule:
    return replace(schedule, meta=replace(schedule.meta, engine=engine.name))
