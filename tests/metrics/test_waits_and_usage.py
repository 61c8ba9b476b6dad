"""Waits, slowdowns, use and fairness against hand-made drawings and slow obvious references."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.metrics.jobs import attempts, per_job
from foresail.metrics.kernels.occupancy import binned_area, binned_integral, pack_rows
from foresail.metrics.statistics import by_size, by_user, statistics, width_bounds, width_labels
from foresail.metrics.summary import fairness, overtaken, summary
from foresail.metrics.usage import (
    Span,
    gantt,
    lay_out,
    makespan_seconds,
    over_time,
    span,
    utilization,
)
from made_schedules import (
    ORACLE_POLICIES,
    ORACLE_PROCESSORS,
    list_schedule,
    made_schedule,
    oracle_schedules,
    random_workload,
)

PUBLISHED = {
    "KTH-SP2": (92.5765, 71.7224, 49.8477, 63.5007),
    "CTC-SP2": (49.5713, 37.1654, 17.5717, 85.7672),
    "SDSC-SP2": (87.8703, 70.4779, 56.8362, 79.3963),
}

EASY = {
    "submit_seconds": [0.0, 0.0, 1.0, 2.0, 3.0, 4.0],
    "start_seconds": [0.0, 0.0, 100.0, 50.0, 160.0, 160.0],
    "end_seconds": [100.0, 50.0, 160.0, 100.0, 190.0, 180.0],
    "cpus": [2.0, 2.0, 4.0, 2.0, 2.0, 2.0],
}
"""Section 11 of the spec, EASY with requested times, four processors."""


@pytest.mark.parametrize("log", ORACLE_PROCESSORS)
def test_published_slowdowns(log):
    """AVEbsld of the published study's own waits is the published one, for every policy."""
    found = [summary(schedule).average_bounded_slowdown for schedule in oracle_schedules(log)]
    assert found == pytest.approx(PUBLISHED[log], abs=5e-5)
    assert len(found) == len(ORACLE_POLICIES)


def test_golden_schedule():
    """The spec's six jobs: waits, AVEbsld, use, queue, overtaking, by hand."""
    schedule = made_schedule(EASY)
    told = summary(schedule)
    assert per_job(schedule)["wait_seconds"].to_list() == [0, 0, 99, 48, 157, 156]
    assert told.average_bounded_slowdown == pytest.approx(3.607222, abs=1e-6)
    assert told.makespan_seconds == 190
    assert told.utilization == pytest.approx((200 + 100 + 240 + 100 + 60 + 40) / (4 * 190))
    assert told.mean_wait_seconds == pytest.approx(460 / 6)
    assert told.mean_flow_seconds == pytest.approx((460 + 310) / 6)
    assert told.waited_share == pytest.approx(4 / 6)
    assert (told.overtaken_jobs, told.passed_over_jobs) == (1, 0)
    assert told.loss_of_capacity == 0


def test_passed_over_and_idle():
    """Job 2 (wide) is overtaken but never fitted; job 3 fitted when job 4 started, and waited on.

    Three processors; job 1 holds one of them until 100:
    2 (3 wide) must wait for 100; 3 (2 wide) could start at 10 but starts at 200; 4 starts at 20.
    """
    schedule = made_schedule(
        {
            "submit_seconds": [0.0, 5.0, 10.0, 20.0],
            "start_seconds": [0.0, 100.0, 200.0, 20.0],
            "end_seconds": [100.0, 200.0, 210.0, 60.0],
            "cpus": [1.0, 3.0, 2.0, 1.0],
        },
        processors=3,
    )
    told = fairness(schedule)
    assert (told.overtaken_jobs, told.passed_over_jobs) == (2, 1)
    assert told.loss_of_capacity == pytest.approx((15 * 2 + 40 * 1 + 40 * 2) / (3 * 210))
    assert told.avoidable_idle_share == pytest.approx((10 * 2 + 40 * 2) / (3 * 210))


def test_bound_and_floor_of_slowdown():
    """Runtimes under 10 s count as 10 s, and no slowdown is below 1."""
    schedule = made_schedule(
        {"submit_seconds": [0.0, 0.0], "start_seconds": [0.0, 18.0], "end_seconds": [1.0, 20.0]}
    )
    assert per_job(schedule)["bounded_slowdown"].to_list() == [1.0, 2.0]


def test_lost_attempts_count_as_waiting():
    """A job's last attempt is its own; the earlier one occupied the machine and then it queued."""
    schedule = made_schedule(
        {
            "job_id": ["a", "a"],
            "attempt": [1, 2],
            "submit_seconds": [0.0, 0.0],
            "start_seconds": [10.0, 50.0],
            "end_seconds": [30.0, 80.0],
        }
    )
    jobs = per_job(schedule)
    assert jobs.height == 1
    assert jobs["wait_seconds"][0] == 50
    assert attempts(schedule)["queued_seconds"].to_list() == [0, 30]
    assert utilization(schedule) == pytest.approx(50 / (4 * 80))


def test_five_numbers():
    """Mean, median, p90, p99, max; NaN throughout when there is nothing."""
    told = statistics(np.arange(101.0))
    assert (told.mean, told.median, told.p90, told.p99, told.max) == (50, 50, 90, 99, 100)
    assert math.isnan(statistics([]).median)


def test_nothing_to_summarise():
    """An empty schedule has a summary whose unknowns are null in JSON."""
    told = summary(
        made_schedule({"submit_seconds": [], "start_seconds": [], "end_seconds": []})
    ).as_json()
    assert told["jobs"] == 0
    assert told["mean_wait_seconds"] is None
    assert told["utilization"] is None


rows = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 40), st.integers(0, 30), st.integers(1, 4)),
    min_size=1,
    max_size=25,
)


def _schedule_of(jobs):
    jobs = sorted(jobs, key=lambda job: job[0])
    return made_schedule(
        {
            "submit_seconds": [float(r) for r, _, _, _ in jobs],
            "start_seconds": [float(r + w) for r, w, _, _ in jobs],
            "end_seconds": [float(r + w + p) for r, w, p, _ in jobs],
            "cpus": [float(q) for _, _, _, q in jobs],
        },
        processors=8,
    )


@given(rows)
def test_overtaking_reference(jobs):
    """Overtaken: a double loop over jobs agrees."""
    start = per_job(_schedule_of(jobs))["start_seconds"].to_numpy()
    expected = [
        any(start[k] < start[j] for k in range(j + 1, len(start))) for j in range(len(start))
    ]
    assert overtaken(start).tolist() == expected


def test_a_job_that_is_requeued_overtakes_nobody_who_came_later():
    """Job 1, submitted first, is lost at 10 and begins anew at 20; job 2 starts at 30, its turn."""
    schedule = made_schedule(
        {
            "job_id": ["1", "1", "2"],
            "attempt": [1, 2, 1],
            "submit_seconds": [0.0, 0.0, 5.0],
            "start_seconds": [0.0, 20.0, 30.0],
            "end_seconds": [10.0, 30.0, 40.0],
            "cpus": [2.0, 2.0, 2.0],
            "outcome": ["lost", "completed", "completed"],
        },
        processors=2,
    )
    found = fairness(schedule)
    assert (found.overtaken_jobs, found.overtaken_share) == (0, 0.0)
    assert (found.passed_over_jobs, found.passed_over_share) == (0, 0.0)


@given(rows)
def test_sweep_reference(jobs):
    """Passed over and idle time: following every job from change to change agrees."""
    _assert_swept(_schedule_of(jobs), 8.0)


def test_sweep_of_more_rows_than_wait_at_once():
    """Rows that wait move up among the leaves of the trees, many times, and are found there."""
    jobs = np.random.default_rng(1).integers((0, 0, 0, 1), (5000, 41, 4, 5), (3000, 4))
    _assert_swept(_schedule_of(jobs.tolist()), 8.0)


def _assert_swept(schedule, processors):
    table = attempts(schedule)
    submit, start, end, cpus = (
        table[name].to_numpy()
        for name in ("submit_seconds", "start_seconds", "end_seconds", "cpus")
    )
    passed = np.zeros(table.height, dtype=bool)
    waiting_idle = fitting_idle = 0.0
    times = np.unique(np.concatenate((submit, start, end)))
    for now, then in pairwise([*times, times[-1] + 1.0]):
        free = processors - cpus[(start < now) & (now < end)].sum()
        waits = (submit <= now) & (now < start)
        for k in np.flatnonzero(start == now):
            passed[:k] |= waits[:k] & (cpus[:k] <= free)
            free -= cpus[k] if end[k] > start[k] else 0.0
        waiting_idle += max(free, 0.0) * waits.any() * (then - now)
        fitting_idle += free * (cpus[waits].min(initial=np.inf) <= free) * (then - now)
    told = fairness(schedule)
    offered = processors * makespan_seconds(schedule)
    assert told.passed_over_jobs == passed.sum()
    if offered:
        assert told.loss_of_capacity * offered == pytest.approx(waiting_idle)
        assert told.avoidable_idle_share * offered == pytest.approx(fitting_idle)


@given(rows, st.integers(1, 12), st.floats(0.5, 20.0), st.floats(-10.0, 60.0))
def test_binned_integral_reference(jobs, bins, width, first):
    """Integral in each bin: the overlap of each interval with each bin, added up."""
    begin = np.array([float(r) for r, _, _, _ in jobs])
    end = begin + [float(p) for _, _, p, _ in jobs]
    weight = np.array([float(q) for *_, q in jobs])
    edges = first + width * np.arange(bins + 1)
    expected = [
        sum(
            q * max(0.0, min(e, right) - max(b, left))
            for b, e, q in zip(begin, end, weight, strict=True)
        )
        for left, right in pairwise(edges)
    ]
    found = binned_integral(begin, end, weight, first, width, bins)
    assert found == pytest.approx(expected, abs=1e-7)


def test_over_time_adds_up():
    """Averages over the bins give back utilisation and mean wait (Little's law)."""
    schedule = list_schedule(random_workload(800, seed=2), 48)
    line = over_time(schedule, span([schedule]), bins=37)
    told = summary(schedule)
    assert line["utilization"].mean() == pytest.approx(told.utilization)
    assert line["queued_jobs"].mean() * told.makespan_seconds == pytest.approx(
        told.mean_wait_seconds * told.jobs
    )


def test_packing_is_a_schedule():
    """Every job gets its width in rows, and no row holds two jobs at once."""
    schedule = list_schedule(random_workload(400, seed=7), 40)
    table = attempts(schedule)
    start, end = table["start_seconds"].to_numpy(), table["end_seconds"].to_numpy()
    width = table["cpus"].to_numpy().astype(np.int64)
    job, low, high = pack_rows(start, end, width, 40)
    assert np.array_equal(np.bincount(job, weights=high - low, minlength=400), width)
    for row in range(40):
        held = np.sort(job[(low <= row) & (row < high)])
        order = held[np.argsort(start[held], kind="stable")]
        assert np.all(end[order[:-1]] <= start[order[1:]])


def test_packing_keeps_jobs_together():
    """The lowest hole that holds the whole job is taken; freed rows are joined again."""
    start = np.array([0.0, 0.0, 0.0, 5.0, 6.0])
    end = np.array([5.0, 9.0, 5.0, 9.0, 7.0])
    width = np.array([2, 2, 4, 3, 2])
    job, low, high = pack_rows(start, end, width, 8)
    assert list(zip(job.tolist(), low.tolist(), high.tolist(), strict=True)) == [
        (0, 0, 2),
        (1, 2, 4),
        (2, 4, 8),
        (3, 4, 7),
        (4, 0, 2),
    ]


def test_schedule_wider_than_the_machine():
    """A job that finds too few rows is cut short instead of failing."""
    schedule = made_schedule(
        {"submit_seconds": [0.0], "start_seconds": [0.0], "end_seconds": [9.0], "cpus": [7.0]}
    )
    assert gantt(lay_out(schedule), Span(0.0, 9.0), 3).tolist() == [[1.0] * 3] * 4


def test_binned_area_reference():
    """Covered share of each cell: overlap in time times overlap in rows."""
    generator = np.random.default_rng(4)
    begin = generator.uniform(0, 90, 50)
    end = begin + generator.uniform(0, 30, 50)
    low = generator.integers(0, 20, 50)
    high = low + generator.integers(1, 8, 50)
    expected = np.zeros((6, 9))
    for row in range(6):
        for column in range(9):
            for b, e, bottom, top in zip(begin, end, low, high, strict=True):
                time = max(0, min(e, 10 * column + 12) - max(b, 10 * column + 2)) / 10
                rows_covered = max(0, min(top, 4 * row + 4) - max(bottom, 4 * row)) / 4
                expected[row, column] += time * rows_covered
    assert binned_area(begin, end, low, high, 2.0, 10.0, 9, 4.0, 6) == pytest.approx(expected)


def test_gantt_shade_is_utilisation():
    """The mean shade of the binned Gantt is the utilisation."""
    schedule = list_schedule(random_workload(500, seed=9), 37)
    cells = gantt(lay_out(schedule), span([schedule]), 50, 10)
    assert cells.shape == (10, 50)
    assert cells.mean() == pytest.approx(utilization(schedule))


def test_width_classes():
    """Classes grow fourfold from one processor and reach the widest job."""
    assert width_bounds(70) == (1, 4, 16, 64, 256)
    assert width_labels((1, 4, 16)) == ("1", "2–4", "5–16")


def test_breakdowns_hold_every_job():
    """By user and by size: jobs add up, and one class agrees with a filter by hand."""
    jobs = per_job(list_schedule(random_workload(900, seed=1), 48))
    assert by_user(jobs)["jobs"].sum() == by_size(jobs)["jobs"].sum() == 900
    cell = by_size(jobs).row(
        by_predicate=(pl.col("width") == "5–16") & (pl.col("runtime") == "10–60 min"), named=True
    )
    mine = jobs.filter(
        (pl.col("cpus") > 4)
        & (pl.col("cpus") <= 16)
        & (pl.col("runtime_seconds") >= 600)
        & (pl.col("runtime_seconds") < 3600)
    )
    assert cell["jobs"] == mine.height
    assert cell["median_wait_seconds"] == mine["wait_seconds"].median()
    for name, share in (("p90_wait_seconds", 90), ("p99_wait_seconds", 99)):
        assert cell[name] == pytest.approx(np.percentile(mine["wait_seconds"].to_numpy(), share))
    assert cell["p90_wait_seconds"] < cell["p99_wait_seconds"]
