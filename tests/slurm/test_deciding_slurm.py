"""A service that decides on a real Slurm, as an operator: nothing is lost, run twice or stuck."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from live_service import live_service
from real_slurm import as_operator, run_as, slurm, submit
from shared import shared
from test_observed_slurm import until
from until import until as wait_until

__all__ = ["slurm"]

await_that = partial(wait_until, pause=0.1)

FORESAIL = [sys.executable, "-c", "from foresail.cli.main import main; main()", "slurm"]
SETTINGS = "cluster = 'slurm(decides=main)'\npolicy = 'easy,recent'"


def stands(variables: Mapping[str, str], job_id: str) -> tuple[str, str, str]:
    """Return state, reason and restarts of a job."""
    fields = "StateCompact:.9,Reason:.40,RestartCnt:.9"
    words = ["squeue", "-h", "-a", "-t", "all", "-j", job_id, "-O", fields]
    said = subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout
    return said[:9].strip(), said[9:49].strip(), said[49:58].strip()


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_jobs_of_slurm_are_started_from_here(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through kills, requeue, cancellation, holds, an absence of slurmctld, and a dead service."""
    operator, state = as_operator(slurm, tmp_path), tmp_path / "state"
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    monkeypatch.setenv("PATH", f"{operator['PATH']}:{slurm['PATH']}")
    tool, folder = shared("tools/slurm-cluster"), slurm["FOLDER"]
    runs = tmp_path / "runs"
    runs.touch()
    runs.chmod(0o666)

    def control(*words: str) -> None:
        subprocess.run(words, env=slurm, check=True, capture_output=True)

    def job(seconds: float, *words: str) -> str:
        line = f"echo $SLURM_JOB_ID >>{runs}; sleep {seconds}"
        return submit(slurm, "-t", "5", *words, "--wrap", line)

    with live_service(tmp_path, SETTINGS) as service:
        first = job(9, "-n", "8")
        until(service, **{f"_{first}": "running"})
        wide, narrow, kept = job(3600, "-n", "8"), job(1, "-n", "2"), job(1, "-n", "1", "-H")
        await_that(lambda: stands(slurm, narrow)[1:] == ("JobHeldAdmin", "0"))
        try_release = ["scontrol", "release", narrow]
        refused = subprocess.run(try_release, env=slurm, user="nobody", capture_output=True)
        assert refused.returncode != 0
        await_that(lambda: stands(slurm, wide)[1] != "JobHeldAdmin")
        service.process.kill()  # between letting it go and its beginning, or just after that
    with live_service(tmp_path, SETTINGS) as service:
        until(service, **{f"_{wide}": "running", f"_{narrow}": "pending", f"_{kept}": "held"})
        with service.client() as client:
            left = "left to the cluster: is kept back (JobHeldUser)"
            await_that(lambda: left in client.get(f"/v1/jobs/{kept}").text)
            client.post("/v1/jobs/cancel", json={"job_ids": [kept]}).raise_for_status()
            client.post(f"/v1/jobs/{narrow}/hold").raise_for_status()
        until(service, **{f"_{kept}": "cancelled", f"_{narrow}": "held"})
        await_that(lambda: stands(slurm, kept)[0] == "CA")
        marks = state / "attempts" / "slurm-held"
        await_that(lambda: json.loads(marks.read_text())[narrow] == "foresail:kept")
        control("scontrol", "requeue", wide)
        await_that(lambda: stands(slurm, wide)[0] == "R" and stands(slurm, wide)[2] == "1")
        jobs = until(service, **{f"_{wide}": "running"})
        assert jobs[wide]["attempt"] == 2
        control(tool, "stop", folder, "slurmctld")
        time.sleep(12.0)
        with service.client() as client:
            assert "the cluster cannot be reached" in client.get("/v1/health").text
        control(tool, "start", folder, "slurmctld")
        time.sleep(5.0)
        control("scancel", wide)
        last = job(1, "-n", "8")
        until(service, **{f"_{wide}": "cancelled", f"_{last}": "completed"})
        blocking = job(3600, "-n", "8")
        until(service, **{f"_{blocking}": "running"})
        waits = job(1, "-n", "4")
        await_that(lambda: stands(slurm, waits)[1] == "JobHeldAdmin")
        tried = subprocess.run([*FORESAIL, "release-all", state, "--dry-run"], capture_output=True)
        assert tried.stdout.decode() == f"would let go of 1 job: {waits}\n"
        watch = subprocess.Popen([*FORESAIL, "watch", state], stderr=subprocess.PIPE)
        service.process.kill()
    died = time.monotonic()
    try:
        await_that(lambda: stands(slurm, waits)[1:] != ("JobHeldAdmin", "0"), 70.0)
        assert time.monotonic() - died < 60.0
        control("scancel", blocking)
        await_that(lambda: stands(slurm, waits)[0] == "CD")
        assert stands(slurm, narrow)[1] == "JobHeldAdmin"
    finally:
        os.kill(watch.pid, signal.SIGKILL)
        watch.communicate()
    called = {line.split()[0] for line in (tmp_path / "called").read_text().splitlines()}
    assert called == {"squeue", "sinfo", "sacct", "scontrol", "scancel"}
    assert sorted(runs.read_text().split()) == sorted([first, wide, wide, last, blocking, waits])


@pytest.fixture
def with_factors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let a cluster that comes up order its jobs by several factors."""
    (tmp_path / "conf").write_text("PriorityType=priority/multifactor\n")
    monkeypatch.setenv("SLURM_CLUSTER_CONF", str(tmp_path / "conf"))


@pytest.mark.slow
@pytest.mark.usefixtures("with_factors")
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_the_order_of_slurm_is_changed(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is likely short goes first, though it came later; a held job stays held."""
    operator = as_operator(slurm, tmp_path)
    path = f"{operator['PATH']}:{slurm['PATH']}"

    def job(seconds: float, name: str, *words: str) -> str:
        return submit(slurm, "-t", "60", "-J", name, *words, "--wrap", f"sleep {seconds}")

    def order(*words: str, path: str = path) -> subprocess.CompletedProcess[str]:
        command = [*FORESAIL, "order", *words]
        return subprocess.run(
            command, env={**slurm, "PATH": path}, capture_output=True, text=True, check=False
        )

    for name, seconds in (("fast", 0), ("fast", 0), ("slow", 20), ("slow", 20)):
        job(seconds, name, "-n", "2")
    await_that(lambda: not queued(slurm))
    time.sleep(3.0)
    blocking = job(3600, "other", "-n", "8")
    slow, fast, held = job(20, "slow", "-n", "8"), job(10, "fast", "-n", "8"), job(0, "fast", "-H")
    array = job(0, "unknown", "-n", "8", "-a", "1-2")
    await_that(lambda: stands(slurm, slow)[1] in ("Resources", "Priority"))
    tried = order("main", "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.startswith("would set 3 jobs: ")
    assert order("main", path=f"{nobody(slurm, tmp_path)}:{slurm['PATH']}").returncode == 2
    done = order("main")
    assert done.stdout.replace("set", "would set", 1) == tried.stdout, done.stderr
    factors = dict(each.split() for each in done.stdout.partition(": ")[2].strip().split(", "))
    assert int(factors[fast]) > int(factors[slow]) > int(factors[array]) > 0
    assert order("main").stdout == "set 0 jobs\n"
    assert stands(slurm, held)[1] == "JobHeldUser"
    subprocess.run(["scancel", blocking], env=slurm, check=True)
    await_that(lambda: stands(slurm, fast)[0] in ("R", "CG", "CD"))
    assert stands(slurm, slow)[0] == "PD"
    assert order("main", "--most", "0").stdout != "set 0 jobs\n"
    assert order("main", "--most", "-1").returncode == order("nowhere").returncode == 2


def queued(variables: Mapping[str, str]) -> str:
    return subprocess.run(["squeue", "-h"], env=variables, capture_output=True, text=True).stdout


def nobody(variables: Mapping[str, str], folder: Path) -> Path:
    """Return a folder of commands that run as somebody without rights."""
    (folder / "nobody").mkdir()
    run_as("nobody", ("scontrol",), variables, folder / "nobody")
    return folder / "nobody" / "bin"


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-newer"], indirect=True)
def test_shapes_and_deadlines_of_a_newer_slurm(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 24.11 without accounting: whole nodes, deadlines by comment, what is left to Slurm."""
    monkeypatch.setenv("PATH", slurm["PATH"])
    due = "foresail deadline=2099-01-01T00:00 worth=1000"

    def job(seconds: float, *words: str) -> str:
        return submit(slurm, "-t", "5", *words, "--wrap", f"sleep {seconds}")

    with live_service(tmp_path, SETTINGS) as service:
        first = job(12, "-n", "8")
        until(service, **{f"_{first}": "running"})
        whole, due_job = job(1, "-N", "2", "--exclusive"), job(1, "-n", "3", "--comment", due)
        wide, bad = job(1, "-n", "2", "-c", "2"), job(1, "-n", "1", "--comment", "foresail soon")
        spread = job(1, "-N", "2", "-n", "2")
        left = "left to the cluster: asks for 2 nodes"
        with service.client() as client:
            await_that(lambda: left in client.get(f"/v1/jobs/{spread}").text)
            for each in (whole, due_job, wide, bad):
                await_that(lambda name=each: stands(slurm, name)[1:] == ("JobHeldAdmin", "0"))
            rows = {each: client.get(f"/v1/jobs/{each}").json() for each in (whole, due_job, bad)}
            assert rows[whole]["cpus"] == 8
            assert rows[due_job]["deadline_seconds"] > 4e9
            assert rows[bad]["deadline_seconds"] is None
        names = (first, whole, due_job, wide, bad, spread)
        until(service, **dict.fromkeys([f"_{each}" for each in names], "completed"))
    released = subprocess.run([*FORESAIL, "release-all", tmp_path / "state"], capture_output=True)
    assert released.stdout.decode() == "let go of 0 jobs\n"
