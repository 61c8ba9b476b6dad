"""Attempts are measured by a clock that nobody sets, and belong to one store alone."""

import os
import time

import pytest

from foresail.live.adapters.local import attempts, job_shim, shim_files
from foresail.live.adapters.local.attempts import Attempt, AttemptStart
from foresail.live.command_job import CommandJob
from foresail.model.decision import Placement, Start
from foresail.model.event import EndedBecause
from local_runs import LocalRun


def start(number=1):
    return Start("1", Placement.whole("all", 1), number)


def marking(folder, name, seconds=0.0):
    line = f"echo {name} >> {folder}/marks; sleep {seconds}"
    return CommandJob("1", "job", line, "/")


@pytest.mark.parametrize("comes", ["started", "resumed"])
def test_another_stores_attempt_is_never_taken_for_ones_own(tmp_path, comes):
    """Its job would come out completed, with another's log, and never have run."""
    first = LocalRun(tmp_path, "one")
    assert first.ran(marking(tmp_path, "first")).ended_because is EndedBecause.COMPLETED
    first.adapter.close()
    run = LocalRun(tmp_path, "two")
    job, second = marking(tmp_path, "second"), run.adapter
    if comes == "started":
        run.start(job)
        (report,) = second.reports(time.time())
    else:
        run.commands["1"] = job
        (report,) = second.resume([start()], (), time.time())
    assert (report.outcome.ended_because, report.outcome.exit_code) == (EndedBecause.FAILED, None)
    assert "another store" in run.notes[-1]
    assert run.ran(job, 2).ended_because is EndedBecause.COMPLETED
    second.close()
    assert (tmp_path / "marks").read_text() == "first\nsecond\n"


def test_a_shim_that_finds_anothers_claim_does_not_run(tmp_path):
    """It appears between the look and the claim."""
    run = LocalRun(tmp_path, "two")
    run.commands["1"], adapter = marking(tmp_path, "never"), run.adapter
    told = {"identity": "one", "boot": "b", "shim": [1, 1], "command": [1, 1]}
    shim_files.claim(str(tmp_path / "attempts" / "1.1"), told)
    adapter._begin(adapter._watch(start(), time.time()), time.time())
    assert run.outcome().ended_because is EndedBecause.FAILED
    adapter.close()
    assert not (tmp_path / "marks").exists()


@pytest.mark.parametrize("step", [3600.0, -7200.0])
def test_a_step_of_the_wall_clock_is_no_part_of_what_is_measured(tmp_path, monkeypatch, step):
    """The shim's wall clock is set while the command runs; its limit holds all the same."""
    prefix = str(tmp_path / "1.1")
    real, begin = time.time, time.monotonic()
    monkeypatch.setattr(
        job_shim.time, "time", lambda: real() + (step if time.monotonic() - begin > 0.2 else 0.0)
    )
    request = {
        "prefix": prefix,
        "identity": "",
        "account": None,
        "command": ["sleep", "0.5"],
        "script": None,
        "limit_seconds": 20.0,
        "grace_seconds": 1.0,
        "cpus": [],
        "gpus": [],
        "cgroup": None,
        "directory": "/",
        "environment": {"PATH": "/usr/bin:/bin"},
        "output": str(tmp_path / "out"),
        "errors": None,
        "begun_anew": [],
        "log_bytes": 1000,
    }
    shim = os.fork()
    if shim == 0:
        try:
            job_shim.keep(prefix, request)
        finally:
            os._exit(0)
    os.waitpid(shim, 0)
    status = Attempt("1", 1, tmp_path).status()
    assert status.ended_because is EndedBecause.COMPLETED
    assert 0.5 <= status.runtime_seconds < 5.0


@pytest.mark.parametrize("step", [3600.0, -7200.0])
def test_neither_are_those_seen_by_the_adapter(tmp_path, step):
    run = LocalRun(tmp_path)
    begin = time.time()
    run.start(marking(tmp_path, "job", 0.3))
    time.sleep(0.1)
    outcome = run.outcome(lambda: time.time() + step)
    run.adapter.close()
    assert 0.3 <= outcome.runtime_seconds < 5.0
    assert begin + step <= outcome.start_seconds <= time.time() + step


def test_after_another_boot_the_record_of_the_shim_decides(monkeypatch):
    """What it wrote down of the wall clock, unless that is later than this boot."""
    monkeypatch.setattr(attempts, "boot_id", lambda: "now")
    monkeypatch.setattr(attempts, "since_boot_seconds", lambda: 60.0)
    assert AttemptStart(1000.0, 5.0, "before").by_clock_of(9000.0) == 1000.0
    assert AttemptStart(8999.0, 5.0, "before").by_clock_of(9000.0) == 8940.0
    assert AttemptStart(7.0, 50.0, "now").by_clock_of(9000.0) == 8990.0


def test_a_job_that_a_reboot_took_was_lost_when_the_machine_began_again(tmp_path, monkeypatch):
    run, now = LocalRun(tmp_path), time.time()
    run.commands["1"] = marking(tmp_path, "job")
    told = {"identity": "", "boot": "before", "shim": [1, 1], "command": [1, 1]}
    told |= {"start_unix_seconds": now - 9000.0, "start_since_boot_seconds": 5.0}
    told |= {"cpus": [], "gpus": [], "cgroup": None, "script": None}
    shim_files.claim(str(tmp_path / "attempts" / "1.1"), told)
    monkeypatch.setattr(attempts, "since_boot_seconds", lambda: 60.0)
    (report,) = run.adapter.resume([start()], (), now)
    run.adapter.close()
    assert report.outcome.ended_because is EndedBecause.LOST
    assert report.outcome.runtime_seconds == pytest.approx(8940.0)
