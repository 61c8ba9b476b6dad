"""The local cluster: what runs, how it ends, and that the log says so."""

import os
import signal
import subprocess
import threading
import time
from dataclasses import replace

import psutil
import pytest

from empty_rooms import empty_room
from foresail.live.adapters.local.attempts import ProcessSpawner
from foresail.live.jobs_file import JobLines
from foresail.live.source import LineInput
from foresail.model.decision import Decision, Placement, Start
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause, HistoryOutcome
from foresail.model.protocols import Scheduler
from foresail.record.log_text import read_log
from foresail.record.records import EventTaken
from foresail.traces import schema
from standins import (
    Double,
    LastRuntime,
    RecordingObserver,
    SmallPolicy,
    command,
    new_run,
    repeats,
    supervise,
    use_small_policy,
)

_small_policy = pytest.fixture(autouse=True)(use_small_policy)


def output(run, job_id):
    return (run.logs / f"{job_id}.out").read_text()


def test_commands_run_with_their_settings_and_leave_logs_and_a_schedule(tmp_path):
    """Shell and list commands, environment, directory, both streams, one row per job."""
    jobs = [
        command("shell", "echo $FORESAIL_CPUS $OMP_NUM_THREADS $EXTRA; pwd; echo oops >&2", cpus=2),
        command("list", ("printf", "%s|", "a b", "$HOME")),
    ]
    jobs[0] = replace(jobs[0], environment={"EXTRA": "more"}, directory=str(tmp_path))
    run = new_run(tmp_path / "run", jobs)
    result = supervise(run, RecordingObserver())
    assert result.exit_status == 0
    assert output(run, "shell") == f"2 2 more\n{tmp_path}\noops\n"
    assert output(run, "list") == "a b|$HOME|"
    table = result.schedule.jobs
    assert table.schema == schema.SCHEDULE
    assert table["job_id"].to_list() == ["shell", "list"]
    assert table["ended_because"].to_list() == ["completed", "completed"]
    assert (table["start_seconds"] >= table["submit_seconds"]).all()
    assert run.schedule.is_file()
    assert repeats(run)


def test_jobs_never_hold_more_cpus_than_there_are(tmp_path):
    """Neither by the schedule nor in fact are more than two cpus' worth of commands at work."""
    jobs = [command(f"j{n}", "sleep 0.1", cpus=1 + n % 2) for n in range(8)]
    table = supervise(new_run(tmp_path / "run", jobs), RecordingObserver()).schedule.jobs
    edges = sorted(
        [(start, cpus) for start, cpus in zip(table["start_seconds"], table["cpus"], strict=True)]
        + [(end, -cpus) for end, cpus in zip(table["end_seconds"], table["cpus"], strict=True)]
    )
    held = most = 0.0
    for _, change in edges:
        held += change
        most = max(most, held)
    assert most == 2


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cpus")
def test_jobs_are_bound_to_distinct_cpus(tmp_path):
    """Two jobs of one cpu each that run together never share one."""
    see = "python3 -c 'import os,time; print(*os.sched_getaffinity(0)); time.sleep(0.3)'"
    run = new_run(tmp_path / "run", [command("a", see), command("b", see)])
    supervise(run, RecordingObserver())
    first, second = output(run, "a").split(), output(run, "b").split()
    assert len(first) == len(second) == 1
    assert first != second


def test_ends_are_told_apart(tmp_path):
    """Completed, failed, killed by a signal, at its limit gently and firmly, impossible to run."""
    jobs = [
        command("fine", "exit 0"),
        command("three", "exit 3"),
        command("signalled", "kill -11 $$"),
        command("gentle", "trap 'echo bye; exit 0' TERM; sleep 9 & wait", requested_seconds=0.2),
        command("firm", "trap '' TERM; sleep 9; sleep 9", requested_seconds=0.2),
        command("absent", ("no-such-program-here",)),
    ]
    run = new_run(tmp_path / "run", jobs)
    shown = RecordingObserver()
    began = time.monotonic()
    result = supervise(run, shown)
    assert time.monotonic() - began < 5
    ends = {each.job_id: (each.ended_because, each.exit_code) for each in shown.ends}
    assert ends == {
        "fine": (EndedBecause.COMPLETED, 0),
        "three": (EndedBecause.FAILED, 3),
        "signalled": (EndedBecause.FAILED, -11),
        "gentle": (EndedBecause.LIMIT, 0),
        "firm": (EndedBecause.LIMIT, -9),
        "absent": (EndedBecause.FAILED, 127),
    }
    assert output(run, "gentle") == "bye\n"
    assert "no-such-program-here" in output(run, "absent")
    assert result.exit_status == 1


def test_what_a_command_leaves_behind_ends_with_it(tmp_path):
    """A background process does not live on in a slot that somebody else was given."""
    run = new_run(tmp_path / "run", [command("parent", "sleep 60 & echo $!")])
    supervise(run, RecordingObserver())
    pid = int(output(run, "parent"))
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_job_waits_for_those_it_comes_after_and_is_cancelled_with_them(tmp_path):
    """After a completed job it runs; after a failed one neither it nor its own followers do."""
    jobs = [
        command("late", "cat $OLDPWD/dev/null; exit 0", after=("good",)),
        command("good", "sleep 0.2"),
        command("bad", "false"),
        command("child", "true", after=("bad",)),
        command("grandchild", "true", after=("child", "good")),
    ]
    shown = RecordingObserver()
    result = supervise(new_run(tmp_path / "run", jobs), shown)
    assert [job_id for job_id, _ in shown.starts].index("late") > [
        job_id for job_id, _ in shown.starts
    ].index("good")
    assert {job_id for job_id, _ in shown.withdrawals} == {"child", "grandchild"}
    assert "bad" in dict(shown.withdrawals)["child"]
    assert result.exit_status == 1
    assert result.left == ()


def test_a_directory_that_has_gone_is_one_jobs_failure(tmp_path):
    """The problem is in that job's log, and the others go on; its reason can be printed."""
    lost = replace(command("lost", "true"), directory=f"{tmp_path}/go\x1b\nne")
    shown = RecordingObserver()
    run = new_run(tmp_path / "run", [lost, command("fine", "true")])
    result = supervise(run, shown)
    ends = {each.job_id: each.ended_because.value for each in shown.ends}
    assert ends == {"lost": "failed", "fine": "completed"}
    assert f"{tmp_path}/go\x1b\nne: No such file" in output(run, "lost")
    (lost_end,) = (each for each in shown.ends if each.job_id == "lost")
    assert lost_end.reason == f"cannot be run: {tmp_path / 'go??ne'}: No such file or directory"
    assert result.exit_status == 1


def test_what_is_no_program_and_what_may_not_be_run_are_told_apart(tmp_path):
    """By the exit codes that shells have for it, and by their reasons."""
    (tmp_path / "text").write_text("no program")
    words = {"none": "/there/is/none", "text": str(tmp_path / "text"), "word": "there-is-none"}
    jobs = [replace(command(name, ""), command=(path,)) for name, path in words.items()]
    shown = RecordingObserver()
    supervise(new_run(tmp_path / "run", jobs), shown)
    assert {each.job_id: (each.exit_code, each.reason) for each in shown.ends} == {
        "none": (127, "cannot be run: /there/is/none: No such file or directory"),
        "text": (126, f"cannot be run: {words['text']}: Permission denied"),
        "word": (127, "cannot be run: there-is-none: No such file or directory"),
    }


def test_where_no_process_can_be_started_jobs_fail_and_it_is_said(tmp_path, monkeypatch):
    """The run comes to an end nevertheless."""

    def refuse(spawner, request):
        raise OSError(11, "no process can be started")

    monkeypatch.setattr(ProcessSpawner, "fork", refuse)
    shown = RecordingObserver()
    result = supervise(
        new_run(tmp_path / "run", [command(f"j{n}", "true") for n in range(3)]), shown
    )
    assert [each.ended_because.value for each in shown.ends] == ["failed"] * 3
    assert shown.sentences == [
        f"j{n} cannot be started: no process can be started" for n in range(3)
    ]
    assert result.exit_status == 1


def test_lines_are_run_while_they_arrive(tmp_path):
    """The first job has ended before the second is typed; a bad line is refused, not the rest."""
    reading, writing = os.pipe()
    run = new_run(tmp_path / "run", [])
    shown = RecordingObserver()

    def type_lines():
        os.write(writing, b'# jobs\necho first\n{"name": "x", "cpus": 9}\n')
        while not shown.ends:
            time.sleep(0.01)
        os.write(writing, b'{"name": "second", "command": "echo two", "after": "job-1"}\ntr')
        time.sleep(0.05)
        os.write(writing, b"ue")
        os.close(writing)

    typist = threading.Thread(target=type_lines)
    typist.start()
    result = supervise(
        run, shown, LineInput(reading, JobLines(empty_room(2.0), tmp_path, "standard input"))
    )
    typist.join()
    os.close(reading)
    assert [each.job_id for each in shown.ends] == ["job-1", "second", "job-4"]
    assert output(run, "second") == "two\n"
    assert result.refused_lines == 1
    assert result.exit_status == 2
    assert "line 3" in shown.sentences[0]
    assert repeats(run)


def test_one_interrupt_drains_and_resuming_runs_the_rest(tmp_path):
    """What runs ends well, nothing new starts, and the next session takes up what is left."""
    jobs = [command(f"j{n}", f"sleep 0.3; echo {n}") for n in range(5)]
    run = new_run(tmp_path / "run", jobs)
    shown = RecordingObserver()
    shown.on_start = lambda job: job.job_id == "j1" and os.kill(os.getpid(), signal.SIGINT)
    result = supervise(run, shown)
    assert result.exit_status == 130
    assert result.left == ("j2", "j3", "j4")
    assert [each.ended_because for each in shown.ends] == [EndedBecause.COMPLETED] * 2
    again = RecordingObserver()
    result = supervise(run, again)
    assert result.exit_status == 0
    assert [job_id for job_id, _ in again.starts] == ["j2", "j3", "j4"]
    assert result.schedule.jobs["job_id"].to_list() == [job.job_id for job in jobs]
    assert repeats(run)


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_a_second_interrupt_stops_and_what_was_stopped_runs_again(tmp_path, signals):
    """Stopped attempts count as not done: a row each, and another attempt when resumed."""
    mark = tmp_path / "mark"
    line = f"echo start >> {mark}; test $(wc -l < {mark}) -gt 1 || sleep 30; echo end >> {mark}"
    run = new_run(tmp_path / "run", [command("slow", line), command("next", "true", cpus=2)])
    shown = RecordingObserver()

    def interrupt():
        while not mark.exists():
            time.sleep(0.01)
        for number in signals:
            os.kill(os.getpid(), number)
            time.sleep(0.1)

    threading.Thread(target=interrupt).start()
    result = supervise(run, shown)
    assert result.exit_status == 130
    assert result.left == ("slow", "next")
    result = supervise(run, RecordingObserver())
    assert result.exit_status == 0
    assert mark.read_text() == "start\nstart\nend\n"
    assert result.schedule.jobs.select("job_id", "attempt", "ended_because").rows() == [
        ("slow", 1, "preempted"),
        ("slow", 2, "completed"),
        ("next", 1, "completed"),
    ]
    assert repeats(run)


def test_a_second_supervisor_is_refused(tmp_path):
    """Two of them on one run would run jobs twice."""
    run = new_run(tmp_path / "run", [command("only", "true")])
    with run.locked(), pytest.raises(InputError, match="another supervisor"):
        supervise(run, RecordingObserver())
    assert supervise(run, RecordingObserver()).exit_status == 0


def test_a_finished_run_resumed_does_nothing_and_says_the_same(tmp_path):
    """Resuming is safe at any time."""
    run = new_run(tmp_path / "run", [command("a", "true"), command("b", "false")])
    first, shown = supervise(run, RecordingObserver()), RecordingObserver()
    second = supervise(run, shown)
    assert (shown.starts, shown.ends) == ([], [])
    assert second.exit_status == first.exit_status == 1
    assert second.schedule.jobs.equals(first.schedule.jobs)


def test_history_is_given_to_the_next_run_and_is_in_its_log(tmp_path):
    """The second run begins with the outcomes of the first, and predicts from them."""
    history = tmp_path / "state" / "history.jsonl"
    jobs = [command("nap", "sleep 0.3"), command("bad", "exit 1")]
    supervise(new_run(tmp_path / "one", jobs, history=history), RecordingObserver())
    run = new_run(tmp_path / "two", jobs, history=history)
    table = supervise(run, RecordingObserver()).schedule.jobs
    assert table["predicted_seconds"][0] == pytest.approx(0.3, abs=0.25)
    assert table["predicted_seconds"][0] >= 0.3
    recalled = [
        record.event.job.job_id
        for record in read_log(run.events)
        if isinstance(record, EventTaken) and isinstance(record.event, HistoryOutcome)
    ]
    assert recalled == ["bad", "nap"]
    assert len(history.read_text().splitlines()) == 4
    assert repeats(run)


def test_an_unwritable_history_costs_the_history_and_not_the_run(tmp_path):
    """It is said once, and the jobs complete."""
    place = tmp_path / "file"
    place.write_text("")
    shown = RecordingObserver()
    jobs = [command("a", "true"), command("b", "true")]
    result = supervise(new_run(tmp_path / "run", jobs, history=place / "history"), shown)
    assert result.exit_status == 0
    assert len([sentence for sentence in shown.sentences if "history" in sentence]) == 1


def test_estimates_that_expire_are_corrected_on_time(tmp_path):
    """A job that outlives its estimate of 0.1 s is doubled at 0.1, 0.2 and 0.4 s."""
    run = new_run(tmp_path / "run", [command("long", "sleep 0.5")])
    table = supervise(run, RecordingObserver()).schedule.jobs
    assert table["corrections"].to_list() == [3]
    assert repeats(run)


def test_the_next_job_starts_as_soon_as_one_ends(tmp_path):
    """From end to start passes 20 ms at most where the machine is not busy."""
    run = new_run(tmp_path / "run", [command(f"j{n}", "true") for n in range(20)], cpus=1)

    def a_process() -> float:
        began = time.monotonic()
        subprocess.run(["sh", "-c", "true"], check=True)
        return time.monotonic() - began

    before = [a_process() for _ in range(10)]
    table = supervise(run, RecordingObserver()).schedule.jobs
    usual = max(*before, *[a_process() for _ in range(10)])  # as busy as the machine is now
    gaps = (table["start_seconds"].shift(-1) - table["end_seconds"]).drop_nulls()
    assert gaps.min() >= 0
    assert gaps.median() < 0.02 + 5 * usual


class StartsNowhere(Scheduler):
    """Would start each job in a partition that there is not."""

    def decide(self, view):
        elsewhere = Placement.whole("elsewhere", 1)
        return Decision(tuple(Start(each.job.job_id, elsewhere) for each in view.pending))


class NeverStarts(Scheduler):
    def decide(self, view):
        return Decision()


@pytest.mark.parametrize(
    ("scheduler", "refused"),
    [
        (NeverStarts, ""),
        (
            StartsNowhere,
            "; it would have started job 'a': the cluster has no partition 'elsewhere'",
        ),
    ],
)
def test_a_scheduler_that_starts_nothing_is_told_once(tmp_path, monkeypatch, scheduler, refused):
    """Though it is asked again for each further line; and what it would have done is said."""
    parts = scheduler(), LastRuntime(), Double()
    monkeypatch.setattr(SmallPolicy, "build", lambda policy: parts)
    reading, writing = os.pipe()
    shown = RecordingObserver()

    def note(sentence):
        shown.sentences.append(sentence)
        os.write(writing, b"true\n")
        os.close(writing)

    shown.note = note
    run = new_run(tmp_path / "run", [command("a", "true"), command("b", "true")])
    result = supervise(
        run, shown, LineInput(reading, JobLines(empty_room(2.0), tmp_path, "standard input"))
    )
    os.close(reading)
    assert len(result.left) == 3
    assert shown.sentences == [
        f"nothing runs, and the scheduler {scheduler.__name__} of test_local_cluster.py "
        f"starts none of 2 waiting jobs{refused}"
    ]


def test_a_run_waits_for_jobs_that_are_to_begin_later(tmp_path):
    """Also while none runs; a job in a file of its own writes there."""
    begin = time.time() + 1.0
    late = replace(command("late", "echo late"), begin_seconds=begin, output=str(tmp_path / "said"))
    after = replace(command("after", "true"), after=("late",), dependencies="after:late")
    run = new_run(tmp_path / "run", [late, after])
    table = supervise(run, RecordingObserver()).schedule.jobs
    assert table["job_id"].to_list() == ["late", "after"]
    assert min(table["start_seconds"]) >= 0.9
    assert (tmp_path / "said").read_text() == "late\n"
    assert repeats(run)
