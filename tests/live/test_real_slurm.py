"""Slurm itself, as nobody: what is read of it, and what is said of its jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from shared import shared

READERS = ("squeue", "sinfo", "sacct")


def environment(tool: Path, folder: Path) -> dict[str, str]:
    said = subprocess.run([tool, "env", folder], capture_output=True, text=True, check=True).stdout
    words = said.replace("export ", "").split()
    exported = dict(word.split("=", 1) for word in words if "=" in word)
    path = exported.get("PATH", "$PATH").replace("$PATH", os.environ["PATH"])
    return {**os.environ, **exported, "PATH": path}


@pytest.fixture
def slurm(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A cluster of the version that the tool brings up, and the variables that lead to it."""
    tool = shared(f"tools/{request.param}")
    if os.geteuid() or not shutil.which("sbatch"):
        pytest.skip("Slurm is not here: needs root, and Debian's packages of it")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    settings = {**os.environ, "SLURM_CLUSTER_CLOUD": "0", "SLURM_CLUSTER_REST": "0"}
    settings["SLURM_NEWER_PORT"] = str(20_000 + os.getpid() % 8_000)
    up = subprocess.run([tool, "up", folder, "2"], env=settings, capture_output=True, text=True)
    if up.returncode:
        pytest.skip(f"Slurm does not come up here: {up.stderr[-300:]}")
    variables = {**environment(tool, folder), "FOLDER": str(folder)}
    try:
        yield variables
    finally:
        subprocess.run(["scancel", "--user=root"], env=variables, check=False)
        time.sleep(1.0)
        subprocess.run([tool, "down", folder], capture_output=True, check=False)
        remove(folder)


def mounts_below(folder: Path) -> list[str]:
    """Return what is mounted below a folder, the deepest first."""
    points = (line.split()[1] for line in Path("/proc/mounts").read_text().splitlines())
    return sorted((each for each in points if each.startswith(f"{folder}/")), reverse=True)


def remove(folder: Path) -> None:
    """Delete a cluster's folder, but never through a mount: below it are /dev and the host's root.

    A daemon that is still there keeps the tool from unmounting them.
    """
    for point in mounts_below(folder):
        subprocess.run(["umount", "-l", point], check=True)
    assert not mounts_below(folder)
    shutil.rmtree(folder)


def as_nobody(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables with which Slurm's reading commands run as nobody, and no others are found."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in READERS:
        real = shutil.which(name, path=variables["PATH"])
        script = bin_folder / name
        script.write_text(
            f'#!/bin/sh\necho "{name} $1 $2" >>{folder}/called\n'
            f'exec setpriv --reuid=nobody --regid=nogroup --clear-groups {real} "$@"\n'
        )
        script.chmod(0o755)
    return {**variables, "PATH": f"{bin_folder}:/usr/bin/nowhere"}


def foresail(variables: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    # The readers find setpriv by the PATH that they are given here.
    code = "from foresail.cli.main import main; main()"
    command = [sys.executable, "-c", code, "slurm", *words]
    path = f"{variables['PATH']}:/usr/bin:/bin"
    return subprocess.run(
        command, env={**variables, "PATH": path}, capture_output=True, text=True, check=False
    )


def submit(variables: Mapping[str, str], *words: str) -> str:
    common = ["sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null"]
    done = subprocess.run(
        [*common, *words], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


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
