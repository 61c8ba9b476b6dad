"""``foresail simulate --events`` leaves a log that ``foresail explain`` reads."""

from __future__ import annotations

import json

import pytest

from calling import call
from foresail.cli.main import app_of
from foresail.model.errors import InputError
from foresail.record.log_text import read_log
from foresail.record.records import Manifest

explain = app_of("explain")
simulate = app_of("simulate")

JOB = "{id} {submit} 0 {run} {cpus} -1 -1 {cpus} {limit} -1 1 {user} 1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def log(tmp_path):
    """Two jobs on four processors; the second has to wait for the first."""
    path = tmp_path / "small.swf"
    path.write_text(
        "; MaxProcs: 4\n; UnixStartTime: 1700006400\n"
        + JOB.format(id=1, submit=0, run=100, cpus=4, limit=150, user=7)
        + JOB.format(id=2, submit=5, run=1800, cpus=2, limit=7200, user=8)
    )
    return path


def test_the_story_of_a_simulated_job(log, tmp_path):
    """Manifest first, nothing unfinished left, and a job's life in sentences with its times."""
    events = tmp_path / "events.jsonl"
    call(simulate, log, "--policy", "easy", "--format", "csv", "--events", events)
    manifest = next(iter(read_log(events)))
    assert isinstance(manifest, Manifest)
    assert list(manifest.inputs) == ["small.swf"]
    assert {path.name for path in tmp_path.iterdir()} == {"small.swf", "events.jsonl"}
    assert call(explain, events, "2").splitlines() == [
        "Job 2; times count from the start of the run, 2023-11-15 00:00:00 UTC.",
        "        5 s  Submitted by 8: 2 cpus, a limit of 2 h.",
        "        5 s  Expected to run for 2 h.",
        "        5 s  Pending: next in line: 2 cpus should be free in 2 min.",
        "      100 s  Started after 95 s of waiting: 2 tasks on all.",
        "31 min 40 s  Ended (completed) after running for 30 min.",
    ]


def test_the_log_is_replaced_not_continued(log, tmp_path):
    """A second simulation leaves the log of that one alone."""
    events = tmp_path / "events.jsonl"
    for _ in range(2):
        call(simulate, log, "--format", "csv", "--events", events)
    assert sum(isinstance(record, Manifest) for record in read_log(events)) == 1


def test_both_ways_print_the_same_figures(log, tmp_path):
    """The event engine's schedule is that of the compiled replay."""
    logged = call(simulate, log, "--format", "json", "--events", tmp_path / "events.jsonl")
    replayed = call(simulate, log, "--format", "json")
    figures = [
        {**json.loads(text)["policies"][0], "replay_seconds": None} for text in (logged, replayed)
    ]
    assert [each.pop("engine") for each in figures] == ["event-engine", "compiled-replay"]
    assert figures[0] == figures[1]


def test_a_log_that_cannot_be_written_is_named(log, tmp_path):
    """A folder that is not there is made; what is in the place of one is an error of the input."""
    call(simulate, log, "--events", tmp_path / "new" / "events.jsonl")
    assert (tmp_path / "new" / "events.jsonl").is_file()
    (tmp_path / "none").write_text("a file")
    with pytest.raises(InputError, match="none: the folder cannot be made"):
        call(simulate, log, "--events", tmp_path / "none" / "events.jsonl")
