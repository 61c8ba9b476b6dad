"""Slurm itself, as nobody: what is read of it, and what is said of its jobs."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from real_slurm import as_nobody, slurm, submit
from shared import shared

__all__ = ["slurm"]


FORESAIL = shlex.join([sys.executable, "-c", "from foresail.cli.main import main; main()"])


def foresail(variables: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    # The readers find setpriv by the PATH that they are given here.
    command = [*shlex.split(FORESAIL), "slurm", *words]
    path = f"{variables['PATH']}:/usr/bin:/bin"
    return subprocess.run(
        command, env={**variables, "PATH": path}, capture_output=True, text=True, check=False
    )


def await_idle(variables: Mapping[str, str]) -> None:
    """Wait until all jobs have ended, and accounting has heard of the last."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        said = subprocess.run(["squeue", "-h"], env=variables, capture_output=True, text=True)
        if not said.stdout.strip():
            break
        time.sleep(0.5)
    time.sleep(3.0)


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_starts_are_foreseen_from_accounting(slurm: dict[str, str], tmp_path: Path) -> None:
    for _ in range(8):
        submit(slurm, "-n", "4", "-t", "5", "-J", "a|b,\nc", "--wrap", "sleep 1")
    await_idle(slurm)
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
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_advice_reaches_who_submits(slurm: dict[str, str], tmp_path: Path) -> None:
    """By the command, by ``sbatch`` with the script of the page, and by that of job_submit."""
    page = (Path(__file__).parents[2] / "docs/tasks/slurm.md").read_text()
    wrapper, lua = (
        re.search(f"```{kind}\n *(.*?{word}.*?)```", page.replace("\n   ", "\n"), re.DOTALL)[1]
        for kind, word in (("sh", "parsable"), ("lua", "log_user"))
    )
    name = 'a"]=os.exit()--'
    for at in range(20):
        submit(slurm, "-n", "2", "-t", "60", "-J", f"{name}{at}", "--wrap", "true")
    await_idle(slurm)
    submit(slurm, "-n", "8", "-t", "60", "-J", "other", "--wrap", "sleep 300")
    waits = submit(slurm, "-n", "2", "-t", "60", "-J", f"{name}7", "--wrap", "true")
    held = submit(slurm, "-H", "-n", "2", "-t", "60", "-J", "new", "--wrap", "true")
    nobody = as_nobody(slurm, tmp_path)
    told = foresail(nobody, "advise", "--json")
    jobs = {each["job_id"]: each for each in json.loads(told.stdout)["jobs"]}
    assert jobs[waits]["limit_minutes"] == 1
    assert jobs[waits]["sentences"] == ["--time=1 is enough in 95 % of cases"]
    assert jobs[held]["cannot_run"] == "is held; scontrol release lets it go"
    assert foresail(nobody, "advise", "--risk", "1").returncode == 2
    called = {line.split()[0] for line in (tmp_path / "called").read_text().splitlines()}
    assert called == {"squeue", "sinfo", "sacct"}

    own = tmp_path / "sbatch"
    own.write_text(wrapper.replace("foresail slurm", f"{FORESAIL} slurm"))
    own.chmod(0o755)
    words = ["-D", "/tmp", "-o", "/dev/null", "-n", "2", "-t", "60", "-J", name, "--wrap", "true"]
    said = subprocess.run([own, *words], env=slurm, capture_output=True, text=True)
    assert said.stdout.startswith("Submitted batch job ")
    assert "--time=1 is enough in 95 % of cases" in said.stderr

    limits = tmp_path / "limits.lua"
    limits.write_text(foresail(nobody, "advise", "--lua").stdout)
    script = tmp_path / "job_submit.lua"
    script.write_text(lua.replace("/etc/slurm/limits.lua", str(limits)))
    tool, folder = shared("tools/slurm-cluster"), slurm["FOLDER"]
    subprocess.run([tool, "stop", folder, "slurmctld"], capture_output=True, check=True)
    with_lua = {**slurm, "SLURM_CLUSTER_LUA": str(script)}
    subprocess.run([tool, "up", folder, "2"], env=with_lua, capture_output=True, check=True)
    said = subprocess.run(["sbatch", *words], env=slurm, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "--time=1 is enough for jobs like this" in said.stderr
    words[words.index(name)] = "unknown"
    said = subprocess.run(["sbatch", *words], env=slurm, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


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
