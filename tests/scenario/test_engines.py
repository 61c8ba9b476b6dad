"""Which engine a scenario gets, by what the engines say they can."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.live.run_directory import RunDirectory
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import PREDICTSIM, NodeRemoved
from foresail.scenario.engines import (
    COMPILED_REPLAY,
    ENGINES,
    EVENT_ENGINE,
    LIVE,
    TASK_REPLAY,
    Need,
    engine_of,
)
from foresail.scenario.learned_before import HistoryWorkload, SavedState
from foresail.scenario.running import on_partitions, run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
from scenario.small_cluster import (
    asking,
    history,
    in_parts,
    two_partitions,
    with_a_fast_node,
    workload,
)

PLAIN = Scenario(workload(), parse_policy("easy,recent"))
NEEDING = {
    Need.PLACES: {"place": "nodes"},
    Need.SPEEDS: {"workload": with_a_fast_node()},
    Need.DEPENDENCIES: {"workload": workload({"2": "1"})},
    Need.OWN_REQUESTS: {
        "workload": asking("nCk(all, 2, 0, 5, 1)"),
        "policy": parse_policy("tetrisched,requested"),
    },
    Need.ANY_POLICY: {"policy": parse_policy("prio")},
    Need.EVENT_LOG: {"event_log": "events.jsonl"},
    Need.LEARNED_BEFORE: {"learned_before": HistoryWorkload(history())},
    Need.CYCLES: {"conditions": ClusterConditions(cycle_seconds=4.0)},
    Need.CONDITIONS: {"conditions": ClusterConditions(start_delay_seconds=1.0)},
    Need.NODE_CHANGES: {"conditions": ClusterConditions(node_changes=(NodeRemoved(1.0, "n1"),))},
    Need.SHARED_NODES: {"conditions": ClusterConditions(share_nodes=True)},
    Need.TASKS: {"workload": in_parts(), "policy": parse_policy("distsched")},
}
DIVIDED = replace(workload(), partitions={"A": 4, "B": 2})
NEEDING[Need.TOGETHER] = {"workload": DIVIDED}
ANY_SIMULATION = {
    Need.WORKLOAD: {"workload": workload()},
    Need.TRUTH: {"policy": parse_policy("easy,clairvoyant")},
    Need.CONVENTIONS: {"conventions": PREDICTSIM},
    Need.PARTITIONS: {
        "workload": DIVIDED.with_jobs(DIVIDED.jobs.with_columns(partition=pl.lit("A")))
    },
}
COMMANDS = replace(PLAIN, workload=None, commands=RunDirectory(Path("run")))


def test_the_quickest_that_can():
    """A pool under a compiled policy, also before its log is read; a seed alone draws nothing."""
    for scenario in (
        PLAIN,
        replace(PLAIN, workload=None),
        replace(PLAIN, enforce_limits=True),
        replace(PLAIN, conditions=ClusterConditions(seed=3)),
        *(replace(PLAIN, **each) for each in ANY_SIMULATION.values()),
    ):
        assert engine_of(scenario) is COMPILED_REPLAY


@pytest.mark.parametrize("need", NEEDING)
def test_each_need_alone_takes_the_event_engine(need):
    """And the replay, asked for by name, is refused with what is missing and what would do."""
    scenario = replace(PLAIN, **NEEDING[need])
    assert engine_of(scenario) is EVENT_ENGINE
    with pytest.raises(InputError, match=need) as refused:
        engine_of(replace(scenario, engine=COMPILED_REPLAY.name))
    assert (refused.value.field, refused.value.value) == ("engine", COMPILED_REPLAY.name)
    assert refused.value.expected == EVENT_ENGINE.name


def test_every_need_is_tried():
    """By one of the tests of this file."""
    of_tasks = {*TASK_REPLAY.can} - {*ANY_SIMULATION, Need.LEARNED_BEFORE}
    assert {*NEEDING, *ANY_SIMULATION, Need.COMMANDS, Need.GANGS, Need.LIMITS, *of_tasks} == {*Need}


TASKS = replace(PLAIN, policy=parse_policy("slearn"))


def test_tasks_that_start_apart_have_their_replay():
    """Also with a history; what it cannot is refused, by name or not."""
    assert engine_of(TASKS) is TASK_REPLAY
    assert engine_of(replace(TASKS, learned_before=HistoryWorkload(history()))) is TASK_REPLAY
    with pytest.raises(InputError, match="queues of tasks"):
        engine_of(replace(TASKS, engine=COMPILED_REPLAY.name))
    with pytest.raises(InputError, match="does not have jobs whose tasks start together"):
        engine_of(replace(PLAIN, engine=TASK_REPLAY.name))
    for changes in ({"event_log": "events.jsonl"}, {"enforce_limits": True}):
        with pytest.raises(InputError, match="cannot be simulated with"):
            engine_of(replace(TASKS, **changes))
    with pytest.raises(InputError, match="cannot be run with"):
        engine_of(replace(COMMANDS, policy=TASKS.policy))


def test_a_job_that_the_tasks_table_leaves_out_is_not_left_waiting():
    """Its equal tasks are the replay's to make; as a gang it would never start in such queues."""
    some = replace(TASKS, workload=in_parts())
    assert engine_of(some) is TASK_REPLAY
    with pytest.raises(InputError, match="jobs whose tasks are unknown cannot be simulated with"):
        engine_of(replace(some, event_log="events.jsonl"))
    of_all = in_parts()
    of_all = of_all.with_jobs(of_all.jobs.filter(pl.col("job_id").is_in(of_all.tasks["job_id"])))
    every = replace(TASKS, workload=of_all, event_log="events.jsonl")
    gangs_too = replace(some, policy=parse_policy("task_fifo"), event_log="events.jsonl")
    assert engine_of(every) is engine_of(gangs_too) is EVENT_ENGINE


def test_the_replay_of_tasks_learns_from_jobs_alone():
    """A saved state is refused, with the field."""
    with pytest.raises(InputError, match="learns from nothing else") as refused:
        run_scenario(replace(TASKS, learned_before=SavedState(Path("state"))))
    assert refused.value.field == "--learn-from"


def test_real_commands_are_live():
    """Under any policy that learns, with what it has learned before; nothing else can."""
    for scenario in (
        COMMANDS,
        replace(COMMANDS, policy=parse_policy("prio")),
        replace(COMMANDS, learned_before=HistoryWorkload(history())),
        replace(COMMANDS, engine=LIVE.name),
    ):
        assert engine_of(scenario) is LIVE
    for engine in (COMPILED_REPLAY, EVENT_ENGINE):
        with pytest.raises(InputError, match="does not have real commands") as refused:
            engine_of(replace(COMMANDS, engine=engine.name))
        assert refused.value.expected == LIVE.name


@pytest.mark.parametrize(
    "need", [each for each in (*NEEDING, *ANY_SIMULATION) if each not in LIVE.can]
)
def test_what_real_commands_cannot_have(need):
    """Each wish that only a simulation meets is refused with a sentence, by whatever engine."""
    wishes = {**NEEDING, **ANY_SIMULATION}[need]
    for engine in (None, LIVE.name, EVENT_ENGINE.name):
        with pytest.raises(InputError, match=f"real commands cannot be run with.* {need}"):
            engine_of(replace(COMMANDS, **wishes, engine=engine))


def test_a_simulation_is_not_live():
    """Not even before its log is read; nor is a run of commands simulated."""
    with pytest.raises(InputError, match="does not have jobs of a log") as refused:
        engine_of(replace(PLAIN, workload=None, engine=LIVE.name))
    assert refused.value.expected == f"{COMPILED_REPLAY.name} or {EVENT_ENGINE.name}"
    with pytest.raises(InputError, match="no jobs"):
        run_scenario(COMMANDS)


@pytest.mark.parametrize(
    "conditions",
    [ClusterConditions(runtime_noise=0.1), ClusterConditions(outages=(Outage("n1", 1.0, 2.0),))],
)
def test_all_conditions_are_seen(conditions):
    """Noise and outages as delays."""
    assert engine_of(replace(PLAIN, conditions=conditions)) is EVENT_ENGINE


def test_a_cluster_of_its_own_is_a_place():
    """Even one that looks like the workload's processors: it may have another size."""
    assert engine_of(replace(PLAIN, place=Cluster.of_processors(2))) is EVENT_ENGINE


def test_an_engine_by_name():
    """Each gives the same schedule, and its name is in the result; another name is none."""
    names = [each.name for each in ENGINES.values() if {Need.WORKLOAD, Need.GANGS} <= each.can]
    schedules = [run_scenario(replace(PLAIN, engine=name)) for name in names]
    assert [each.meta.engine for each in schedules] == names
    assert schedules[0].jobs.equals(schedules[1].jobs)
    with pytest.raises(UnknownNameError, match="did you mean 'event-engine'"):
        engine_of(replace(PLAIN, engine="event-engin"))


def test_a_scenario_without_jobs_is_none_to_run():
    """It has to be read first."""
    with pytest.raises(InputError, match="no jobs"):
        run_scenario(replace(PLAIN, workload=None))


def test_partitions_are_decided_for_all_policies_at_once():
    """They are kept apart, or one pool because one policy knows none: either is said."""
    workload = two_partitions()
    apart = on_partitions(workload, one_pool=False)
    assert apart.partitions == {"A": 8, "B": 8}
    pool = on_partitions(workload, one_pool=True)
    assert not pool.partitions
    assert "one pool of processors: policies that start tasks apart" in pool.partitions_said
    with pytest.raises(InputError, match="policies that start tasks apart know none"):
        on_partitions(apart, one_pool=True)
