"""Schedules on disk: what is written is read."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.traces.schedule import read_schedule, write_schedule
from made_schedules import made_schedule

ROWS = {
    "submit_seconds": [0.0, 1.0, 2.0],
    "start_seconds": [0.0, 5.0, 9.0],
    "end_seconds": [5.0, 9.0, 10.0],
    "accepted": [True, False, None],
}


def test_what_is_written_is_read(tmp_path):
    """Rows, the answers to requests for reservations among them, and what produced them."""
    schedule = made_schedule(ROWS)
    write_schedule(schedule, tmp_path / "schedule.parquet")
    again = read_schedule(tmp_path / "schedule.parquet")
    assert again.jobs.equals(schedule.jobs)
    assert again.meta == schedule.meta


def test_when_nodes_came_and_went_is_read(tmp_path):
    """As it was written; other than pairs of numbers are refused."""
    schedule = made_schedule(ROWS, capacity=((0.0, 4.0), (10.0, 2.5)))
    write_schedule(schedule, tmp_path / "schedule.parquet")
    assert read_schedule(tmp_path / "schedule.parquet").meta == schedule.meta
    write_schedule(made_schedule(ROWS, capacity=((0.0,),)), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="not a schedule"):
        read_schedule(tmp_path / "other.parquet")


def test_other_columns_are_refused(tmp_path):
    """A file with one more column is none of ours."""
    schedule = made_schedule(ROWS)
    other = replace(schedule, jobs=schedule.jobs.with_columns(pl.lit(1).alias("more")))
    write_schedule(other, tmp_path / "other.parquet")
    with pytest.raises(InputError, match="columns of a schedule"):
        read_schedule(tmp_path / "other.parquet")
