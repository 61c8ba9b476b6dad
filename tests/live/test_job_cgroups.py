"""Cgroups of jobs: all processes die, are counted and are found again, whatever sessions they make.

The limits are those of controllers, which many machines bind elsewhere: what would be written is
tested on folders that stand in for cgroups, the rest on real ones where the machine permits them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from foresail.live.adapters.local import machine as module
from foresail.live.adapters.local import shim_files
from foresail.live.adapters.local.machine import (
    JobCgroups,
    permitted_cgroups,
    use_of_cgroup,
)
from foresail.live.command_job import CommandJob
from foresail.model.decision import Preempt
from foresail.model.event import EndedBecause
from local_runs import LocalRun
from until import until

PERMITTED = permitted_cgroups()
real = pytest.mark.skipif(PERMITTED is None, reason="this machine permits no cgroups of version 2")

_DAEMONISES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        with open("daemon", "w") as file:
            file.write(str(os.getpid()))
        while time.process_time() < 0.6: pass
        open("spun", "w").close()
        time.sleep(300)
    os._exit(0)
while not os.path.exists("daemon") or not open("daemon").read(): time.sleep(0.01)
time.sleep(float(sys.argv[1]))
"""


class Machine(LocalRun):
    """A run of Python's programs, looked at often."""

    def __init__(self, folder, **parameters):
        super().__init__(folder, **{"sample_seconds": 0.2, "grace_seconds": 0.5, **parameters})

    def begin(self, code, *arguments, **fields):
        words = (sys.executable, "-c", code, *map(str, arguments))
        return self.start(CommandJob("1", "name", words, str(self.folder), **fields))

    def daemon(self):
        """The process that has left its session and its parent."""
        path = self.folder / "daemon"
        until(lambda: path.exists() and path.read_text())
        return psutil.Process(int(path.read_text()))

    @property
    def cgroup(self):
        claim = self.folder / "attempts" / "1.1.claim"
        until(claim.exists)
        return Path(json.loads(claim.read_text())["cgroup"])


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    machine.adapter.close()


def _is_gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@real
@pytest.mark.parametrize("how", ["ends", "limit", "stopped", "shim killed"])
def test_what_a_job_has_made_a_daemon_dies_with_it(machine, how):
    """Two forks and two sessions away, however the job ends; and its cgroup is taken away."""
    lasts = 1.0 if how == "ends" else 300.0  # one that ends at once may be gone unseen
    start = machine.begin(_DAEMONISES, lasts, requested_seconds=1.0 if how == "limit" else None)
    daemon, cgroup = machine.daemon(), machine.cgroup
    assert os.getsid(daemon.pid) == daemon.pid or how == "ends"
    if how == "stopped":
        machine.adapter.carry_out(_preempt(start), time.time())
    if how == "shim killed":
        claim = json.loads((machine.folder / "attempts" / "1.1.claim").read_text())
        os.kill(claim["shim"][0], signal.SIGKILL)
    outcome = machine.outcome()
    assert (
        outcome.ended_because
        is {
            "ends": EndedBecause.COMPLETED,
            "limit": EndedBecause.LIMIT,
            "stopped": EndedBecause.PREEMPTED,
            "shim killed": EndedBecause.LOST,
        }[how]
    )
    assert _is_gone(daemon)
    assert not cgroup.exists()


def _preempt(start):
    return Preempt(start.job_id, start.attempt, start.stage, start.tasks)


@pytest.mark.parametrize("when", ["at once", "by a later adapter"])
def test_without_cgroups_such_a_daemon_dies_too_if_the_watcher_is_killed(tmp_path, when):
    """Its environment says whose it is, whatever it is below; that of another job lives on."""
    machine = Machine(tmp_path, cgroups=False)
    start = machine.begin(_DAEMONISES, 300.0)
    daemon = machine.daemon()
    other = replace(start, job_id="2")
    machine.commands["2"] = replace(machine.commands["1"], job_id="2", command="sleep 300")
    machine.adapter.carry_out(other, time.time())
    claims = [tmp_path / "attempts" / f"{job}.1.claim" for job in "12"]
    until(claims[1].exists)
    shim, lives = (
        psutil.Process(json.loads(claim.read_text())[which][0])
        for claim, which in zip(claims, ("shim", "command"), strict=True)
    )
    if when == "at once":
        shim.kill()
        outcome = machine.outcome()
    else:
        machine.adapter.close()
        shim.kill()
        until(lambda: _is_gone(shim))
        assert not _is_gone(daemon)
        (ended,) = machine.connect().resume([start, other], (), time.time())
        outcome = ended.outcome
    assert outcome.ended_because is EndedBecause.LOST
    assert _is_gone(daemon)
    assert not _is_gone(lives)
    machine.adapter.carry_out(_preempt(other), time.time())
    machine.outcome()
    machine.adapter.close()


@pytest.mark.parametrize("how", ["ends", "limit", "stopped"])
def test_without_cgroups_such_a_daemon_dies_with_it_too(tmp_path, how):
    """It comes below the shim, which finds it there; what ends before is let go of."""
    machine = Machine(tmp_path, cgroups=False)
    lasts = 1.0 if how == "ends" else 300.0  # one that ends at once may be gone unseen
    start = machine.begin(_DAEMONISES, lasts, requested_seconds=1.0 if how == "limit" else None)
    daemon = machine.daemon()
    if how == "stopped":
        shim = psutil.Process(
            json.loads((tmp_path / "attempts" / "1.1.claim").read_text())["shim"][0]
        )
        until(lambda: len(shim.children()) == 2)  # the command and the daemon
        assert daemon.ppid() == shim.pid
        machine.adapter.carry_out(_preempt(start), time.time())
    assert (
        machine.outcome().ended_because
        is {
            "ends": EndedBecause.COMPLETED,
            "limit": EndedBecause.LIMIT,
            "stopped": EndedBecause.PREEMPTED,
        }[how]
    )
    machine.adapter.close()
    assert _is_gone(daemon)


def test_what_a_job_has_orphaned_is_let_go_of_when_it_ends(tmp_path):
    """It would take a process id each until the job's end."""
    machine = Machine(tmp_path, cgroups=False)
    begun = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
"""
    start = machine.begin(begun + "open('begun', 'w').close()\ntime.sleep(300)")
    until((tmp_path / "begun").exists)
    claim = json.loads((tmp_path / "attempts" / "1.1.claim").read_text())
    until(lambda: len(psutil.Process(claim["shim"][0]).children()) == 1)
    machine.adapter.carry_out(_preempt(start), time.time())
    machine.outcome()
    machine.adapter.close()


@pytest.mark.parametrize("cgroups", [pytest.param(True, marks=real), False])
def test_the_daemon_is_counted_and_so_is_what_has_ended(tmp_path, cgroups):
    """Six tenths of a cpu second by a process outside the session, as much by one that is gone."""
    machine = Machine(tmp_path, cgroups=cgroups)
    spins = "import time\nwhile time.process_time() < 0.6: pass"
    machine.begin(
        f"import os, subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {spins!r}])\n"
        f"subprocess.Popen([sys.executable, '-c', {_DAEMONISES!r}, '0'])\n"
        "while not os.path.exists('spun'): time.sleep(0.05)"
    )
    outcome = machine.outcome()
    machine.adapter.close()
    assert outcome.used["cpu_time"] > 1.1
    assert outcome.used["memory"] > 1e6
    assert machine.samples
    assert (
        sum(each.average_cpus * (each.end_seconds - each.start_seconds) for each in machine.samples)
        > 0.9
    )


@real
def test_a_later_adapter_finds_the_cgroup_again_and_keeps_no_sample_twice(machine):
    start = machine.begin(_DAEMONISES, 300.0)
    daemon, cgroup = machine.daemon(), machine.cgroup
    for _ in range(2):
        until(lambda: machine.adapter.reports(time.time()) or len(machine.samples) > 1)
        machine.adapter.close()
        machine.samples.append(None)
        machine.connect().resume([start], (), time.time())
        until(lambda: machine.adapter.reports(time.time()) or machine.samples[-1])
        machine.samples.remove(None)
    spans = [(each.start_seconds, each.end_seconds) for each in machine.samples]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert cgroup.exists()
    machine.adapter.carry_out(_preempt(start), time.time())
    machine.outcome()
    assert _is_gone(daemon)
    assert not cgroup.exists()


@real
def test_a_cgroup_of_a_jobs_own_is_taken_away_as_well(machine):
    code = """
import os, sys, time
own = [line for line in open("/proc/self/cgroup") if line.startswith("0::")][0].strip()[3:]
path = sys.argv[1] + own.rpartition("/")[2]
os.mkdir(path + "/inner")
if os.fork() == 0:
    open(path + "/inner/cgroup.procs", "w").write(str(os.getpid()))
    time.sleep(300)
time.sleep(0.3)
"""
    machine.begin(code, f"{PERMITTED.parent}/")
    cgroup = machine.cgroup
    assert machine.outcome().ended_because is EndedBecause.COMPLETED
    assert not cgroup.exists()


def test_limits_are_those_of_the_controllers_that_are_there(tmp_path):
    job = CommandJob("7_3", "name", "true", "/", cpus=2, memory_bytes=2.0**30)
    limits = {}
    for name in ("memory", "cpu", "cpuset"):
        made = JobCgroups(tmp_path, frozenset({name})).of_attempt(job, 2, tmp_path, [0, 3])
        limits |= made.limits
    assert made.path.endswith("-7_3.2")
    assert limits == {
        "memory.max": "1073741824",
        "memory.oom.group": "1",
        "cpu.max": "200000 100000",
        "cpuset.cpus": "0,3",
    }
    without = JobCgroups(tmp_path, frozenset({"memory", "cpuset"}))
    assert not without.of_attempt(replace(job, memory_bytes=None), 1, tmp_path, []).limits
    elsewhere = JobCgroups(tmp_path).of_attempt(job, 2, tmp_path / "other", [])
    assert elsewhere.path != made.path
    assert not elsewhere.limits


def test_controllers_are_enabled_and_the_delegated_cgroup_is_found(tmp_path, monkeypatch):
    """On folders that stand in for a hierarchy: a service in a subgroup of what it was handed."""
    unit = tmp_path / "system.slice" / "foresail.service"
    own = unit / "service"
    own.mkdir(parents=True)
    for folder in (tmp_path, unit.parent, unit, own):
        (folder / "cgroup.procs").write_text("")
        (folder / "cgroup.controllers").write_text("cpu memory pids\n")
        (folder / "cgroup.subtree_control").write_text("")
    mounts, mine = tmp_path / "mountinfo", tmp_path / "cgroup"
    mounts.write_text(f"31 23 0:28 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    mine.write_text("4:cpu:/\n0::/system.slice/foresail.service/service\n")
    monkeypatch.setattr(module, "_MOUNTS", mounts)
    monkeypatch.setattr(module, "_OWN", mine)
    delegated = {str(unit): b"1"}

    def attribute(path, name):
        if name == "user.delegate" and str(path) in delegated:
            return delegated[str(path)]
        raise OSError

    monkeypatch.setattr(os, "getxattr", attribute)
    assert permitted_cgroups() is None  # a folder that is made here has no cgroup.kill
    mkdir = Path.mkdir

    def made(self, *given, **named):
        mkdir(self, *given, **named)
        if "probe" in self.name:
            (self / "cgroup.kill").write_text("")

    monkeypatch.setattr(Path, "mkdir", made)
    monkeypatch.setattr(Path, "rmdir", lambda self: None)
    found = permitted_cgroups()
    assert found.parent == unit
    assert (unit / "cgroup.subtree_control").read_text() == "+cpu"
    assert not found.controllers  # the file does not obey, as that of a cgroup with processes
    delegated.clear()
    assert permitted_cgroups().parent == own
    mine.write_text("4:cpu:/\n")
    assert permitted_cgroups() is None


def test_what_a_cgroup_uses_is_its_working_set_where_there_is_a_controller(tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (tmp_path / "memory.current").write_text("5000000\n")
    (tmp_path / "memory.stat").write_text("anon 3000000\ninactive_file 1500000\n")
    use = use_of_cgroup(str(tmp_path))
    assert (use.cpu_seconds, use.memory_bytes) == (2.5, 3_500_000.0)
    assert use_of_cgroup(str(tmp_path / "none")) is None


def test_a_job_runs_without_a_cgroup_where_none_can_be_made(tmp_path, monkeypatch, capfd):
    """The claim names one that is not there: it is measured and ended by its session."""
    monkeypatch.setattr(
        "foresail.live.adapters.local.machine.permitted_cgroups",
        lambda: JobCgroups(tmp_path / "nowhere"),
    )
    machine = Machine(tmp_path)
    machine.begin("import time; time.sleep(0.6)")
    outcome = machine.outcome()
    machine.adapter.close()
    assert outcome.ended_because is EndedBecause.COMPLETED
    assert outcome.used["memory"] > 1e6
    assert "without a cgroup" in (tmp_path / "logs" / "1.out").read_text()


def test_the_kernel_ends_what_needs_too_much_memory(tmp_path):
    """What a shim records when the controller has killed: stood in for by a folder of counters."""
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert shim_files.counters(str(tmp_path), "memory.events")["oom_kill"] == 1
