"""The run's clock, and daemons under it: wall clocks that are set change no duration."""

import math
import os
import time
from dataclasses import dataclass, field, replace

import pytest

from foresail.control.loop import Controller
from foresail.live.cluster_contact import ClusterContact
from foresail.live.daemon import Daemon
from foresail.live.run_clock import MachineClocks, RunClock, by_clock_of_run
from foresail.live.run_directory import RunHistory
from foresail.live.run_log import recover
from foresail.live.source import DaemonCommand
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.decision import Start
from foresail.model.event import ClockRead, Ended, EndedBecause, Outcome, Submitted
from foresail.model.job import Job
from foresail.record.log_text import read_log
from foresail.record.records import EventTaken, Instructed, Manifest
from standins import RecordingObserver, SmallPolicy, command

NOON = 1.8e9
HOUR = 3600.0


@dataclass
class Shim:
    """What runs, by the clocks of the machine when it began."""

    wall: float
    since_boot: float
    lasts: float
    died: bool = False


@dataclass
class Machine:
    """A machine whose clocks are set by hand, and what runs on it."""

    wall: float = NOON
    since_boot: float = 100.0
    boot: str = "first"
    lasts: dict = field(default_factory=dict)
    shims: dict = field(default_factory=dict)

    def clocks(self):
        return MachineClocks(lambda: self.wall, lambda: self.since_boot, self.boot)

    def passes(self, seconds):
        self.wall += seconds
        self.since_boot += seconds

    def reboots(self, wall):
        for shim in self.shims.values():
            shim.died = shim.died or shim.since_boot + shim.lasts > self.since_boot
            shim.since_boot = -math.inf
        self.boot, self.since_boot, self.wall = f"after {self.boot}", 5.0, wall


class Shims:
    """A cluster that knows ends by shims: each with the wall clock at its start, and a duration."""

    capabilities = Capabilities(preempts=True)
    cluster = Cluster((Partition("all", Resources(4.0)),))
    wake_descriptor = None
    next_seconds = math.inf

    def __init__(self, machine):
        self.machine = machine
        self.watched = {}

    def history(self):
        return ()

    def resume(self, running, known, now):
        self.watched = {start.job_id: start for start in running}
        return self.reports(now)

    def carry_out(self, start, now):
        assert isinstance(start, Start)
        machine = self.machine
        self.watched[start.job_id] = start
        machine.shims[start.job_id, start.attempt] = Shim(
            machine.wall, machine.since_boot, machine.lasts[start.job_id]
        )

    def reports(self, now):
        ends = []
        for job_id, start in list(self.watched.items()):
            shim = self.machine.shims[job_id, start.attempt]
            begin, end, because = shim.wall, shim.wall + shim.lasts, EndedBecause.COMPLETED
            if shim.died:
                begin, end, because = min(begin, now), now, EndedBecause.LOST
            elif self.machine.since_boot < shim.since_boot + shim.lasts:
                continue
            del self.watched[job_id]
            outcome = Outcome(job_id, begin, end, because, None, start.attempt)
            ends.append(Ended(now, outcome))
        return ends

    def close(self):
        pass


class Script:
    """A source that does one thing after the other, each in a step of its own, and then leaves."""

    def __init__(self, acts):
        self.acts = [*acts, tuple]
        self.descriptor = os.eventfd(1)

    def earlier(self, known, now):
        return []

    def arrived(self, now):
        return [Submitted(now, job) for job in self.acts.pop(0)() or ()]

    def command(self, interrupts):
        return DaemonCommand.GO_ON if self.acts else DaemonCommand.LEAVE

    def close(self):
        pass


class Run:
    """A run over several daemons, each of which lives through some acts."""

    def __init__(self, path):
        self.machine = Machine()
        self.path = path / "events.jsonl"
        self.shown = RecordingObserver()

    def daemon(self, *acts):
        def build(log):
            return Controller(Shims.cluster, *SmallPolicy().build(), log=log)

        controller, log = recover(self.path, Manifest("small", Shims.cluster), build)
        source = Script(acts)
        history = RunHistory(None, self.shown.note)
        machine = self.machine
        contact = ClusterContact(Shims(machine))
        Daemon(controller, log, contact, source, history, None, self.shown, machine.clocks()).work()
        os.close(source.descriptor)

    def job(self, job_id, lasts):
        def act():
            self.machine.lasts[job_id] = lasts
            return [Job.gang(job_id, NOON, 1)]

        return act

    def later(self, seconds):
        return lambda: self.machine.passes(seconds)

    def set_clock(self, by):
        def act():
            self.machine.wall += by

        return act

    @property
    def ran(self):
        """How long jobs ran, by their attempts in order of ending."""
        return [(each.job_id, round(each.runtime_seconds, 3)) for each in self.shown.ends]

    @property
    def times(self):
        return [each.time for each in read_log(self.path) if isinstance(each, EventTaken)]

    @property
    def is_in_order(self):
        """Whether steps follow each other, and attempts lie between their start and their end."""
        begun, told = {}, []
        for each in read_log(self.path):
            match each:
                case Instructed(time=now, instruction=Start() as start):
                    begun[start.job_id, start.attempt] = now
                case EventTaken(time=now, event=Ended(outcome=outcome)):
                    start = begun[outcome.job_id, outcome.attempt]
                    told.append(start <= outcome.start_seconds <= outcome.end_seconds <= now)
        return all(told) and self.times == sorted(self.times)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


@pytest.mark.parametrize("by", [HOUR, -2 * HOUR])
def test_a_step_while_jobs_run_changes_no_runtime_and_is_said_once(run, by):
    """Those that ran over it, and those that start behind it, over two restarts."""
    run.daemon(
        run.job("over", 3.0),
        run.later(2.0),
        run.set_clock(by),
        run.job("next", 2.0),
        run.later(1.0),
    )
    run.daemon(run.later(1.0), run.job("third", 2.0), run.later(2.0))
    run.daemon(run.job("last", 5.0), run.later(4.0), run.later(1.0))
    assert run.ran == [("over", 3.0), ("next", 2.0), ("third", 2.0), ("last", 5.0)]
    assert run.is_in_order
    (sentence,) = run.shown.sentences
    assert ("set 60 min forward" in sentence or "set 1 h forward" in sentence) is (by > 0)
    assert ("set 2 h back" in sentence) is (by < 0)


def test_a_step_while_no_daemon_is_there_is_noticed_by_the_next(run):
    """What ran meanwhile ran as long as its shim says, and what runs on has its time so far."""
    run.daemon(run.job("short", 4.0), run.job("long", 60.0), run.later(1.0))
    run.machine.passes(9.0)
    run.machine.wall -= 2 * HOUR
    run.daemon(run.later(20.0), run.later(40.0))
    assert run.ran == [("short", 4.0), ("long", 60.0)]
    assert len(run.shown.sentences) == 1
    assert run.times[-1] == NOON + 1.0 + 9.0 + 60.0


@pytest.mark.parametrize("later", [-HOUR, 10 * HOUR])
def test_after_a_reboot_the_shims_record_decides_and_what_was_lost_ran_until_last_heard_of(
    run, later
):
    """Be the wall clock behind the run's last step, or hours later."""
    run.daemon(run.job("done", 4.0), run.job("lost", 60.0), run.later(3.0), run.job("x", 900.0))
    run.machine.passes(7.0)
    run.machine.reboots(NOON + later)
    run.machine.lasts = dict.fromkeys(run.machine.lasts, 2.0)
    run.daemon(run.later(2.0))
    assert run.ran[:3] == [("done", 4.0), ("lost", 3.0), ("x", 0.0)]
    assert run.ran[3:] == [("lost", 2.0), ("x", 2.0)]
    assert run.is_in_order
    is_said = any("behind the run's last record" in each for each in run.shown.sentences)
    assert is_said is (later < 0)


def test_a_record_of_a_shim_that_outlasts_the_wall_clock_moves_the_runs_time_on(run):
    """A job ran for five hours unwatched; then came a reboot with a clock that is set back."""
    run.daemon(run.job("long", 5 * HOUR))
    run.machine.passes(6 * HOUR)
    run.machine.reboots(NOON - HOUR)
    run.daemon()
    assert run.ran == [("long", 5 * HOUR)]
    assert run.shown.ends[0].start_seconds == NOON


def test_a_suspended_machine_counts_as_time(run):
    """As people see it: both clocks have gone on."""
    run.daemon(run.job("a", 10.0), run.later(4.0), run.later(3600.0))
    assert run.ran == [("a", 10.0)]
    assert run.shown.sentences == []


def test_while_nothing_runs_the_wall_clock_is_followed_or_waited_for():
    """Forward at once; set back, the run stands still, and goes on evenly once something runs."""
    machine = Machine()
    clock = RunClock(0.0, None, machine.clocks())
    machine.wall += HOUR
    assert clock.advance() == NOON
    assert "1 h behind" in clock.remark() or "60 min behind" in clock.remark()
    clock.follow_wall()
    assert clock.advance() == NOON + HOUR
    machine.wall -= 2.0 * HOUR
    for _ in range(3):
        machine.passes(600.0)
        clock.follow_wall()
        assert clock.advance() == NOON + HOUR
    machine.passes(10.0)
    assert clock.advance() == NOON + HOUR + 10.0
    machine.passes(2 * HOUR)
    assert clock.remark() is not None
    machine.wall += 2 * HOUR
    clock.follow_wall()
    assert clock.advance() == machine.wall
    assert clock.remark() is None


def test_the_log_is_told_of_clocks_where_it_cannot_know_them():
    """At first, at a step, and when the run's clock has followed by the next step; never else."""
    machine, said = Machine(), []
    clock = RunClock(0.0, None, machine.clocks())

    def news(*, is_step):
        clock.advance()
        return clock.news(said.append, is_step=is_step)

    assert news(is_step=True) == ClockRead(NOON, "first", 100.0, NOON)
    machine.passes(5.0)
    assert news(is_step=True) is None
    machine.wall += 0.9
    assert news(is_step=True) is None
    machine.wall += 60.0
    assert news(is_step=False) == ClockRead(NOON + 5.0, "first", 105.0, NOON + 65.9)
    clock.follow_wall()
    assert news(is_step=False) is None
    told = news(is_step=True)
    assert told == ClockRead(NOON + 65.9, "first", 105.0, NOON + 65.9)
    assert len(said) == 1
    again = RunClock(NOON, told, machine.clocks())
    machine.passes(1.0)
    assert again.advance() == NOON + 66.9


def test_a_begin_is_meant_by_the_wall_clock_when_a_job_is_submitted():
    """Under a run whose clock is two hours ahead, it comes two hours later by that."""
    job = replace(command("a", "true"), begin_seconds=NOON)
    ahead = by_clock_of_run(job, time.time() + 2 * HOUR).begin_seconds
    assert ahead == pytest.approx(NOON + 2 * HOUR, abs=1.0)
    assert by_clock_of_run(job, time.time()) is job
    without = command("b", "true")
    assert by_clock_of_run(without, NOON) is without
