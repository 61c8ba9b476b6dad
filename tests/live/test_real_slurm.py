"""Slurm itself, as nobody: what is read of it, and what is said of its jobs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from real_slurm import as_nobody, slurm, submit
from shared import shared

__all__ = ["slurm"]


def foresail(variables: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    # The readers find setpriv by the PATH that they are given here.
    code = "from foresail.cli.main import main; main()"
    command = [sys.executable, "-c", code, "slurm", *words]
    path = f"{variables['PATH']}:/usr/bin:/bin"
    return subprocess.run(
        command, env={**variables, "PATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_starts_are_foreseen_from_accounting(slurm: dict[str, str], tmp_path: Path) -> None:
    for _ in range(8):
        submit(slurm, "-n", "4", "-t", "5", "-J", "a|b,\nc", "--wrap", "sleep 1")
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        said = subprocess.run(["squeue", "-h"], env=slurm, capture_output=True, text=True)
        if not said.stdout.strip():
            break
        time.sleep(0.5)
    time.sleep(3.0)  # until accounting has heard of the last, and it counts as settled
    first = submit(slurm, "-n", "8", "-t", "5", "-J", "a|b,\nc", "--wrap", "sleep 90")
    last = [submit(slurm, "-n", "8", "-t", "5", "-J", "a|b,\nc", "--wrap", "true")]
    last.append(submit(slurm, "-H", "-n", "1", "-t", "5", "-J", "held", "--wrap", "true"))
    time.sleep(2.0)
    nobody = as_nobody(slurm, tmp_path)
    told = foresail(nobody, "start", "--json")
    assert told.returncode == 0, told.stderr
    jobs = {each["job_id"]: each for each in json.loads(told.stdout)["jobs"]}
    assert [*jobs] == last
    assert jobs[last[0]]["name"] == "a|b,c"
    assert jobs[last[0]]["start"]["p90"] < time.time() + 400.0
    assert jobs[last[1]]["left_to_slurm"] == "is kept back (JobHeldUser)"
    assert "starts" in foresail(nobody, "start", last[0]).stdout
    assert foresail(nobody, "start", first).returncode == 2
    called = {line.split()[0] for line in (tmp_path / "called").read_text().splitlines()}
    assert called == {"squeue", "sinfo", "sacct"}
    tool = shared("tools/slurm-cluster")
    subprocess.run([tool, "stop", slurm["FOLDER"], "slurmctld"], capture_output=True, check=True)
    away = foresail(nobody, "start")
    assert away.returncode == 2
    assert "contact slurm controller" in away.stderr


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-newer"], indirect=True)
def test_a_newer_slurm_without_accounting(slurm: dict[str, str]) -> None:
    for _ in range(2):
        job = submit(slurm, "-n", "8", "-t", "5", "-J", "x\ny", "--wrap", "sleep 60")
    time.sleep(2.0)
    told = foresail(slurm, "start", "--json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert [each["job_id"] for each in answer["jobs"]] == [job]
    assert "nothing was learned: sacct: Slurm accounting storage" in answer["remark"]
