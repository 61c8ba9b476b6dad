"""The schedule's rows: one function for simulated and live attempts, drawn by hand."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.model.decision import Placement
from foresail.model.event import EndedBecause, Outcome
from foresail.record.schedule import attempt_row, placement_text, schedule_table
from foresail.traces import schema


@pytest.mark.parametrize(
    ("placement", "text"),
    [
        (Placement.whole("all", 4), "all"),
        (Placement((("a", 1), ("b", 3))), "a:1,b:3"),
        (Placement((("a", 3),), (("n1", 2), ("n2", 1))), "n1:2,n2:1"),
        (Placement((("a", 2),), (("n1", 2),)), "n1"),
    ],
)
def test_a_place_is_said_as_it_is_known(placement, text):
    """Nodes where they are named; how many tasks only where there are several places."""
    assert placement_text(placement) == text


def row(job_id, attempt, because=EndedBecause.COMPLETED):
    outcome = Outcome(job_id, 5.0 * attempt, 5.0 * attempt + 3.0, because, attempt=attempt)
    return attempt_row(outcome, (4.0, 2.0, 8.0), 1, True, Placement.whole("all", 2))


def test_a_table_has_jobs_as_submitted_and_their_attempts():
    """Attempts in any order, a job without one, columns of which nothing is known."""
    jobs = pl.DataFrame({"job_id": ["z", "none", "a"], "submit_seconds": [0, 1, 2]})
    rows = [row("a", 1), row("z", 2), row("z", 1, EndedBecause.LOST)]
    table = schedule_table(rows, jobs)
    assert table.schema == schema.SCHEDULE
    columns = ("job_id", "attempt", "start_seconds", "ended_because", "submit_seconds", "cpus")
    assert table.select(columns).rows() == [
        ("z", 1, 5.0, "lost", 0.0, None),
        ("z", 2, 10.0, "completed", 0.0, None),
        ("none", None, None, None, 1.0, None),
        ("a", 1, 5.0, "completed", 2.0, None),
    ]
    told = ("predicted_seconds", "predicted_low_seconds", "predicted_high_seconds", "corrections")
    assert table.select(*told, "backfilled", "placement").row(0) == (4.0, 2.0, 8.0, 1, True, "all")


def test_a_run_in_which_nothing_ended():
    """The columns are there all the same."""
    assert schedule_table([], pl.DataFrame(schema={"job_id": pl.String})).schema == schema.SCHEDULE
