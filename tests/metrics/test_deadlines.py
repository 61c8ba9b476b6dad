"""Deadline metrics: the published golden, never-started jobs, repeated attempts, load."""

from __future__ import annotations

import math

import pytest

from foresail.metrics.summary import deadline_metrics, summary
from foresail.reports.comparison.view import summary_tables, terminal_tables
from made_schedules import made_schedule

HOUR = 3600.0


def hours(values):
    return [None if value is None else value * HOUR for value in values]


def golden():
    """G27 of the reference: three jobs with deadlines and three without, in hours."""
    finish = hours([1.5, 1.25, None, 3, None, 2])
    runtime = hours([1, 0.5, 1, 2, 2, 1])
    pairs = zip(finish, runtime, strict=True)
    return made_schedule(
        {
            "cpus": [2.0, 4.0, 1.0, 1.0, 1.0, 2.0],
            "nominal_runtime_seconds": runtime,
            "submit_seconds": hours([0, 0, 0, 0, 1, 1]),
            "deadline_seconds": hours([2, 1, 1.2, None, None, None]),
            "start_seconds": [None if end is None else end - ran for end, ran in pairs],
            "end_seconds": finish,
            "ended_because": [None if end is None else "completed" for end in finish],
        },
        processors=8,
    )


def test_the_golden_metrics():
    """Two of three deadlines are missed; 8 machine hours are done, 2 of them on time."""
    metrics = deadline_metrics(golden())
    assert metrics.slo_miss_rate == pytest.approx(2 / 3)
    assert (metrics.slo_jobs, metrics.slo_missed, metrics.slo_never_started) == (3, 2, 1)
    assert metrics.goodput_hours == pytest.approx(8.0)
    assert metrics.slo_goodput_hours == pytest.approx(4.0)
    assert metrics.slo_on_time_goodput_hours == pytest.approx(2.0)
    assert metrics.best_effort_goodput_hours == pytest.approx(4.0)
    assert metrics.best_effort_latency_seconds == pytest.approx(2 * HOUR)
    assert metrics.best_effort_completed == 2


def test_load_is_counted_while_jobs_arrive():
    """In the first hour of G27 the jobs hold 1 + 1 + 0 cpu hours (the last one starts then) of 8.

    Two cpus from half past on, four from 45 minutes on.
    """
    assert deadline_metrics(golden()).effective_load == pytest.approx((2 * 0.5 + 4 * 0.25) / 8)


def test_a_stopped_attempt_is_held_and_lost():
    """The work counts once, with its nominal runtime, though it ran slowly and was begun twice."""
    schedule = made_schedule(
        {
            "job_id": ["a", "a", "b"],
            "attempt": [1, 2, 1],
            "submit_seconds": [0.0, 0.0, 3600.0],
            "start_seconds": [0.0, 1800.0, 3600.0],
            "end_seconds": [900.0, 7200.0, 7200.0],
            "nominal_runtime_seconds": [3600.0, 3600.0, 3600.0],
            "deadline_seconds": [8000.0, 8000.0, 7000.0],
            "ended_because": ["preempted", "completed", "lost"],
        },
        processors=1,
    )
    metrics = deadline_metrics(schedule)
    assert (metrics.slo_jobs, metrics.slo_missed, metrics.slo_never_started) == (2, 1, 0)
    assert metrics.goodput_hours == metrics.slo_on_time_goodput_hours == pytest.approx(1.0)
    assert (metrics.preemptions, metrics.lost_attempts) == (1, 1)
    assert metrics.effective_load == pytest.approx((900 + 1800) / 3600)


def test_a_log_without_deadlines():
    """Nothing is missed because nothing could be; real runtimes stand in for nominal ones."""
    metrics = deadline_metrics(
        made_schedule({"submit_seconds": [0.0], "start_seconds": [5.0], "end_seconds": [3605.0]})
    )
    assert metrics.slo_jobs == metrics.slo_missed == 0
    assert math.isnan(metrics.slo_miss_rate)
    assert metrics.goodput_hours == pytest.approx(1.0)
    assert math.isnan(metrics.effective_load)


def test_no_rows_at_all():
    """Sums are zero and means unknown."""
    metrics = deadline_metrics(made_schedule({"submit_seconds": [], "start_seconds": []}))
    assert metrics.goodput_hours == 0.0
    assert math.isnan(metrics.best_effort_latency_seconds)


def test_the_summary_and_its_tables_have_them():
    """A second table where there are deadlines, none where there are not."""
    told = summary(golden())
    assert told.as_json()["slo_missed"] == 2
    assert len(terminal_tables([told])) == 2
    plain = made_schedule({"submit_seconds": [0.0], "start_seconds": [5.0], "end_seconds": [9.0]})
    assert summary(plain).as_json()["slo_miss_rate"] is None
    assert len(terminal_tables([summary(plain)])) == 1


def test_attainment_by_what_was_promised():
    """Four deadlines: two of three promised ones met (one in a second attempt), one in vain not."""
    schedule = made_schedule(
        {
            "job_id": ["a", "a", "b", "c", "d", "e"],
            "attempt": [1, 2, 1, 1, 1, 1],
            "submit_seconds": [0.0] * 6,
            "start_seconds": [0.0, 5.0, 0.0, 0.0, 20.0, 0.0],
            "end_seconds": [5.0, 10.0, 10.0, 11.0, 21.0, 30.0],
            "deadline_seconds": [10.0, 10.0, 10.0, 10.0, 15.0, None],
            "accepted": [True, True, True, True, False, None],
            "ended_because": ["preempted", *["completed"] * 5],
        }
    )
    metrics = deadline_metrics(schedule)
    assert metrics.accepted_slo_jobs == 3
    assert metrics.slo_attainment == pytest.approx(2 / 4)
    assert metrics.accepted_slo_attainment == pytest.approx(2 / 3)
    assert metrics.unreserved_slo_attainment == 0.0
    assert len(terminal_tables([summary(schedule)])) == 3
    nobody = deadline_metrics(golden())
    assert nobody.slo_attainment == pytest.approx(1 / 3)
    assert nobody.accepted_slo_jobs == 0
    assert math.isnan(nobody.accepted_slo_attainment)
    assert math.isnan(nobody.unreserved_slo_attainment)


def test_who_kills_more_jobs_is_best_of_nothing():
    """Its waits are shorter for it: no star; with as many killed under both there is one."""

    def stars(*because):
        told = [
            summary(
                made_schedule(
                    {
                        "submit_seconds": [0.0, 0.0],
                        "start_seconds": [0.0, wait],
                        "end_seconds": [50.0, wait + 50.0],
                        "ended_because": ["completed", end],
                    }
                )
            )
            for wait, end in zip((50.0, 20.0), because, strict=True)
        ]
        tables = [table for table, _ in summary_tables(told)]
        return sum(best for table in tables for row in table.rows() for _, best in row)

    assert stars("limit", "limit") > 0
    assert stars("completed", "limit") == 0
