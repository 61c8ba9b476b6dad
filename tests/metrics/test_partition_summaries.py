"""Figures of each partition, worked out by hand."""

import math

import polars as pl
import pytest

from foresail.metrics.summary import apart, fairness, partition_summaries
from foresail.traces import schema
from foresail.traces.schedule import (
    Schedule,
    ScheduleMeta,
    read_schedule,
    with_partitions,
    write_schedule,
)


def schedule(rows, partitions):
    """Of (partition, submission, start, end, cpus)."""
    names = ("partition", "submit_seconds", "start_seconds", "end_seconds", "cpus")
    table = pl.DataFrame(rows, schema=dict.fromkeys(names), orient="row")
    table = table.with_columns(
        job_id=pl.int_range(pl.len()).cast(pl.String),
        attempt=pl.when(pl.col("start_seconds").is_not_null()).then(1),
    )
    made = Schedule(
        schema.laid_out(table, schema.SCHEDULE),
        ScheduleMeta("easy", sum(partitions.values()), "made"),
    )
    return with_partitions(made, table, partitions, "as given")


ROWS = [
    ("A", 0, 0, 10, 4),
    ("A", 1, 10, 20, 4),
    ("B", 2, 2, 12, 2),
    ("A,B", 3, 3, 13, 1),
    (None, 4, 4, 14, 1),
    ("B", 5, None, None, 9),
]


def test_each_partition_and_each_choice_has_its_figures():
    """Also a partition without jobs, jobs that name none, and those that never started."""
    told = partition_summaries(schedule(ROWS, {"A": 4, "A,B": 1, "B": 3, "C": 2}))
    assert [(each.partition, each.processors, each.jobs, each.never_started) for each in told] == [
        ("A", 5, 2, 0),
        ("B", 4, 1, 1),
        ("C", 2, 0, 0),
        ("A,B", 8, 1, 0),
        ("", 10, 1, 0),
    ]
    assert [each.mean_wait_seconds for each in told[:2]] == [4.5, 0.0]
    assert told[0].max_wait_seconds == 9.0
    assert told[0].average_bounded_slowdown == pytest.approx((1.0 + 1.9) / 2)
    assert [each.steady_utilization for each in told] == pytest.approx(
        [0.8, 0.25, 0.0, 0.0625, 0.05]
    )
    assert math.isnan(told[2].mean_wait_seconds)


def test_nobody_could_have_what_is_idle_elsewhere():
    """A's job waits 9 s while B has two processors free: no loss of capacity, nobody overtaken."""
    found = fairness(schedule(ROWS[:3], {"A": 4, "B": 4}))
    assert (found.loss_of_capacity, found.avoidable_idle_share) == (0.0, 0.0)
    assert (found.overtaken_jobs, found.passed_over_jobs) == (0, 0)
    shared = fairness(schedule(ROWS[:3], {"A": 4, "A,B": 4}))
    assert shared.loss_of_capacity > 0.0
    assert shared.overtaken_jobs == 1


def test_what_shares_nothing():
    """Nodes of both, or a job that may run in either, make one of two."""
    parts = {"A": 4, "B": 3, "C": 2, "C,D": 1}
    told = [(sorted(ids), cpus) for ids, cpus in apart(schedule(ROWS[:3], parts))]
    assert sorted(told) == [([], 3.0), (["0", "1"], 4.0), (["2"], 3.0)]
    told = [(ids.to_list(), cpus) for ids, cpus in apart(schedule(ROWS[:4], parts))]
    assert sorted(cpus for _, cpus in told) == [3.0, 7.0]
    assert len(apart(schedule(ROWS[:5], parts))) == 1


def test_the_file_of_a_schedule_keeps_them(tmp_path):
    """What each job names, the processors, and what is said of them."""
    made = schedule(ROWS, {"A": 4, "B": 4})
    write_schedule(made, tmp_path / "schedule.parquet")
    told = read_schedule(tmp_path / "schedule.parquet")
    assert told.jobs.equals(made.jobs)
    assert told.meta == made.meta
