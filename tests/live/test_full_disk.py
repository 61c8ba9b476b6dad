"""A disk without room while a job begins and while it ends: it is waited for, and that is said."""

import subprocess
import time

import pytest

from foresail.distributions.basic import Point
from foresail.live import run_directory
from foresail.model.errors import InputError
from local_runs import mounted
from standins import LastRuntime, RecordingObserver, command, new_run, supervise, use_small_policy


@pytest.fixture
def small_disk(tmp_path):
    yield from mounted(tmp_path / "disk", "600k")


def test_a_job_that_waits_for_room_is_told_once_and_not_counted_as_running(small_disk, monkeypatch):
    """Each time, the filler is removed once it is said; the wait is no part of the runtime."""
    use_small_policy(monkeypatch)
    monkeypatch.setattr(LastRuntime, "predict", lambda *_: Point(600.0))
    filler = small_disk / "filler"
    fill = f"cat /dev/zero > {filler} 2> /dev/null; true"
    room_since = []

    class Remover(RecordingObserver):
        def note(self, sentence):
            super().note(sentence)
            room_since.append(time.time())
            filler.unlink()

    shown = Remover(on_start=lambda job: subprocess.run(fill, shell=True, check=True))
    run = new_run(small_disk / "run", [command("only", ["sh", "-c", fill])])
    result = supervise(run, shown)
    assert result.exit_status == 0
    begins, ends = shown.sentences
    assert begins == (
        "only has been started but cannot write its claim: No space left on device; "
        "it begins as soon as there is room"
    )
    assert ends == (
        "only has ended but cannot record that: No space left on device; "
        "it counts as ended as soon as there is room"
    )
    (outcome,) = shown.ends
    assert room_since[0] <= outcome.start_seconds <= outcome.end_seconds <= room_since[1]


def test_lines_that_were_accepted_in_part_leave_nothing_behind(tmp_path, monkeypatch):
    """They were written, but whether they are on disk cannot be said: none of them is accepted."""
    run = new_run(tmp_path / "run", [command("first", ["true"])])
    before = (run.path / "jobs.jsonl").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(run_directory.os, "fsync", full)
        with pytest.raises(InputError, match="the last lines are not accepted"):
            run.add_jobs([command("second", ["true"]), command("third", ["true"])])
    assert (run.path / "jobs.jsonl").read_bytes() == before
    run.add_jobs([command("fourth", ["true"])])
    assert [job.job_id for job in run.jobs()] == ["first", "fourth"]
