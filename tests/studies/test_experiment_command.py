"""``foresail experiment``, as a user meets it."""

from __future__ import annotations

import json
from functools import partial

import pytest

from foresail.campaigns import running
from made_studies import in_turn

SMALL = ("seeds=2", "hours=0.1", "nodes=64", "samples=[5,25]", "cycle_seconds=30")


@pytest.fixture
def foresail(foresail):
    return partial(foresail, "experiment")


@pytest.fixture
def here(monkeypatch):
    """Runs are made in this process: others are tested with the pool."""
    monkeypatch.setattr(running, "in_processes", lambda call, items, workers: in_turn(call, items))


def settings():
    """The smallest size of a study."""
    return [part for text in SMALL for part in ("--set", text)]


def test_list_says_how_long_each_takes(foresail):
    """Every study is a line with both durations and its parameters."""
    status, printed, _ = foresail("list")
    assert status == 0
    line = next(line for line in printed.splitlines() if line.startswith("3sigma-load "))
    assert "min" in line
    assert "loads=[1,1.2,1.4,1.6]" in line


@pytest.mark.usefixtures("here")
def test_run_and_run_again(foresail, tmp_path):
    """The first run makes the report; the second repeats nothing and prints the same numbers."""
    folder = tmp_path / "study"
    command = ("run", "3sigma-sample-size", "--quick", *settings(), "--output", folder)
    status, printed, told = foresail(*command)
    assert status == 0
    assert "deadlines missed" in printed
    assert "12 runs; report" in told
    own = folder / "3sigma-sample-size"
    assert (own / "report.html").exists()
    assert "3sigma-sample-size" in (own / "3sigma-sample-size.md").read_text()
    status, again, told = foresail(*command)
    assert "0 runs; report" in told
    assert again == printed
    status, printed, _ = foresail(*command, "--format", "json")
    assert json.loads(printed)["study"] == "3sigma-sample-size"
    status, printed, _ = foresail(*command, "--format", "csv")
    assert printed.startswith("group,x,system,measure")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run", "3sigma-lod"), "3sigma-load"),
        (("run", "3sigma-load", "--set", "laods=2"), "loads"),
        (("run", "3sigma-load", "--set", "hours=-1"), "hours"),
        (("run", "3sigma-load", "--log", "a.swf"), "log"),
    ],
    ids=["name", "parameter", "value", "log"],
)
def test_bad_input(foresail, tmp_path, monkeypatch, arguments, problem):
    """Wrong names and values are one line, status 2, and leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    status, _, told = foresail(*arguments)
    assert status == 2
    assert told.startswith("foresail: ")
    assert problem in told
    assert list(tmp_path.iterdir()) == []
