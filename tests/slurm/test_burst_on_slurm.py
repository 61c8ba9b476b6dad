"""Bursting on a real Slurm: cloud nodes, trials, an operator's rights, a mover that is killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from foresail_slurm.bursting import Journal, Went
from real_slurm import as_operator, cluster, run_as, slurm, submit

__all__ = ["slurm"]

FORESAIL = [sys.executable, "-c", "from foresail.cli.main import main; main()", "slurm"]
WHERE = ["main", "cloud", "--tried", "tried"]
TIMES = ["--short", "12s", "--wait-limit", "10min"]
PARTITIONS = """
PartitionName=cloud Nodes=c[1-2] MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF SuspendTime=60
PartitionName=tried Nodes=c[1-2] MaxTime=5 PriorityTier=10 PreemptMode=OFF SuspendTime=60
"""

KILLS = """#!/bin/sh
# Orders end who gives them: odd ones once they are done, even ones before.
case $1 in
update | requeuehold | release)
    count=$(($(cat {folder}/orders) + 1))
    echo $count >{folder}/orders
    if [ $((count % 2)) = 1 ]; then {scontrol} "$@"; fi
    kill -9 $PPID
    ;;
*) exec {scontrol} "$@" ;;
esac
"""


@pytest.fixture
def bursting_slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A cluster with a partition of nodes that are started when needed, and one for trials."""
    (tmp_path / "partitions.conf").write_text(PARTITIONS)
    settings = {"SLURM_CLUSTER_CLOUD": "2", "SLURM_CLUSTER_CONF": f"{tmp_path}/partitions.conf"}
    with cluster("slurm-cluster", **settings) as variables:
        yield variables


def said(variables: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Foresail's."""
    return subprocess.run(
        [*FORESAIL, *words], env=variables, capture_output=True, text=True, check=False
    )


def jobs(variables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """State and partition of all jobs."""
    words = ["squeue", "-h", "-a", "-r", "-t", "all", "-o", "%i %t %P"]
    text = subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout
    return {each: (state, place) for each, state, place in map(str.split, text.splitlines())}


@pytest.mark.slow
def test_jobs_go_to_nodes_that_are_rented(bursting_slurm: dict[str, str], tmp_path: Path) -> None:
    """A mover that dies at each order leaves all jobs done once; nobody else's are touched."""
    slurm = bursting_slurm
    runs = tmp_path / "runs"
    runs.touch()
    runs.chmod(0o666)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)

    def job(seconds: float, *words: str) -> str:
        line = (
            f"echo $SLURM_JOB_ID begins >>{runs}; sleep {seconds}; echo $SLURM_JOB_ID ends >>{runs}"
        )
        return submit(slurm, "-t", "20", *words, "--wrap", line)

    first = job(600, "-n", "8")
    short, long, held = job(3, "-n", "2"), job(30, "-n", "2"), job(1, "-n", "1", "-H")
    tasks = job(2, "-n", "1", "-a", "1-2")
    other, own = job(60, "-n", "8", "-p", "spec"), job(1, "-n", "1", "-p", "cloud", "-H")
    waiting = {short, long, f"{tasks}_1", f"{tasks}_2"}
    time.sleep(4.0)
    (tmp_path / "nobody").mkdir()
    names = ("squeue", "sinfo", "sacct", "scontrol")
    nobody = run_as("nobody", names, slurm, tmp_path / "nobody")
    nobody["PATH"] += f":{slurm['PATH']}"
    state = tmp_path / "state"
    burst = ["burst", str(state), *WHERE, *TIMES]
    tried = said(nobody, *burst, "--dry-run")
    assert tried.returncode == 0
    assert set(re.findall(r"would: (\S+) .* is tried in tried for 12 s", tried.stderr)) == waiting
    assert not state.exists()
    refused = said(nobody, *burst)
    assert refused.returncode == 2
    assert "AdminLevel=Operator" in refused.stderr
    assert {place for _, place in jobs(slurm).values()} == {"main", "cloud", "spec"}
    small = said(slurm, "burst", str(state), *WHERE, "--short", "5min")
    assert "ends jobs before they are cut" in small.stderr

    operator = as_operator(slurm, tmp_path)
    operator["PATH"] += f":{slurm['PATH']}"
    order = tmp_path / "bin" / "scontrol"
    order.rename(tmp_path / "scontrol")
    (tmp_path / "orders").write_text("0")
    text = KILLS.format(folder=tmp_path, scontrol=tmp_path / "scontrol")
    order.write_text(text)
    order.chmod(0o755)
    deaths, end = 0, time.monotonic() + 400.0
    while any(jobs(slurm)[each][0] != "CD" for each in waiting):
        assert time.monotonic() < end, (jobs(slurm), runs.read_text())
        if (mark := Journal(state).marks.get(long)) is not None and mark.went is Went.WAITS:
            subprocess.run(["scancel", first], env=slurm, check=True)
        mover = subprocess.Popen([*FORESAIL, *burst], env=operator, stderr=subprocess.DEVNULL)
        try:
            assert mover.wait(20.0) == -9
            deaths += 1
        except subprocess.TimeoutExpired:  # it had nothing to do
            mover.kill()
            mover.wait()
    known = jobs(slurm)
    assert {known[each][1] for each in waiting - {long}} == {"tried"}
    assert known[long][1] == "main"
    assert not {first, held, other, own} & Journal(state).marks.keys()
    assert (known[held][0], known[own]) == ("PD", ("PD", "cloud"))
    lines = runs.read_text().split("\n")
    assert [lines.count(f"{long} {what}") for what in ("begins", "ends")] == [2, 1]
    assert [lines.count(f"{short} {what}") for what in ("begins", "ends")] == [1, 1]
    orders = int((tmp_path / "orders").read_text())
    assert deaths == orders >= 13  # seven are carried out, and before each but the first one is not

    time.sleep(2.0)
    cost = said(slurm, "burst-cost", str(state), "--per-cpu-hour", "3600", "--json")
    by_name = {each["went"]: each for each in json.loads(cost.stdout)["decisions"]}
    trials = by_name[Went.TRIED]
    assert trials["runs"] == 4
    assert 2 * 3 + 2 * 12 + 2 * 2 <= trials["cost"] <= 2 * 6 + 2 * 60 + 2 * 6
    assert 0.0 < trials["cost_foreseen"] <= 12 * (2 + 2 + 1 + 1)


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-newer"], indirect=True)
def test_a_newer_slurm_takes_the_same_orders(slurm: dict[str, str], tmp_path: Path) -> None:
    """Without accounting nothing is learned, which is said; a trial is cut, its job comes home."""
    for words in (
        ["update", "PartitionName=main", "Nodes=n1"],
        ["create", "PartitionName=cloud", "Nodes=n2"],
        ["create", "PartitionName=tried", "Nodes=n2", "MaxTime=5"],
    ):
        subprocess.run(["scontrol", *words], env=slurm, check=True)
    first = submit(slurm, "-n", "4", "-t", "20", "--wrap", "sleep 50")
    short, long = (submit(slurm, "-n", "1", "-t", "9", "--wrap", f"sleep {n}") for n in (2, 24))
    words = ["burst", str(tmp_path / "state"), *WHERE, *TIMES]
    mover = subprocess.Popen([*FORESAIL, *words], env=slurm, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 240.0
    while any(jobs(slurm)[each][0] != "CD" for each in (first, short, long)):
        assert time.monotonic() < end, jobs(slurm)
        time.sleep(1.0)
    mover.terminate()
    _, lines = mover.communicate()
    assert "nothing was learned" in lines
    assert [jobs(slurm)[each][1] for each in (first, short, long)] == ["main", "tried", "main"]
    assert re.findall(r"(\d+) is not done after .*: cut", lines) == [long], lines
