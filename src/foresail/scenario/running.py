"""Simulating a scenario: by the compiled replay where that can, event by event otherwise."""

from __future__ import annotations

from dataclasses import replace

from foresail.model.cluster import Cluster, NamedPartitions
from foresail.model.errors import InputError
from foresail.model.protocols import ProgressCallback
from foresail.scenario.engines import COMPILED_REPLAY, TASK_REPLAY, ScenarioEngine, engine_of
from foresail.scenario.scenario import Scenario
from foresail.simulator.replay import replay
from foresail.traces.partitions import few, named_partitions
from foresail.traces.schedule import Schedule, with_partitions
from foresail.traces.workload import Workload


def run_scenario(scenario: Scenario, watch: ProgressCallback | None = None) -> Schedule:
    """What would have happened; whichever engine is chosen, the schedule is the same, job by job.

    Real commands are not for it (``foresail.scenario.by_daemon``). ``watch`` is given a measure of
    the seconds of the log that are simulated.

    Raises
    ------
    InputError
        If the engine that was asked for cannot do what the scenario needs, a runtime is unknown or
        negative, a job is wider than the machine or prefers what no node has, the place is not
        known, or a file cannot be read or written.
    UnknownNameError
        If there is no engine of this name, or a predictor looks at a column that a history does
        not have.
    """
    schedule = _carried_out(scenario, watch)
    jobs = scenario.jobs
    lost = tuple(each.words for each in jobs.meta.lost)
    told = replace(schedule, meta=replace(schedule.meta, lost=lost, unit=jobs.meta.unit))
    if scenario.place == "processors":
        return with_partitions(told, jobs.jobs, jobs.partitions, jobs.partitions_said)
    return _with_partitions_of_nodes(told, jobs, scenario.cluster)


def _with_partitions_of_nodes(told: Schedule, jobs: Workload, cluster: Cluster) -> Schedule:
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
