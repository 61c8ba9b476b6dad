"""A real Slurm cluster that is decided on keeps every rule of the conformance suite."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from foresail.checks import clusters
from foresail.checks.clusters import (
    RULES,
    hears_what_is_wished,
    loses_what_nodes_take_along,
    reports_what_began_by_itself,
    reports_what_its_nodes_do,
    reports_what_was_submitted_to_it,
    starts_once,
    stops_what_it_is_to_stop,
)
from foresail.checks.rules import Rule, breaches
from foresail.model import event as news
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.cluster import Cluster, Node, Placement
from foresail.model.decision import Instruction, Start
from foresail_slurm import deciding
from foresail_slurm.commands import (
    MEBIBYTE,
    limit_seconds,
    read_lives,
    read_nodes,
    read_queue,
)
from foresail_slurm.deciding import DecidingAdapter, Owned
from foresail_slurm.state import is_used
from long_series import IS_LONG
from real_slurm import slurm, submit
from shared import shared
from until import until

__all__ = ["slurm"]

HOLDS = """
function slurm_job_submit(job, partitions, user)
   if job.priority ~= 0 then
      job.priority = 0
      job.admin_comment = "foresail"
   end
   return slurm.SUCCESS
end
function slurm_job_modify() return slurm.SUCCESS end
"""
NODE = re.compile(r"NodeName=n\[1-2\] (.*) CPUs=4 .* Port=\[(\d+)-.*")
PATIENCE_SECONDS, QUIET_SECONDS = 60.0, 8.0
"""Slurm takes a second or two for what it does, and is asked about it once a second."""


class Driven:
    """The adapter as a service drives it: by the clock, told of a job before it starts that.

    A job that has ended before anybody was told of it is one that an earlier driver had started.
    """

    capabilities: Capabilities = DecidingAdapter.capabilities

    def __init__(self, folder: Path, use_all: Callable[[], None]) -> None:
        self.use_all = use_all
        self.made = DecidingAdapter(folder / "slurm-seen", Owned(frozenset({"main"}), frozenset()))
        self.wake_descriptor, self._other_end = os.pipe()
        self._met: set[str] = set()
        self._later: list[news.Event] = []

    @property
    def cluster(self) -> Cluster:
        return self.made.cluster

    @property
    def next_seconds(self) -> float:
        return 0.0 if self._later else self.made.next_seconds

    def history(self) -> Sequence[news.HistoryOutcome]:
        return self.made.history()

    def resume(
        self, running: Sequence[Start], known: Sequence[KnownJob], now: float
    ) -> Sequence[news.Event]:
        self._met |= {each.job_id for each in running} | {each.job.job_id for each in known}
        return self.made.resume(running, known, now)

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        is_news = isinstance(instruction, Start) and instruction.job_id not in self._met
        self.capabilities.require(instruction)
        if is_news:
            self.made.next_seconds = self.made._due_seconds = 0.0
            self._later += self.made.reports(time.time())
            self._note(self._later)
        if is_news and isinstance(instruction, Start) and instruction.job_id not in self._met:
            self._later += self.resume([instruction], (), time.time())
        else:
            self.made.carry_out(instruction, now)

    def reports(self, now: float) -> Sequence[news.Event]:
        events, self._later = self._later, []
        with suppress(ConnectionError):  # slurmctld is not there
            events += self.made.reports(now)
        self._note(events)
        if any(isinstance(each, news.NotStarted) for each in events):
            self.use_all()
        return events

    def _note(self, events: Sequence[news.Event]) -> None:
        self._met |= {each.job.job_id for each in events if isinstance(each, news.Submitted)}

    def close(self) -> None:
        self.made.close()
        for each in (self.wake_descriptor, self._other_end):
            os.close(each)


class Trial:
    """Jobs and nodes of a real cluster; ``folder`` is that of a service's attempts."""

    def __init__(self, variables: dict[str, str], folder: Path) -> None:
        folder.mkdir()
        self.folder, self.variables = folder, variables
        self.file = Path(variables.get("SLURM_CONF", ""))
        self.runs = folder / "runs"
        self.control("scancel", "--user=root")
        until(lambda: not [each for each in read_lives() if each.StateCompact in ("PD", "R", "CG")])
        time.sleep(3.0)  # what has just ended would be reported

    def control(self, *words: str) -> None:
        subprocess.run(words, env=self.variables, check=True, capture_output=True)

    def connect(self) -> Driven:
        return Driven(self.folder, self.use_all)

    def use_all(self) -> None:
        for name in {each.NodeList for each in read_nodes() if "drain" in each.StateComplete}:
            self.control("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def start_of(self, seconds: float) -> Start:
        line = f"echo $SLURM_JOB_ID >>{self.runs}; sleep {seconds}"
        job_id = submit(self.variables, "-n", "1", "-t", "5", "--wrap", line)
        return Start(f"slurm:{job_id}", Placement.whole("main,spec", 1))

    def times_begun(self, job_id: str) -> int:
        text = self.runs.read_text() if self.runs.exists() else ""
        return text.split().count(job_id.removeprefix("slurm:"))

    def happen(self, event: news.Event) -> None:
        match event:
            case news.Submitted(job=job):
                minutes = f"{(job.requested_seconds or 0.0) / 60.0:.0f}"
                assert job.job_id == submit(
                    self.variables, "-n", "1", "-t", minutes, "--wrap", "sleep 9"
                )
            case news.Cancelled(job_id=job_id):
                self.control("scancel", job_id.removeprefix("slurm:"))
            case news.Began(job_id=job_id):
                self.control("scontrol", "release", job_id.removeprefix("slurm:"))
                until(lambda: self.times_begun(job_id))
            case news.NotStarted():
                self.control("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=test")
            case news.NodeRemoved(node=name):
                self.control("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test")
                self._write(name, None)
            case news.NodeAdded(node=node) | news.NodeChanged(node=node):
                self._write(node.name, node)
            case _:
                raise AssertionError(event)

    def in_queue(self, job_id: str) -> tuple[bool, float | None] | None:
        name = job_id.removeprefix("slurm:")
        rows = [each for each in read_queue() if each.JobArrayID == name]
        marks = json.loads((self.folder / "slurm-held").read_text())
        is_wished = marks.get(name) == "foresail:kept"
        return (is_wished, limit_seconds(rows[0].TimeLimit)) if rows else None

    def _write(self, name: str, node: Node | None) -> None:
        """Let a node be so, or go, as an administrator does: by the file, and a restart.

        Slurm needs one node; it is of no partition.
        """
        text = NODE.sub(_apart, self.file.read_text())
        lines = text.splitlines()
        (known,) = {match[1] for match in re.finditer(r"NodeName=spare (.*) Port=", text)}
        lines = [each for each in lines if not each.startswith(f"NodeName={name} ")]
        if node is not None:
            size = f"CPUs={node.total.cpus:.0f} RealMemory={node.total.memory_bytes / MEBIBYTE:.0f}"
            features = f"Features={','.join(node.attributes)}" if node.attributes else ""
            port = re.search(r"NodeName=spare .* Port=(\d+)", text)
            assert port is not None
            at = int(port[1]) + {"n1": 1, "n2": 2}.get(name, 3)
            lines.append(f"NodeName={name} {known} {size} {features} Port={at} State=UNKNOWN")
        there = [each.split()[0].removeprefix("NodeName=") for each in lines if "NodeName=" in each]
        nodes = ",".join(each for each in there if each != "spare")
        used = f" Nodes={nodes}" if nodes else ""
        lines = [re.sub(r"^(PartitionName=\S+)( Nodes=\S+)?", rf"\1{used}", each) for each in lines]
        self.file.write_text("\n".join([*lines, ""]))
        tool, folder = str(shared("tools/slurm-cluster")), self.variables["FOLDER"]
        for word in ("stop", "start"):
            self.control(tool, word, folder, "slurmctld")
        if node is not None and name in ("n1", "n2"):  # which alone have a daemon
            until(
                lambda: [each for each in read_nodes() if each.NodeList == name and is_used(each)]
            )


class NewerTrial(Trial):
    """Jobs of a cluster of 24.11, which are held as its plug-in would; they see /tmp as /host."""

    def start_of(self, seconds: float) -> Start:
        runs = Path("/host") / self.runs.relative_to("/tmp")
        line = f"echo $SLURM_JOB_ID >>{runs}; sleep {seconds}"
        job_id = submit(self.variables, "-H", "-n", "1", "-t", "5", "--wrap", line)
        self.control("scontrol", "update", f"JobId={job_id}", "AdminComment=foresail")
        return Start(f"slurm:{job_id}", Placement.whole("main", 1))


def _apart(found: re.Match[str]) -> str:
    """Return the lines of the nodes one by one, with their ports, and a spare one."""
    where, port = found[1], int(found[2])
    size = "CPUs=4 RealMemory=4000 State=UNKNOWN"
    nodes = [f"NodeName=n{n} {where} Port={port + n - 1} {size}" for n in (1, 2)]
    return "\n".join([*nodes, f"NodeName=spare {where} Port={port - 1} State=UNKNOWN"])


@pytest.fixture
def with_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let a cluster that comes up hold what is submitted, as the documentation has it.

    Its jobs have the ids that rules expect.
    """
    (tmp_path / "conf").write_text("FirstJobId=84\n")
    monkeypatch.setenv("SLURM_CLUSTER_CONF", str(tmp_path / "conf"))
    (tmp_path / "job_submit.lua").write_text(HOLDS)
    monkeypatch.setenv("SLURM_CLUSTER_LUA", str(tmp_path / "job_submit.lua"))


QUEUES = [(reports_what_was_submitted_to_it,), (hears_what_is_wished,)]
"""Rules with jobs of certain ids, which Slurm gives once."""

OTHERS = tuple(rule for rule in RULES if (rule,) not in QUEUES)
OF_NODES = (reports_what_its_nodes_do, loses_what_nodes_take_along)
SHORT = [(starts_once, stops_what_it_is_to_stop, reports_what_began_by_itself), QUEUES[0]]


@pytest.mark.slow
@pytest.mark.usefixtures("with_holds")
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
@pytest.mark.parametrize(
    "rules", [OTHERS, *QUEUES] if IS_LONG else SHORT, ids=lambda rules: rules[-1].__name__
)
def test_a_real_cluster_conforms(
    slurm: dict[str, str], rules: Sequence[Rule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts, ends, preemption, restarts, refusals, nodes, jobs of its own and wishes."""
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    require_conformity(Trial, slurm, rules, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-newer"], indirect=True)
def test_a_newer_cluster_conforms(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without accounting; rules of nodes and of certain ids are tried on 22.05."""
    assert tmp_path.is_relative_to("/tmp")
    monkeypatch.setenv("PATH", slurm["PATH"])
    rules = [each for each in OTHERS if each not in OF_NODES] if IS_LONG else SHORT[0]
    require_conformity(NewerTrial, slurm, rules, tmp_path, monkeypatch)


def require_conformity(
    kind: type[Trial],
    variables: dict[str, str],
    rules: Sequence[Rule],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(clusters, "_QUIET_SECONDS", QUIET_SECONDS)
    monkeypatch.setattr(deciding, "_PATIENCE_SECONDS", 3.0)
    numbers = count()
    found = breaches(lambda: kind(variables, folder / f"attempts-{next(numbers)}"), rules)
    assert not found, "\n".join(f"{each.rule}: {each.seen}" for each in found)


@pytest.mark.slow
@pytest.mark.usefixtures("with_holds")
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_a_job_for_one_node_begins_though_two_were_chosen(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sees that it asked for one (``-N 1``); on two Slurm would never start it."""
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    monkeypatch.setattr(deciding, "_PATIENCE_SECONDS", 3.0)
    made = Trial(slurm, tmp_path / "attempts").connect()
    job_id = submit(slurm, "-N", "1", "-n", "2", "-t", "5", "--wrap", "sleep 30")
    on_both = Placement((("main,spec", 2),), (("n1", 1), ("n2", 1)))
    found: list[news.Event] = []

    def reported(kind: type[news.Event]) -> list[news.Event]:
        found.extend(made.reports(time.time()))
        return [each for each in found if isinstance(each, kind)]

    made.carry_out(Start(f"slurm:{job_id}", on_both), time.time())
    (refused,) = until(lambda: reported(news.NotStarted), pause=0.3)
    assert "BadConstraints" in refused.sentence
    made.carry_out(Start(f"slurm:{job_id}", on_both, 2), time.time())
    (began,) = until(lambda: reported(news.Began), pause=0.3)
    assert (began.attempt, began.ours, len(began.placement.tasks_by_node)) == (2, True, 1)
    made.close()
