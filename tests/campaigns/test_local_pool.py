"""Worker processes: same results, and nothing but the runs in flight is lost to a kill."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from foresail.campaigns.results import Results
from foresail.campaigns.running import LocalPool, WorkerLostError, carry_out
from made_campaigns import carried_out, comparable, made_plan


def _wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_same_results_and_a_lost_worker(tmp_path):
    """Two processes give what one gives; if one is killed, what was finished is kept."""
    plan = made_plan(tmp_path, jobs=3000)
    results = Results(tmp_path / "processes")
    seen = []

    def kill_one(run, measured):
        seen.append(run.key)
        if len(seen) == 3:
            children = psutil.Process().children()  # by pid, which tells no order: pids begin anew
            worker = next(each for each in children if "spawn_main" in " ".join(each.cmdline()))
            os.kill(worker.pid, signal.SIGKILL)

    nothing = {"preparing": lambda _: None}
    with pytest.raises(WorkerLostError, match="finished runs are kept"):
        carry_out(plan, results, LocalPool(2), finished=kill_one, **nothing)
    kept = {file.stem for file in (results.folder / "runs").iterdir()}
    assert set(seen) <= kept
    assert len(kept) < 12
    carry_out(plan, results, LocalPool(2), finished=lambda run, _: seen.append(run.key), **nothing)
    assert len(seen) == len(set(seen)) == 12
    assert comparable(results).equals(comparable(carried_out(plan, tmp_path / "one")))


def test_kill_of_the_command_and_resumption(tmp_path):
    """After kill -9 of the command its workers end too, and a second start does only the rest."""
    plan = made_plan(tmp_path, jobs=6000)
    campaign = tmp_path / "campaign.toml"
    lines = [
        f"logs = {json.dumps([str(log.path) for log in plan.logs])}",
        f"policies = {json.dumps(plan.policies)}",
    ]
    campaign.write_text("\n".join(lines))
    folder = tmp_path / "results"
    command = [sys.executable, "-c", "from foresail.cli.main import main; main()", "campaign"]
    command += ["run", str(campaign), "--output", str(folder), "--workers", "2"]
    killed = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    runs = folder / "runs"
    _wait_until(lambda: runs.is_dir() and len(list(runs.glob("*.json"))) >= 2)
    workers = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.wait()
    before = len(list(runs.glob("*.json")))
    _wait_until(lambda: not any(worker.is_running() for worker in workers), 20)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert before < 12
    assert f"{12 - before} of 12 runs replayed, {before} were there" in again.stdout
    assert (
        comparable(Results(folder))
        .drop("log")
        .equals(comparable(carried_out(plan, tmp_path / "one")).drop("log"))
    )
