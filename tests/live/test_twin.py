"""The twin: a log repeated by a fresh controller gives the instructions it holds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from foresail.checks.rules import tiny_workload
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.command_job import CommandJob
from foresail.live.twin import differences
from foresail.model.cluster import Cluster
from foresail.model.decision import Start
from foresail.model.event import PREDICTSIM, STANDARD, Ended, NodeRemoved, Submitted, Tick
from foresail.model.job import DeadlineValue, Dependency, DependencyKind, Job, StartConditions
from foresail.record.job_life import ImpossibleTransition
from foresail.record.log_text import JsonLinesLog, MemoryLog, read_log
from foresail.record.records import Decided, EventTaken, Instructed, Manifest
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.simulator.conditions import ClusterConditions, Outage
from foresail.simulator.driver import simulate_forward
from foresail.simulator.engine import simulate_events
from scenario.small_cluster import in_parts, workload
from standins import RecordingObserver, command, new_run, supervise
from toys import Constant, Doubling, Easy, Fcfs, PreemptsOnce

JOBS = [(0, 4, 100, 150), (1, 4, 20, 40), (1, 2, 30, 90), (3, 9, 1, 1), (100, 1, 5, 5)]
SCHEDULERS = {"fcfs": Fcfs, "easy": Easy, "preempting": lambda: PreemptsOnce("1")}


def manifest(policy: str, conventions=STANDARD) -> Manifest:
    return Manifest(policy, Cluster.of_processors(4), conventions)


def build(manifest: Manifest, log=None) -> Controller:
    scheduler = SCHEDULERS[manifest.policy]()
    return Controller(
        manifest.cluster, scheduler, Constant(10.0), Doubling(), manifest.conventions, log
    )


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM])
@pytest.mark.parametrize("policy", SCHEDULERS)
def test_a_simulated_run_repeats_from_its_file(tmp_path, policy, conventions):
    """Preemptions, corrections, jobs too wide: every step gives the same instructions again."""
    with JsonLinesLog(tmp_path / "events.jsonl", manifest(policy, conventions)) as log:
        simulate_events(tiny_workload(JOBS), build(manifest(policy, conventions), log), policy)
    assert list(differences(read_log(tmp_path / "events.jsonl"), build)) == []


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_a_run_with_conditions_repeats(policy):
    """Begins, arrays of which two run at once, singletons, and who waits for a begin."""
    log = MemoryLog(manifest(policy))
    after = (Dependency(DependencyKind.AFTER, ("0",)),)
    conditions = [
        StartConditions(begin_seconds=25.0),
        StartConditions(dependencies=after),
        *4 * [StartConditions(array="a", most_at_once=2)],
        *3 * [StartConditions(singleton=True)],
    ]
    one = Job.gang("", 0.0, 1, 50.0, "ann")
    jobs = [
        replace(one, job_id=str(at), name="one", conditions=each, after=("0",) if at == 1 else ())
        for at, each in enumerate(conditions)
    ]
    runtimes = {job.job_id: 10.0 + at for at, job in enumerate(jobs)}
    ended = list(simulate_forward(build(log.records[0], log), runtimes, jobs))
    assert len(ended) == len(jobs)
    assert {each.job_id: each.start_seconds for each in ended}["1"] >= 25.0
    assert list(differences(log.records, build)) == []


def test_a_drained_run_repeats_drained():
    """The drain comes before the same step as it did; without it, job 2 would start."""
    log = MemoryLog(manifest("fcfs"))
    controller = build(log.records[0], log)
    controller.step(0, [Submitted(0, Job.gang("1", 0, 1))])
    controller.step(1, [])
    controller.drain()
    controller.step(2, [Submitted(2, Job.gang("2", 2, 1))])
    assert list(differences(log.records, build)) == []
    undrained = [each for each in log.records if type(each).__name__ != "Drained"]
    assert len(list(differences(undrained, build))) == 1


def test_another_policy_shows_its_differences():
    """A log of EASY repeated under FCFS differs first where EASY lets a job overtake."""
    log = MemoryLog(manifest("easy"))
    simulate_events(
        tiny_workload([(0, 3, 9, 9), (1, 2, 9, 9), (2, 1, 5, 5)]),
        build(log.records[0], log),
        "easy",
    )
    found = list(differences([replace(log.records[0], policy="fcfs"), *log.records[1:]], build))
    assert (found[0].session, found[0].step, found[0].time) == (0, 2, 2.0)
    assert [each.job_id for each in found[0].recorded if isinstance(each, Start)] == ["3"]
    assert found[0].repeated == ()
    assert len(found) == 1


def test_a_log_whose_events_cannot_be_is_an_error():
    """A job that ends twice, or that ends before it starts: no decision explains it."""
    log = MemoryLog(manifest("easy"))
    simulate_events(tiny_workload(JOBS), build(log.records[0], log), "easy")
    end = next(
        each for each in log.records if isinstance(each, EventTaken) and type(each.event) is Ended
    )
    with pytest.raises(ImpossibleTransition):
        list(differences([*log.records, replace(end, step=999)], build))
    first = replace(end, step=0, time=0.0, event=replace(end.event, time=0.0))
    moved = [first if each is end else each for each in log.records]
    with pytest.raises(ImpossibleTransition):
        list(differences(moved, build))
    submitted = log.records[1]
    assert isinstance(submitted.event, Submitted)
    with pytest.raises(ImpossibleTransition):
        list(differences([*log.records, replace(submitted, step=999)], build))


def test_a_changed_log_is_noticed():
    """One instruction taken out of the log is one difference."""
    log = MemoryLog(manifest("easy"))
    simulate_events(tiny_workload(JOBS), build(log.records[0], log), "easy")
    at = next(i for i, each in enumerate(log.records) if isinstance(each, Instructed))
    assert len(list(differences(log.records[:at] + log.records[at + 1 :], build))) == 1


def test_every_session_of_a_log_is_repeated_by_itself():
    """A log that was continued after a restart has two manifests and two fresh controllers."""
    records = []
    for _ in range(2):
        log = MemoryLog(manifest("fcfs"))
        controller = build(log.records[0], log)
        controller.step(0, [Submitted(0, Job.gang("1", 0, 1)), Tick(0)])
        records += log.records
    assert list(differences(records, build)) == []


CONDITIONS = {
    "outages": ClusterConditions(outages=(Outage("n1", 4.0, 20.0), Outage("n2", 9.0, 11.0))),
    "changes": ClusterConditions(node_changes=(NodeRemoved(5.0, "n1"), NodeRemoved(9.0, "n3"))),
    "delays": ClusterConditions(start_delay_seconds=2.0, runtime_noise=0.3),
    "cycles": ClusterConditions(cycle_seconds=4.0),
}


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize(
    "policy", ["prio,recent", "easy,recent,incremental", "tetrisched", "task_fifo,recent"]
)
def test_simulations_are_decided_again(tmp_path, policy, conditions):
    """Nodes that take jobs along, jobs that are stopped, tasks apart, ends at the same instant."""
    path = tmp_path / "events.jsonl"
    jobs = in_parts() if policy.startswith("task_fifo") else workload()
    scenario = Scenario(jobs, parse_policy(policy), "nodes", conditions=conditions)
    run_scenario(replace(scenario, event_log=path))

    def build_named(manifest):
        parts = parse_policy(manifest.policy).build()
        return Controller(manifest.cluster, *parts, manifest.conventions)

    assert list(differences(read_log(path), build_named)) == []


def controller_of(manifest: Manifest) -> Controller:
    return Controller(manifest.cluster, *parse_policy(manifest.policy).build())


@pytest.mark.parametrize(
    "policy",
    [
        "easy(order=shortest),recent,incremental",
        "conservative,recent(k=3),doubling",
        "sjf",
    ],
)
def test_a_real_run_is_decided_again_from_its_log_alone(tmp_path, policy):
    """Twenty commands of two widths, with limits, failures, dependencies and history."""
    chance = random.Random(11)
    jobs = [
        command(
            f"j{n}",
            f"sleep {chance.uniform(0.0, 0.15):.2f}; exit {int(n == 7)}",
            cpus=1 + (n % 4 == 0),
            requested_seconds=chance.choice([0.1, 0.5, 5.0]),
            after=(f"j{n - 1}",) if n % 6 == 3 else (),
        )
        for n in range(20)
    ]
    history = tmp_path / "history.jsonl"
    for name in ("first", "second"):
        run = new_run(tmp_path / name, jobs, history=history, policy=policy, grace=0.1)
        result = supervise(run, RecordingObserver())
        assert result.left == ()
        records = list(read_log(run.events))
        assert sum(isinstance(record, Decided) for record in records) >= 5
        assert list(differences(records, controller_of)) == []


def test_another_policy_would_have_decided_differently(tmp_path):
    """The comparison can fail: first come first served does not repeat shortest first."""
    jobs = [command(f"j{n}", "sleep 0.05", requested_seconds=9.0 - n) for n in range(6)]
    run = new_run(tmp_path / "run", jobs, cpus=1, policy="sjf")
    supervise(run, RecordingObserver())

    def other(manifest: Manifest) -> Controller:
        return Controller(manifest.cluster, *parse_policy("fcfs").build())

    assert list(differences(read_log(run.events), other)) != []


def test_a_real_run_with_a_reservation_waits_for_it_and_repeats(tmp_path, monkeypatch):
    """Nothing runs and nothing else is to come: the supervisor wakes up when the promise begins."""
    plain = CommandJob.specification

    def with_deadline(self, submit_seconds):
        job = plain(self, submit_seconds)
        return replace(job, value=DeadlineValue(submit_seconds + 1.5))

    monkeypatch.setattr(CommandJob, "specification", with_deadline)
    policy = "capacity(cycle_seconds=0.1)"
    jobs = [command("promised", "sleep 0.1", requested_seconds=0.5)]
    run = new_run(tmp_path / "run", jobs, policy=policy, grace=0.1)
    result = supervise(run, RecordingObserver())
    assert result.left == ()
    row = result.schedule.jobs.row(0, named=True)
    assert row["accepted"] is True
    assert row["start_seconds"] >= 0.8
    assert list(differences(read_log(run.events), controller_of)) == []
