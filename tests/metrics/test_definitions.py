"""The figures of docs/reference/metrics.md: drawn by hand, and from a slow reference of their own.

The reference knows rows and seconds alone: it looks at every second of a schedule in whole ones.
"""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.metrics.summary import summary
from made_schedules import made_schedule

HOUR = 3600.0


def test_nodes_that_left_and_came_are_no_idle_capacity():
    """Four cpus until 10, one from then on, two from 50 on: all that there were are held."""
    told = summary(
        made_schedule(
            {
                "submit_seconds": [0.0, 0.0, 0.0, 0.0],
                "start_seconds": [0.0, 0.0, 50.0, 10.0],
                "end_seconds": [10.0, 10.0, 60.0, 60.0],
                "cpus": [3.0, 1.0, 1.0, 1.0],
            },
            capacity=((0.0, 4.0), (10.0, 1.0), (50.0, 2.0)),
        )
    )
    assert told.utilization == told.steady_utilization == 1.0
    assert told.loss_of_capacity == told.avoidable_idle_share == 0.0


def test_one_long_job_after_the_last_submission_is_not_in_the_steady_figure():
    """Two of four cpus are held while jobs come; the drain of one of them lasts a hundredfold."""
    told = summary(
        made_schedule(
            {
                "submit_seconds": [0.0, 0.0, 100.0],
                "start_seconds": [0.0, 0.0, 100.0],
                "end_seconds": [100.0, 100.0, 10000.0],
            }
        )
    )
    assert told.steady_utilization == 0.5
    assert told.utilization == pytest.approx((100 + 100 + 9900) / 40000)


def test_jobs_that_all_come_at_once_have_no_steady_state():
    """The window of submissions is shorter than a job: the makespan stands in for it."""
    told = summary(
        made_schedule(
            {
                "submit_seconds": [0.0, 5.0],
                "start_seconds": [0.0, 5.0],
                "end_seconds": [100.0, 105.0],
            }
        )
    )
    assert told.steady_utilization == told.utilization == pytest.approx(200 / 420)


def test_lost_and_killed_work_stand_apart():
    """One cpu for four hours: one preempted, one lost, one to a limit, one done.

    Used is what the last two held; done is the last one alone.
    """
    told = summary(
        made_schedule(
            {
                "job_id": ["a", "a", "a", "b"],
                "attempt": [1, 2, 3, 1],
                "submit_seconds": [0.0] * 4,
                "start_seconds": [0.0, HOUR, 2 * HOUR, 3 * HOUR],
                "end_seconds": [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR],
                "ended_because": ["preempted", "lost", "limit", "completed"],
            },
            processors=1,
        )
    )
    assert told.utilization == 0.5
    assert (told.lost_hours, told.preemptions, told.lost_attempts) == (2.0, 1, 1)
    assert (told.killed_jobs, told.killed_hours, told.goodput_hours) == (1, 1.0, 1.0)


def test_waiting_for_another_job_is_no_queueing():
    """The second job may start at 1000 and does at 1010; nothing stood idle for it before."""
    told = summary(
        made_schedule(
            {
                "submit_seconds": [0.0, 10.0],
                "eligible_seconds": [None, 1000.0],
                "start_seconds": [0.0, 1010.0],
                "end_seconds": [1000.0, 1110.0],
            },
            processors=1,
        )
    )
    assert (told.mean_wait_seconds, told.mean_eligible_wait_seconds) == (500.0, 5.0)
    assert told.max_bounded_slowdown == pytest.approx(1.1)
    assert told.loss_of_capacity == pytest.approx(10 / 1110)


_attempt = st.tuples(st.integers(0, 30), st.integers(0, 30))
_job = st.tuples(
    st.integers(0, 60),
    st.none() | st.integers(0, 20),
    st.lists(st.tuples(_attempt, st.sampled_from(["preempted", "lost"])), max_size=2),
    st.none() | st.tuples(_attempt, st.sampled_from(["completed", "limit", "failed"])),
    st.integers(1, 4),
)
_schedules = st.lists(_job, min_size=1, max_size=10)
_steps = st.lists(st.tuples(st.integers(1, 90), st.integers(0, 9)), max_size=4)


def rows_of(jobs):
    """Rows of a schedule as plain records, by submission; at least one of them has started."""
    rows = []
    for number, (submit, held_back, lost, last, cpus) in enumerate(
        sorted(jobs, key=lambda j: j[0])
    ):
        eligible = submit if held_back is None else submit + held_back
        now, attempts = eligible, [*lost, *([] if last is None else [last])]
        told = {
            "job_id": str(number),
            "submit_seconds": float(submit),
            "eligible_seconds": None if held_back is None else float(eligible),
            "cpus": float(cpus),
        }
        if not attempts:
            rows.append({**told, "attempt": None, "ended_because": None})
        for attempt, ((wait, ran), because) in enumerate(attempts, start=1):
            start, now = now + wait, now + wait + ran
            ends = {"start_seconds": float(start), "end_seconds": float(now)}
            rows.append({**told, **ends, "attempt": attempt, "ended_because": because})
    return rows


def slow_reference(rows, there):
    """Every figure of the page, from rows and the cpus that are there at a second."""
    ran = [row for row in rows if row.get("start_seconds") is not None]
    by_job = {}
    for row in ran:
        by_job.setdefault(row["job_id"], []).append(row)
    queued = {}  # (begin, start, cpus) of each attempt
    for job_id, attempts in by_job.items():
        since = attempts[0]["eligible_seconds"]
        since = attempts[0]["submit_seconds"] if since is None else since
        for row in attempts:
            queued[job_id, row["attempt"]] = (since, row["start_seconds"], row["cpus"])
            since = row["end_seconds"]
    begin = int(min(row["submit_seconds"] for row in ran))
    end = int(max(row["end_seconds"] for row in ran))
    last = int(max(row["submit_seconds"] for row in ran))

    def held(now, which):
        return sum(
            row["cpus"]
            for row in ran
            if which(row) and row["start_seconds"] <= now < row["end_seconds"]
        )

    def share(first, until, amount):
        offered = sum(there(now) for now in range(first, until))
        return sum(map(amount, range(first, until))) / offered if offered else None

    def useful(now):
        return held(now, lambda row: row["ended_because"] not in ("preempted", "lost"))

    def idle(now):
        return max(there(now) - held(now, lambda row: True), 0)

    def waiting(now):
        return [cpus for since, start, cpus in queued.values() if since <= now < start]

    def idle_with_queue(now):
        return idle(now) if waiting(now) else 0

    def idle_with_fitting(now):
        return idle(now) if min(waiting(now), default=99) <= idle(now) else 0

    median = statistics.median(row["end_seconds"] - row["start_seconds"] for row in ran)
    steady = (begin, last) if last > begin and last - begin >= median else (begin, end)
    waits, eligible_waits, slowdowns = [], [], []
    for attempts in by_job.values():
        final = attempts[-1]
        since = final["eligible_seconds"]
        since = final["submit_seconds"] if since is None else since
        runtime = final["end_seconds"] - final["start_seconds"]
        waits.append(final["start_seconds"] - final["submit_seconds"])
        eligible_waits.append(final["start_seconds"] - since)
        slowdowns.append(max(1, (eligible_waits[-1] + runtime) / max(runtime, 10)))

    def hours(*because):
        return sum(
            row["cpus"] * (row["end_seconds"] - row["start_seconds"]) / HOUR
            for row in ran
            if row["ended_because"] in because
        )

    return {
        "makespan_seconds": end - begin,
        "utilization": share(begin, end, useful),
        "steady_utilization": share(*steady, useful),
        "loss_of_capacity": share(begin, end, idle_with_queue),
        "avoidable_idle_share": share(begin, end, idle_with_fitting),
        "mean_wait_seconds": statistics.mean(waits),
        "median_wait_seconds": statistics.median(waits),
        "mean_eligible_wait_seconds": statistics.mean(eligible_waits),
        "max_eligible_wait_seconds": max(eligible_waits),
        "average_bounded_slowdown": statistics.mean(slowdowns),
        "goodput_hours": hours("completed"),
        "lost_hours": hours("preempted", "lost"),
        "killed_hours": hours("limit"),
        "killed_jobs": sum(row["ended_because"] == "limit" for row in ran),
        "never_started": sum(row["attempt"] is None for row in rows),
        "preemptions": sum(row["ended_because"] == "preempted" for row in ran),
    }


@given(_schedules, _steps)
def test_every_figure_is_that_of_the_slow_reference(jobs, steps):
    """Random schedules of attempts, chains and limits, on a machine whose nodes come and go."""
    rows = rows_of(jobs)
    capacity = [(0, 8), *sorted(dict(steps).items())]
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    columns |= {name: [row.get(name) for row in rows] for name in ("start_seconds", "end_seconds")}
    told = summary(
        made_schedule(
            columns,
            processors=max(cpus for _, cpus in capacity),
            capacity=tuple((float(since), float(cpus)) for since, cpus in capacity)
            if len(capacity) > 1
            else (),
        )
    ).as_json()
    if not any(row.get("start_seconds") is not None for row in rows):
        assert told["jobs"] == 0
        return
    expected = slow_reference(
        rows, lambda now: next(cpus for since, cpus in capacity[::-1] if since <= now)
    )
    assert {name: told[name] for name in expected} == pytest.approx(expected, nan_ok=True)
