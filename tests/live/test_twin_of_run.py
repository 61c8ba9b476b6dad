"""The twin: the log of a real run, taken again by the simulator's reader, decides the same."""

import random
from dataclasses import replace

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.command_job import CommandJob
from foresail.live.twin import differences
from foresail.model.job import DeadlineValue
from foresail.record.log_text import read_log
from foresail.record.records import Decided, Manifest
from standins import RecordingObserver, command, new_run, supervise


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
