"""Deadlines in a report: words, bars and the numbers behind them."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.metrics.summary import summary
from foresail.reports.comparison.job_figures import said_goodput, said_misses
from foresail.reports.comparison.page import report_of, write_report
from foresail.reports.comparison.sentences import deadlines_against
from made_schedules import made_schedule


def schedule(policy, late, stopped=False):
    """Four jobs of an hour, half of them with a deadline, one of which never starts."""
    because = "preempted" if stopped else "completed"
    return made_schedule(
        {
            "job_id": ["a", "b", "c", "d"],
            "submit_seconds": [0.0, 0.0, 600.0, 900.0],
            "start_seconds": [0.0, None, 600.0, 1200.0],
            "end_seconds": [3600.0 + late, None, 4200.0, 4800.0],
            "deadline_seconds": [3700.0, 4000.0, None, None],
            "nominal_runtime_seconds": [3600.0] * 4,
            "ended_because": ["completed", None, "completed", because],
        },
        processors=4,
        policy=policy,
    )


def test_words_of_one_schedule():
    """How many miss, how many never start, what is done and what is lost."""
    told = summary(schedule("prio", late=0.0, stopped=True))
    assert said_misses(told) == (
        "1 of 2 jobs with a deadline miss it (50 %), 1 of them without ever starting"
    )
    assert said_goodput(told) == (
        "goodput is 2 cpu hours (1 on time, 1 best effort), and best-effort jobs take 1 h on "
        "average from submission to end; 1 attempt stopped for other jobs, 0 lost with a node"
    )


@pytest.mark.parametrize(
    ("late", "verb"), [(0.0, "falls from 100 % to 50 % of 2 jobs"), (200.0, "stays at 100 %")]
)
def test_words_against_a_baseline(late, verb):
    """Which way the share of missed deadlines goes, and goodput beside it."""
    before = summary(schedule("prio", late=200.0))
    (sentence,) = deadlines_against(before, summary(schedule("3sigma", late)))
    assert verb in sentence
    assert "goodput stays at 3 cpu hours (on time: 0 to" in sentence


def test_the_figure_is_in_the_report_where_there_are_deadlines(tmp_path):
    """A row per policy behind it; no such figure without deadlines."""
    first, second = schedule("prio", late=200.0), schedule("3sigma", late=0.0)
    report = write_report([first, second], tmp_path)
    assert report.figures[0].name == "deadlines"
    table = pl.read_csv(tmp_path / "deadlines.csv")
    assert table["slo_miss_rate"].to_list() == [1.0, 0.5]
    assert table["slo_late_goodput_hours"].to_list() == [1.0, 0.0]
    page = (tmp_path / "report.html").read_text()
    assert page.index("The share of missed deadlines falls") < page.index("Are deadlines met")
    plain = made_schedule({"submit_seconds": [0.0], "start_seconds": [5.0], "end_seconds": [9.0]})
    assert "deadlines" not in [figure.name for figure in report_of([plain]).figures]
