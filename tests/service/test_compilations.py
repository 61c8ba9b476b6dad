"""What is compiled is remarked while it is, and no longer."""

import random
import subprocess
import sys
from dataclasses import replace

import numba
import pytest
from numba.core.caching import Cache

from foresail.explain import compiling
from foresail.explain.outlook import outlook_maker
from foresail.explain.start_forecaster import StartForecaster
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.event import Ended, EndedBecause, EstimateExpired, Outcome, Submitted, Tick
from foresail.model.job import Job, Stage
from foresail.record.log_text import MemoryLog
from foresail.scenario.beginning import controller_of, manifest_of, rehearse
from foresail.service.configuration import ServiceConfiguration
from foresail.service.metrics import CompileWatch
from foresail.service.session import scenario_of_service


@pytest.fixture
def watch():
    watch = CompileWatch()
    watch.listen()
    yield watch
    watch.stop()


def test_what_is_compiled_is_remarked_while_it_is(watch, monkeypatch):
    """A kernel that calls another is one thing that is done; what is compiled already is none."""
    seen = []
    begun = watch.on_start
    monkeypatch.setattr(watch, "on_start", lambda event: (begun(event), seen.append(watch.remark)))
    inner = numba.njit(lambda number: number + 1)
    outer = numba.njit(lambda number: inner(number) * 2)
    assert outer(1) == 4
    assert seen
    assert all("being compiled" in each for each in seen)
    assert watch.remark == ""
    seen.clear()
    assert outer(2) == 6
    assert seen == []


def test_what_jobs_need_is_remarked_until_all_of_it_is_there(watch):
    """Also between two kernels; nothing is said where all comes from the cache."""
    watch.goes_on = True
    assert watch.remark == ""
    assert numba.njit(lambda number: number + 3)(1) == 4
    assert "jobs start when that is done" in watch.remark
    watch.goes_on = False
    assert watch.remark == ""


def test_after_a_rehearsal_jobs_need_nothing_more_to_be_compiled():
    """In a process of its own, whose kernels nothing else has loaded."""
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stdout.splitlines() == ["(True, 0)"] * 2 + ["0"]


def test_a_process_apart_compiles_what_is_not_marked_as_compiled(tmp_path, monkeypatch, caplog):
    """Its environment has no secrets; where it fails, that is only said."""
    monkeypatch.setenv("PGPASSWORD", "very-secret")
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/environment\necho no such machine >&2\nexit 1\n"
    )
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(compiling, "_mark", lambda: tmp_path / "mark")
    assert not compiling.are_compiled()
    compiling.CompilerApart().compile()
    seen = (tmp_path / "environment").read_text()
    assert "very-secret" not in seen
    assert "HOME=" in seen
    assert "no such machine" in caplog.text
    (tmp_path / "mark").write_text(compiling._state())
    (tmp_path / "environment").unlink()
    compiling.CompilerApart().compile()
    assert not (tmp_path / "environment").exists()
    stopped = compiling.CompilerApart()
    stopped.stop()
    (tmp_path / "mark").unlink()
    stopped.compile()
    assert not (tmp_path / "environment").exists()
    monkeypatch.setattr(compiling.numba, "__version__", "another")
    assert not compiling.are_compiled()


def kernels_of_forecasts():
    """How many more kernels forecasts need than are compiled ahead; with jobs that want memory."""
    compiling.compile_here()
    loaded = []
    load = Cache.load_overload
    Cache.load_overload = lambda *asked: loaded.append(asked) or load(*asked)
    for memory in ((0.0,), (0.0, 1e9)):
        node = Resources(4.0, 8e9)
        cluster = Cluster((Partition("all", node, (Node("node-1", node),)),))
        scenario = replace(scenario_of_service(ServiceConfiguration()), place=cluster)
        controller = controller_of(scenario, MemoryLog(manifest_of(scenario)))
        work(controller, random.Random(1), memory)
        history = controller.state.history
        starts = StartForecaster()
        starts.catch_up(history)
        drawn = starts.forecast(outlook_maker(controller, (), history)(), scenarios=20)
        assert len(drawn) > 10
    Cache.load_overload = load
    return len(loaded)


def kernels_after_rehearsal(policy):
    """Whether a rehearsal needs kernels, and how many more a few hundred steps of jobs do."""
    loaded = []
    load = Cache.load_overload
    Cache.load_overload = lambda *asked: loaded.append(asked) or load(*asked)
    node = Resources(4.0, 8e9)
    cluster = Cluster((Partition("all", node, (Node("node-1", node),)),))
    scenario = replace(scenario_of_service(ServiceConfiguration(policy=policy)), place=cluster)
    rehearse(controller_of(scenario))
    needs_some = bool(loaded)
    loaded.clear()
    work(controller_of(scenario), random.Random(1))
    Cache.load_overload = load
    return needs_some, len(loaded)


def work(controller, dice, memory=(0.0, 1e9)):
    """Jobs of several users come, outlive what was expected of them, end or fail."""
    now = 0.0
    for number in range(300):
        now += 60.0 * dice.random()
        asked = Resources(1.0, dice.choice(memory))
        requested = dice.choice((None, 60.0, 3600.0))
        jobs = [
            Job(f"{number}-{which}", now, (Stage(dice.randint(1, 4), asked),), requested, user)
            for which, user in enumerate(dice.sample(("ann/a", "ann/b", "bob/a"), 2))
        ]
        events = [Submitted(now, job) for job in jobs[: dice.randint(0, 2)]]
        for job_id, running in controller.running.items():
            if dice.random() < 0.3:
                because = dice.choice((EndedBecause.COMPLETED, EndedBecause.FAILED))
                events.append(Ended(now, Outcome(job_id, running.start_seconds, now, because)))
            elif running.expected_end_seconds <= now:
                events.append(EstimateExpired(now, job_id))
        controller.step(now, [*events, Tick(now)])


if __name__ == "__main__":
    for each in ("foresail", "easy,recent,incremental"):
        sys.stdout.write(f"{kernels_after_rehearsal(each)}\n")
    sys.stdout.write(f"{kernels_of_forecasts()}\n")
