"""Shims that hang: limits and requests to stop hold all the same, and every end has its reason."""

from __future__ import annotations

import os
import signal
import time

import pytest

from foresail.live.adapters.local import attempts, cluster
from foresail.live.adapters.local.shim_files import contents
from foresail.live.command_job import CommandJob
from foresail.model.decision import Preempt
from foresail.model.event import EndedBecause
from local_runs import LocalRun
from until import until

HANGS_OPENING = (
    "import sys, time; sys.path.append(sys.argv[1]); "
    "from foresail.live.adapters.local import job_shim; "
    "job_shim.JobLog = lambda *given: time.sleep(1000.0); job_shim.serve()"
)


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A starter of jobs with a limit (seconds); it ends what a failed test leaves."""
    monkeypatch.setattr(cluster, "_HANGS_SECONDS", 0.3)
    runs = []

    def start(limit_seconds=None):
        job = CommandJob("1", "1", "sleep 100", "/", requested_seconds=limit_seconds)
        runs.append(LocalRun(tmp_path, grace_seconds=0.1, sample_seconds=0.1))
        runs[0].start(job)
        return runs[0]

    yield start
    monkeypatch.undo()
    for run in runs:
        for watched in run.adapter._watched.values():
            watched.attempt.stop(signal.SIGKILL)
            watched.attempt.clear_remains()
        run.adapter.close()


def stopped(tmp_path):
    """Stop the shim of the job."""
    claim = until(lambda: contents(str(tmp_path / "attempts" / "1.1.claim")), 30.0)
    os.kill(claim["shim"][0], signal.SIGSTOP)


@pytest.mark.parametrize("is_claimed", [True, False])
@pytest.mark.parametrize("by_limit", [True, False])
def test_a_hanging_shim_hears_neither_and_both_hold(
    by_limit, is_claimed, started, tmp_path, monkeypatch
):
    """A folder that does not answer, before the command or beside it: nothing of it is left."""
    if not is_claimed:
        monkeypatch.setattr(attempts, "_PROGRAM", HANGS_OPENING)
    run = started(0.5 if by_limit else None)
    if is_claimed:
        stopped(tmp_path)
    if not by_limit:
        run.adapter.carry_out(Preempt("1"), time.time())
    outcome = run.outcome(seconds=10.0)
    because = EndedBecause.LIMIT if by_limit else EndedBecause.PREEMPTED
    assert (outcome.ended_because, outcome.exit_code) == (because, None)
    assert "hung (a file system that does not answer?)" in outcome.reason
    assert not attempts.Attempt("1", 1, tmp_path / "attempts").is_under_way()


def test_what_cannot_be_killed_fails_and_says_so(started, tmp_path, monkeypatch):
    """A process in uninterruptible sleep, for which one that no signal reaches stands."""
    run = started(0.5)
    stopped(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(signal, "pidfd_send_signal", lambda *given: None)
        outcome = run.outcome(seconds=10.0)
    assert outcome.ended_because is EndedBecause.FAILED
    assert "cannot be killed" in outcome.reason
    claim = contents(str(tmp_path / "attempts" / "1.1.claim"))
    os.kill(claim["shim"][0], signal.SIGKILL)


def test_one_that_waits_for_room_on_the_disk_is_not_killed(started, tmp_path, monkeypatch):
    run = started(0.5)
    stopped(tmp_path)
    monkeypatch.setattr(attempts.Attempt, "obstacle", lambda attempt: "no space left")
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        assert not run.adapter.reports(time.time())
        time.sleep(0.05)
