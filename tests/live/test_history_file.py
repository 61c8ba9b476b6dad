"""The history file: what is kept, what is read back, and what a damaged one costs."""

from pathlib import Path

import pytest

from foresail.live.run_directory import REMEMBERED, RunHistory, default_path
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job


def kept(number, because=EndedBecause.COMPLETED):
    job = Job.gang(f"j{number}", float(number), 1, 60.0, "ada/train")
    return job, Outcome(job.job_id, float(number), number + 5.0, because)


def test_outcomes_come_back_in_order_and_only_those_that_teach(tmp_path):
    """Attempts that were preempted, lost or cancelled say nothing about how long jobs run."""
    history = RunHistory(tmp_path / "deep" / "history.jsonl", pytest.fail)
    for number, because in enumerate(EndedBecause):
        history.add(9.0, *kept(number, because))
    read = [(each.job, each.outcome) for each in history.latest()]
    assert read == [kept(0), kept(1, EndedBecause.FAILED), kept(2, EndedBecause.LIMIT)]


def test_only_the_latest_are_recalled_and_damage_is_passed_over(tmp_path):
    """A torn line, a foreign line and bytes that are no text cost themselves alone."""
    path = tmp_path / "history.jsonl"
    history = RunHistory(path, pytest.fail)
    for number in range(REMEMBERED + 20):
        history.add(9.0, *kept(number))
    with path.open("ab") as file:
        file.write(b'{"kind":"event","st\n\xff\xfe\n{"kind":"drained","step":0}\n')
    history.add(9.0, *kept(5000))
    latest = history.latest()
    assert len(latest) == REMEMBERED
    assert [each.job.job_id for each in latest[-2:]] == [f"j{REMEMBERED + 19}", "j5000"]


def test_no_file_is_no_history(tmp_path):
    """The first run of all begins with nothing."""
    assert RunHistory(tmp_path / "history.jsonl", pytest.fail).latest() == []


def test_a_file_that_cannot_be_read_is_said_once_and_used_no_more(tmp_path):
    """A folder in its place; what ends is not kept, and the run goes on."""
    notes = []
    history = RunHistory(tmp_path, notes.append)
    assert history.latest() == []
    history.add(9.0, *kept(1))
    assert notes == [f"no history is used or kept: {tmp_path}: cannot be read: Is a directory"]


def test_the_file_is_in_the_state_folder_of_the_user(monkeypatch, tmp_path):
    """XDG_STATE_HOME counts where it is an absolute path."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "foresail" / "history.jsonl"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_path() == Path.home() / ".local" / "state" / "foresail" / "history.jsonl"
