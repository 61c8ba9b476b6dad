"""Forecasts of an observing service and Slurm's own, compared with what became of them."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.state_folder import StateFolder
from foresail.service.store.protocol import (
    ForecastKind,
    ForecastRow,
    KeyedCall,
    Submit,
    WholeStep,
)
from foresail.service.store.sql_store import SqlStore

MADE = -500.0


@pytest.fixture
def report(tmp_path):
    """Report on jobs of a partition: middle of the range, Slurm's estimate, start (from now)."""

    def run(*rows, weeks="2", kind=ForecastKind.SUBMISSION):
        now = time.time()
        with closing(SqlStore.in_file(StateFolder(tmp_path).database)) as store:
            for number, (partition, middle, by_slurm, start) in enumerate(rows, 1):
                job = CommandJob(str(number), "fit", "true", "/", user="ann")
                store.accept([KeyedCall("ann", (Submit(job),), None, number)])
                moments = [now + middle + each for each in (-10.0, 0.0, 10.0)]
                by_slurm = None if by_slurm is None else now + by_slurm
                row = (job.job_id, now + MADE, kind, 1, *moments, *moments, False, None, None)
                store.keep_forecasts([ForecastRow(*row, by_slurm, partition)])
                state = {"attempt": 0, "state": "pending"}
                if start is not None:
                    state = {"attempt": 1, "start_seconds": now + start, "state": "running"}
                store.commit_step(WholeStep([], 0, {job.job_id: state}))
        words = ["report", str(tmp_path), "--weeks", weeks]
        said = CliRunner().invoke(app_of("slurm"), words, catch_exceptions=False)
        as_json = CliRunner().invoke(app_of("slurm"), [*words, "--json"], catch_exceptions=False)
        return said.output, {
            each["partition"]: each for each in json.loads(as_json.output)["partitions"]
        }

    return run


def test_both_are_compared_at_the_same_moments(report):
    """An estimate before its moment counts as that; who waits too long is outside of its range."""
    said, found = report(
        ("main", -400.0, -100.0, -405.0),  # 5 s off, and 305
        ("main", -300.0, -900.0, -285.0),  # 15 s off, outside; Slurm's 215, from when it was asked
        ("main", -300.0, None, -300.0),  # of Slurm nothing is known
        ("short", -100.0, -50.0, None),  # should have started
        ("short", 900.0, 950.0, None),  # may start still
    )
    main, short = found["main"], found["short"]
    assert (main["forecasts"], main["compared"]) == (3, 2)
    assert main["within_range"] == pytest.approx(2 / 3)
    assert main["error_seconds"] == pytest.approx(10.0, abs=0.01)
    assert main["slurm_error_seconds"] == pytest.approx(260.0, abs=0.01)
    assert (short["forecasts"], short["within_range"], short["compared"]) == (1, 0.0, 0)
    assert short["error_seconds"] is None
    assert (found["all"]["forecasts"], [*found][-1]) == (4, "all")
    lines = [line.split("  ") for line in said.splitlines()]
    assert [each.strip() for each in lines[1] if each] == [
        "main",
        "3",
        "66.7 %",
        "2",
        "10 s",
        "4 min",
    ]


def test_what_is_old_does_not_count(report):
    row = ("main", -400.0, -100.0, -405.0)
    with pytest.raises(InputError, match="no forecast has come about"):
        report(row, weeks="0.0005")


def test_what_was_not_known_does_not_count(report):
    row = ("main", -400.0, -100.0, -405.0)
    with pytest.raises(InputError, match="no forecast has come about"):
        report(row, kind=ForecastKind.UNKNOWN)
