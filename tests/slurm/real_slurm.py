"""A real Slurm for tests, brought up by a tool, and its reading commands as nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    with cluster(request.param, SLURM_CLUSTER_CLOUD="0") as variables:
        yield variables


@contextmanager
def cluster(version: str, **given: str) -> Iterator[dict[str, str]]:
    """Variables that lead to a cluster with settings of the tool that brings it up."""
    tool = shared(f"tools/{version}")
    if os.geteuid() or not shutil.which("sbatch"):
        pytest.skip("Slurm is not here: needs root, and Debian's packages of it")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    settings = {**os.environ, "SLURM_CLUSTER_REST": "0", **given}
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
    return run_as("nobody", READERS, variables, folder)


def as_operator(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Variables with which its commands run as an account that is an operator, and no more."""
    for words in (["account", "ops"], ["user", "backup", "account=ops", "AdminLevel=Operator"]):
        subprocess.run(
            ["sacctmgr", "-i", "add", *words], env=variables, capture_output=True, check=True
        )
    return run_as("backup", (*READERS, "scontrol", "scancel"), variables, folder)


def run_as(
    account: str, names: Sequence[str], variables: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Variables with which these commands run as an account, and no others are found."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    group = subprocess.run(["id", "-gn", account], capture_output=True, text=True).stdout.strip()
    for name in names:
        real = shutil.which(name, path=variables["PATH"])
        script = bin_folder / name
        script.write_text(
            f'#!/bin/sh\necho "{name} $1 $2" >>{folder}/called\n'
            f'exec setpriv --reuid={account} --regid={group} --clear-groups {real} "$@"\n'
        )
        script.chmod(0o755)
    return {**variables, "PATH": f"{bin_folder}:/usr/bin/nowhere"}


def submit(variables: Mapping[str, str], *words: str) -> str:
    common = ["sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null"]
    done = subprocess.run(
        [*common, *words], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
