"""Shims that hang: limits and requests to stop hold all the same, and every end has its reason."""

from __future__ import annotations

import os
import signal
import time

import pytest

from foresail.live.adapters.local import attempts, cluster
from foresail.live.adapters.local.cluster import LocalCluster, LocalParameters
from foresail.live.adapters.local.shim_files import contents
from foresail.live.cluster_plugin import RunContext
from foresail.live.command_job import CommandJob
from foresail.model.decision import Placement, Preempt, Start
from foresail.model.event import EndedBecause

HANGS_OPENING = (
    "import sys, time; sys.path.append(sys.argv[1]); "
    "from foresail.live.adapters.local import job_shim; "
    "job_shim.JobLog = lambda *given: time.sleep(1000.0); job_shim.serve()"
)


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A starter of jobs with a limit (seconds); it ends what a failed test leaves."""
    monkeypatch.setattr(cluster, "_HANGS_SECONDS", 0.3)
    adapters = []

    def start(limit_seconds=None):
        job = CommandJob("1", "1", "sleep 100", "/", requested_seconds=limit_seconds)
        places = tmp_path / "attempts", tmp_path / "logs"
        for each in places:
            each.mkdir()
        context = RunContext(*places, {"1": job}, lambda said: None)
        parameters = LocalParameters(cpus=2, grace_seconds=0.1, sample_seconds=0.1)
        adapters.append(LocalCluster(parameters).connect(context))
        adapters[0].carry_out(Start("1", Placement.whole("all", 1)), time.time())
        return adapters[0]

    yield start
    monkeypatch.undo()
    for adapter in adapters:
        for watched in adapter._watched.values():
            watched.attempt.stop(signal.SIGKILL)
            watched.attempt.clear_remains()
        adapter.close()


def stopped(tmp_path):
    """Stop the shim of the job."""
    until = time.monotonic() + 30.0
    while (claim := contents(str(tmp_path / "attempts" / "1.1.claim"))) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(claim["shim"][0], signal.SIGSTOP)


def end_of(adapter):
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        for each in adapter.reports(time.time()):
            return each.outcome
        time.sleep(0.02)
    raise AssertionError("it does not end")


@pytest.mark.parametrize("is_claimed", [True, False])
@pytest.mark.parametrize("by_limit", [True, False])
def test_a_hanging_shim_hears_neither_and_both_hold(
    by_limit, is_claimed, started, tmp_path, monkeypatch
):
    """A folder that does not answer, before the command or beside it: nothing of it is left."""
    if not is_claimed:
        monkeypatch.setattr(attempts, "_PROGRAM", HANGS_OPENING)
    adapter = started(0.5 if by_limit else None)
    if is_claimed:
        stopped(tmp_path)
    if not by_limit:
        adapter.carry_out(Preempt("1"), time.time())
    outcome = end_of(adapter)
    because = EndedBecause.LIMIT if by_limit else EndedBecause.PREEMPTED
    assert (outcome.ended_because, outcome.exit_code) == (because, None)
    assert "hung (a file system that does not answer?)" in outcome.reason
    assert not attempts.Attempt("1", 1, tmp_path / "attempts").is_under_way()


def test_what_cannot_be_killed_fails_and_says_so(started, tmp_path, monkeypatch):
    """A process in uninterruptible sleep, for which one that no signal reaches stands."""
    adapter = started(0.5)
    stopped(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(signal, "pidfd_send_signal", lambda *given: None)
        outcome = end_of(adapter)
    assert outcome.ended_because is EndedBecause.FAILED
    assert "cannot be killed" in outcome.reason
    claim = contents(str(tmp_path / "attempts" / "1.1.claim"))
    os.kill(claim["shim"][0], signal.SIGKILL)


def test_one_that_waits_for_room_on_the_disk_is_not_killed(started, tmp_path, monkeypatch):
    adapter = started(0.5)
    stopped(tmp_path)
    monkeypatch.setattr(attempts.Attempt, "obstacle", lambda attempt: "no space left")
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        assert not adapter.reports(time.time())
        time.sleep(0.05)
