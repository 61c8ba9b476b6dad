"""Schedules on disk: what is written is read, and so is what was written before reservations."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.traces.schedule import read_schedule, write_schedule
from made_schedules import made_schedule

LATER = ["accepted", "eligible_seconds"]
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


@pytest.mark.parametrize("later", [["accepted"], ["eligible_seconds"], LATER])
@pytest.mark.parametrize("parts", [{}, {"stage": [None] * 3, "tasks": ["0"] * 3}])
def test_a_file_from_before_there_were_reservations_or_eligibility(tmp_path, later, parts):
    """It has no column for them: nobody has asked, and all were eligible at once."""
    schedule = made_schedule(ROWS)
    columns = [pl.Series(name, values, pl.String) for name, values in parts.items()]
    jobs = schedule.jobs.with_columns(columns)
    write_schedule(replace(schedule, jobs=jobs.drop(later)), tmp_path / "old.parquet")
    again = read_schedule(tmp_path / "old.parquet")
    assert again.jobs.schema == jobs.schema
    assert all(again.jobs[name].is_null().all() for name in later)


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
