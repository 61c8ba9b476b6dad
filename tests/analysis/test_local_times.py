"""Hours and whole days by the wall clock of the log's place."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.analysis.columns import local_times, per_hour, quartiles_by_hour
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def submitted(seconds, origin=None, zone=None):
    """A workload of jobs submitted at these seconds."""
    jobs = jobs_table(
        {
            "job_id": [str(number) for number in range(len(seconds))],
            "submit_seconds": [float(second) for second in seconds],
            "runtime_seconds": [1.0] * len(seconds),
            "tasks": [1] * len(seconds),
        }
    )
    meta = WorkloadMeta("made", "hand", None, origin_unix_seconds=origin, time_zone=zone)
    return Workload(jobs, meta)


@pytest.mark.parametrize("zone", ["Europe/Stockholm", "US/Pacific", "Asia/Kolkata", "UTC"])
def test_local_hours_are_those_of_the_zone(zone):
    """Hours agree with Python's own time zones, summer time included."""
    origin = 843480031.0
    seconds = np.arange(0, 340 * 86400, 5000.5)
    times = local_times(submitted(seconds, origin, zone))
    expected = [datetime.fromtimestamp(origin + s, ZoneInfo(zone)).hour for s in seconds]
    assert times.hour_of_day.tolist() == expected
    assert times.is_local
    assert zone in times.said


@pytest.mark.parametrize("zone", [None, "Nowhere/At_All"], ids=["none", "no such"])
def test_unknown_zone_is_said(zone):
    """Without a usable zone hours are UTC, said to be so, and not local."""
    times = local_times(submitted([0, 3600], 1.3e9 + 7200, zone))
    assert times.hour_of_day.tolist() == [9, 10]
    assert not times.is_local
    assert "UTC" in times.said


def test_unknown_origin_is_said():
    """Without an origin hours count from second zero of the log."""
    times = local_times(submitted([0, 3599, 3600, 90000]))
    assert times.hours.tolist() == [0, 0, 1, 25]
    assert not times.is_local
    assert "second zero" in times.said


@pytest.mark.parametrize(
    ("hours", "days"),
    [
        ([0, 23], range(1)),
        ([0, 22], range(0)),
        ([1, 47], range(1, 2)),
        ([0, 48], range(2)),
        ([5, 100], range(1, 4)),
    ],
    ids=["whole", "ends early", "begins late", "ends in the third", "both"],
)
def test_incomplete_days_are_dropped(hours, days):
    """A day counts if its first and its last hour lie within the log."""
    times = local_times(submitted([3600.0 * hour for hour in hours]))
    assert list(times.whole_days) == list(days)


@given(st.lists(st.integers(0, 10 * 24 - 1), min_size=1, max_size=200))
def test_counts_per_hour(hours):
    """Each cell counts the jobs of its day and hour; whole days only."""
    hours = sorted(hours)
    times = local_times(submitted([3600.0 * hour for hour in hours]))
    counts = per_hour(times, np.ones(len(hours)))
    days = times.whole_days
    assert counts.shape == (len(days), 24)
    for row, day in enumerate(days):
        for hour in range(24):
            assert counts[row, hour] == hours.count(24 * day + hour)


def test_quartiles_golden():
    """Golden value G20: linear interpolation over the days."""
    counts = np.zeros((4, 24))
    counts[:, 3] = [3, 5, 4, 8]
    row = quartiles_by_hour(counts).row(3, named=True)
    assert (row["low"], row["median"], row["high"]) == (3.75, 4.5, 5.75)
    assert (row["mean"], row["maximum"]) == (5.0, 8.0)
