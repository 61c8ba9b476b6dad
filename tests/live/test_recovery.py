"""Recovery: whatever is killed at whatever moment, no job is lost and none runs twice."""

import errno
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import standins
from foresail.live.adapters.local import shim_files
from foresail.live.adapters.local.attempts import Attempt, ProcessSpawner
from foresail.live.adapters.local.machine import permitted_cgroups
from foresail.model.errors import InputError
from long_series import of_a_series
from standins import (
    Double,
    FirstFit,
    LastRuntime,
    RecordingObserver,
    SmallPolicy,
    command,
    new_run,
    repeats,
    supervise,
    use_small_policy,
)
from until import until

_small_policy = pytest.fixture(autouse=True)(use_small_policy)


def supervisor(run):
    """A supervisor of the run as a process of its own."""
    return subprocess.Popen([sys.executable, standins.__file__, str(run.path)])


def kill_supervisor(process):
    process.kill()
    process.wait()


def marking(marks: Path, job_id: str, seconds: float, **fields):
    """A job that marks its beginning and its end in a file."""
    line = f"echo begin {job_id} >> {marks}; sleep {seconds}; echo end {job_id} >> {marks}"
    return command(job_id, line, **fields)


def counted(marks: Path) -> Counter[str]:
    return Counter(marks.read_text().splitlines()) if marks.exists() else Counter()


def once(jobs) -> Counter[str]:
    return Counter(f"{word} {job.job_id}" for job in jobs for word in ("begin", "end"))


def test_supervisors_killed_at_random_moments_neither_lose_nor_repeat_a_job(tmp_path):
    """Supervisors are killed one after the other; every job begins and ends once."""
    chance = random.Random(7)
    marks = tmp_path / "marks"
    jobs = [
        marking(marks, f"j{n}", round(chance.uniform(0.0, 0.5), 2), cpus=1 + (n % 5 == 0))
        for n in range(of_a_series(36, short=18))
    ]
    run = new_run(tmp_path / "run", jobs)
    for _ in range(of_a_series(12, short=6)):
        process = supervisor(run)
        steps = run.events.stat().st_size if run.events.exists() else 0
        until(  # imports take most of a supervisor's life here: kill it where it matters
            lambda p=process, s=steps: (
                p.poll() is not None or (run.events.exists() and run.events.stat().st_size > s)
            )
        )
        time.sleep(chance.uniform(0.0, 0.3))
        kill_supervisor(process)
    result = supervise(run, RecordingObserver())
    assert result.exit_status == 0
    assert counted(marks) == once(jobs)
    assert result.schedule.jobs["job_id"].to_list() == [job.job_id for job in jobs]
    assert set(result.schedule.jobs["attempt"]) == {1}
    assert repeats(run)


def test_a_job_that_outlives_its_supervisor_is_adopted(tmp_path):
    """It is waited for, and its end is the real one."""
    marks = tmp_path / "marks"
    run = new_run(tmp_path / "run", [marking(marks, "long", 1.0)])
    process = supervisor(run)
    until(lambda: counted(marks))
    kill_supervisor(process)
    shown = RecordingObserver()
    result = supervise(run, shown)
    assert shown.starts == []
    assert any("still running" in sentence for sentence in shown.sentences)
    assert counted(marks) == once(run.jobs())
    assert result.schedule.jobs["end_seconds"][0] >= 1.0


def test_a_job_that_ended_unwatched_is_counted_as_it_ended(tmp_path):
    """Its shim recorded the exit code and enforced the limit while nobody watched."""
    marks = tmp_path / "marks"
    jobs = [
        command("bad", f"echo on >> {marks}; sleep 0.2; exit 4"),
        command("over", f"echo on >> {marks}; sleep 30", requested_seconds=0.3),
    ]
    run = new_run(tmp_path / "run", jobs)
    process = supervisor(run)
    until(lambda: counted(marks)["on"] == 2)
    kill_supervisor(process)
    until(lambda: all(Attempt(job.job_id, 1, run.attempts).status() for job in jobs))
    time.sleep(0.3)
    shown, restarted = RecordingObserver(), time.time()
    supervise(run, shown)
    ends = {each.job_id: each for each in shown.ends}
    assert all(each.end_seconds < restarted - 0.2 for each in shown.ends)
    assert (ends["bad"].ended_because.value, ends["bad"].exit_code) == ("failed", 4)
    assert ends["over"].ended_because.value == "limit"
    assert ends["over"].runtime_seconds < 1.5
    assert shown.starts == []


def kill_everything(process, marks):
    """What a power cut does, as far as this run is concerned."""
    family = psutil.Process(process.pid).children(recursive=True)
    kill_supervisor(process)
    for each in family:
        each.kill()
    psutil.wait_procs(family, timeout=5)
    return counted(marks)


def test_jobs_that_died_with_the_machine_are_lost_and_run_again(tmp_path):
    """Both attempts are in the schedule, the first as lost, and it is said; some want but one."""
    marks = tmp_path / "marks"
    jobs = [
        marking(marks, "a", 0.6),
        replace(marking(marks, "b", 0.6), once=True),
        marking(marks, "c", 0.0),
    ]
    run = new_run(tmp_path / "run", jobs)
    process = supervisor(run)
    until(lambda: len(counted(marks)) == 2)
    assert kill_everything(process, marks) == Counter({"begin a": 1, "begin b": 1})
    shown = RecordingObserver()
    result = supervise(run, shown)
    assert result.exit_status == 1
    assert counted(marks) == once(jobs) + Counter({"begin a": 1}) - Counter({"end b": 1})
    assert sum("was lost" in sentence for sentence in shown.sentences) == 2
    rows = result.schedule.jobs.select("job_id", "attempt", "ended_because").rows()
    assert rows[:3] == [("a", 1, "lost"), ("a", 2, "completed"), ("b", 1, "failed")]
    assert repeats(run)


def test_a_command_whose_shim_is_killed_is_cleared_away_before_it_runs_again(tmp_path):
    """Two attempts never overlap; a job that kills its shim every time is given up."""
    marks = tmp_path / "marks"
    line = f"echo $$ >> {marks}; kill -9 $PPID; sleep 30"
    shown = RecordingObserver()
    result = supervise(new_run(tmp_path / "run", [command("rude", line)]), shown)
    assert [each.ended_because.value for each in shown.ends] == ["lost", "lost", "failed"]
    assert result.exit_status == 1
    for pid in map(int, marks.read_text().split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_an_attempt_that_was_to_start_is_started_once_whoever_comes_first(tmp_path):
    """Many shims for one attempt, as after a kill between fork and claim: one runs it."""
    marks = tmp_path / "marks"
    run = new_run(tmp_path / "run", [marking(marks, "only", 0.1)])
    attempts = [Attempt("only", 1, run.attempts) for _ in range(8)]
    cgroups = permitted_cgroups()
    job = run.jobs()[0]
    with closing(ProcessSpawner()) as spawner:
        gone = [
            attempt.spawn(
                spawner,
                job,
                limit_seconds=9.0,
                grace_seconds=1.0,
                cpus=(),
                gpus=(),
                cgroup=cgroups and cgroups.of_attempt(job, 1, run.attempts, ()),
                environment=os.environ,
                logs=run.logs,
                log_bytes=1e6,
            )
            for attempt in attempts
        ]
        for pidfd in gone:
            assert select.select([pidfd], [], [], 10.0)[0]
    for attempt in attempts:
        attempt.release()
    assert counted(marks) == once(run.jobs())


def test_a_spawner_that_died_is_replaced(tmp_path):
    """The next job starts from a new one; the jobs of the old one go on."""
    marks = tmp_path / "marks"
    jobs = [marking(marks, f"j{n}", 0.2) for n in range(4)]
    shown = RecordingObserver()

    def kill_spawner(job):
        for each in psutil.Process().children():
            if job.job_id == "j2" and "job_shim" in " ".join(each.cmdline()):
                each.kill()

    shown.on_start = kill_spawner
    result = supervise(new_run(tmp_path / "run", jobs), shown)
    assert result.exit_status == 0
    assert counted(marks) == once(jobs)


@pytest.mark.parametrize("part", [0.01, 0.3, 0.6, 0.9, 0.99])
def test_a_step_that_was_half_written_is_taken_anew(tmp_path, part):
    """The last step is cut at any place, even within a line: the run goes on from before it."""
    marks = tmp_path / "marks"
    jobs = [marking(marks, f"j{n}", 0.0) for n in range(3)]
    run = new_run(tmp_path / "run", jobs)
    supervise(run, RecordingObserver())
    content = run.events.read_bytes()
    lines = content.splitlines(keepends=True)
    last = sum(map(len, lines[:-1]))
    os.truncate(run.events, last + int(part * len(lines[-1])))
    result = supervise(run, RecordingObserver())
    assert result.exit_status == 0
    assert counted(marks) == once(jobs)
    assert repeats(run)


def test_any_beginning_of_a_log_can_be_gone_on_from(tmp_path):
    """However early the log breaks off, claims and statuses keep jobs from running twice."""
    marks = tmp_path / "marks"
    jobs = [marking(marks, f"j{n}", 0.0, cpus=1 + n % 2) for n in range(4)]
    run = new_run(tmp_path / "run", jobs)
    supervise(run, RecordingObserver())
    content = run.events.read_bytes()
    chance = random.Random(3)
    for _ in range(12):
        run.events.write_bytes(content[: chance.randrange(len(content))])
        assert supervise(run, RecordingObserver()).exit_status == 0
        assert counted(marks) == once(jobs)
        assert repeats(run)


@pytest.mark.parametrize(("gone", "emptied"), [("claim", ""), ("", "claim"), ("status", "")])
def test_files_that_a_crash_of_the_machine_took(tmp_path, gone, emptied):
    """Without a claim the status counts; without a status the attempt is lost and run again."""
    marks = tmp_path / "marks"
    run = new_run(tmp_path / "run", [marking(marks, "only", 0.0)])
    supervise(run, RecordingObserver())
    lines = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join(lines[:-1]))
    if gone:
        (run.attempts / f"only.1.{gone}").unlink()
    if emptied:
        (run.attempts / f"only.1.{emptied}").write_text("")
        (run.attempts / "only.1.status").unlink()
    assert supervise(run, RecordingObserver()).exit_status == 0
    assert counted(marks)["end only"] == (1 if gone == "claim" else 2)


def test_a_log_that_cannot_be_is_refused(tmp_path):
    """What was never submitted, or runs already, cannot start: somebody has changed the log."""
    run = new_run(tmp_path / "run", [command(f"j{n}", "true") for n in range(3)])
    supervise(run, RecordingObserver())
    text = run.events.read_text()
    for changed in (
        text.replace('"type":"Start","job_id":"j0"', '"type":"Start","job_id":"j2"'),
        text.replace('"job_id":"j0"', '"job_id":"j2"', 3),
        text.replace('"kind":"event"', '"kind":"evnt"', 1),
        text.replace('"step":0', '"stop":0', 1),
    ):
        assert changed != text
        run.events.write_text(changed)
        with pytest.raises(InputError, match=r"events\.jsonl"):
            supervise(run, RecordingObserver())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_a_run_is_left_when_it_is_over(tmp_path, number):
    """After a kill, a resume and a stop, nothing that the run started is alive."""
    marks = tmp_path / "marks"
    run = new_run(tmp_path / "run", [marking(marks, "a", 30), marking(marks, "b", 30)], grace=0.2)
    process = supervisor(run)
    until(lambda: len(counted(marks)) == 2)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    process.wait()
    if number == signal.SIGKILL:
        assert sum(each.is_running() for each in family) >= 4  # two shims, two commands
        process = supervisor(run)
        size = run.events.stat().st_size
        until(lambda: run.events.stat().st_size > size)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 130
    _, alive = psutil.wait_procs(family, timeout=5)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []


class LastFirst(FirstFit):
    """Starts the latest that fits: another version of the scheduler, which decides otherwise."""

    def decide(self, view):
        return super().decide(replace(view, pending=view.pending[::-1]))


def test_a_scheduler_that_decides_otherwise_goes_on(tmp_path, monkeypatch):
    """A supervisor is killed, the scheduler changes: what runs is waited for, the rest runs."""
    marks = tmp_path / "marks"
    jobs = [marking(marks, f"j{n}", 0.4) for n in range(8)]
    run = new_run(tmp_path / "run", jobs)
    process = supervisor(run)
    until(lambda: sum(counted(marks).values()) >= 5)
    kill_supervisor(process)
    monkeypatch.setattr(SmallPolicy, "build", lambda policy: (LastFirst(), LastRuntime(), Double()))
    shown = RecordingObserver()
    result = supervise(run, shown)
    assert result.exit_status == 0
    assert counted(marks) == once(jobs)
    assert shown.starts[0] == ("j7", 1)
    assert not repeats(run)


@pytest.mark.parametrize("room", [300, 900, 2500, 4000])
def test_a_full_disk_ends_the_session_and_costs_nothing(tmp_path, room):
    """It is said in a sentence, with status 2; with room again, every job has run once."""
    marks = tmp_path / "marks"
    jobs = [marking(marks, f"j{n}", 0.05) for n in range(6)]
    run = new_run(tmp_path / "run", jobs)
    sizes = []
    for _ in range(2):
        full = subprocess.run(
            [sys.executable, standins.__file__, str(run.path), str(room)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert full.returncode == 2
        assert "events.jsonl: cannot be written" in full.stderr
        assert len(full.stderr.splitlines()) == 1
        sizes.append(run.events.stat().st_size)
    assert max(sizes) <= room
    assert supervise(run, RecordingObserver()).exit_status == 0
    assert counted(marks) == once(jobs)
    assert repeats(run)


def test_a_shim_waits_for_room_to_say_how_it_ended(tmp_path, monkeypatch):
    """A command that has run is not run again because its end could not be written down."""
    write = shim_files.write
    refusals = [OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "full")]

    def refuse(path, text):
        if refusals:
            raise refusals.pop()
        write(path, text)

    monkeypatch.setattr(shim_files, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(shim_files, "write", refuse)
    recorded = {"identity": "", "boot": "b", "exit_code": 0, "why": "exit", "problem": None}
    recorded |= {"start_unix_seconds": 1.0, "start_since_boot_seconds": 1.0}
    recorded |= {"runtime_seconds": 1.0, "cpu_seconds": None}
    shim_files.patiently(lambda: shim_files.record(str(tmp_path / "only.1"), recorded))
    assert Attempt("only", 1, tmp_path).status().exit_code == 0
