"""The log's own waits beside simulated ones."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.compare import app
from foresail.metrics.summary import summary
from foresail.traces.recorded import recorded_schedule
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def made(waits) -> Workload:
    """A job an hour, of two minutes, with these recorded waits."""
    count = len(waits)
    table = jobs_table(
        {
            "job_id": [str(n) for n in range(count)],
            "submit_seconds": [3600.0 * n for n in range(count)],
            "runtime_seconds": [120.0] * count,
            "tasks": [2] * count,
            "recorded_wait_seconds": waits,
        }
    )
    return Workload(table, WorkloadMeta("made", "made", 4))


def test_metrics_of_the_recorded_schedule_are_the_logs_own():
    """Mean and longest wait, slowdown and use by hand; what is unknown is left out."""
    found = summary(recorded_schedule(made([0.0, 60.0, None, 180.0]), 4.0))
    assert (found.policy, found.jobs, found.processors) == ("recorded", 3, 4.0)
    assert (found.mean_wait_seconds, found.max_wait_seconds) == (80.0, 180.0)
    assert found.average_bounded_slowdown == pytest.approx((1.0 + 1.5 + 2.5) / 3)
    assert found.predicted_jobs == 0


@pytest.mark.parametrize("waits", [[None] * 4, [0.0] * 4, [5.0, None, None, None]])
def test_a_log_without_waits_has_no_such_schedule(waits):
    """None recorded, none that waited, or hardly any known."""
    assert recorded_schedule(made(waits), 4.0) is None


def lines(wait):
    head = "; MaxProcs: 4\n"
    return head + "".join(
        f"{n} {100 * n} {wait} 300 4 -1 -1 4 600 -1 1 1 1 -1 1 -1 -1 -1\n" for n in range(1, 9)
    )


def test_compare_has_the_row_and_says_how_near_the_model_is(tmp_path):
    """Last of the rows, and a sentence; neither where the log has no waits."""
    log = tmp_path / "log.swf"
    log.write_text(lines(1400))
    compare = [str(log), "--with", "easy", "--with", "fcfs"]
    words = " ".join(CliRunner().invoke(app, compare).stdout.split())
    assert "The log's jobs waited 23 min on average; simulated easy comes to 12 min, 50 %" in words
    told = json.loads(CliRunner().invoke(app, [*compare, "--format", "json"]).stdout)["policies"]
    assert [each["policy"] for each in told] == ["easy", "fcfs", "recorded"]
    assert told[-1]["mean_wait_seconds"] == 1400.0
    CliRunner().invoke(app, [*compare, "--output", str(tmp_path / "out")])
    page = " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert "jobs waited 23 min on average; simulated easy comes to 12 min" in page
    log.write_text(lines(-1))
    assert "recorded" not in CliRunner().invoke(app, compare).stdout


def test_a_log_that_waited_less_is_told_otherwise(tmp_path):
    """What the simulation leaves out makes waits longer, so that it does not explain this."""
    log = tmp_path / "log.swf"
    log.write_text(lines(100))
    words = " ".join(CliRunner().invoke(app, [str(log), "--with", "easy"]).stdout.split())
    assert "simulated easy comes to 12 min, 7 times that: either the log's scheduler was" in words
    assert "larger than 4 processors" in words
    assert "outages" not in words
