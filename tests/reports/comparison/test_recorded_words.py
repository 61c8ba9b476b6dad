"""The log's own waits beside simulated ones."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.metrics.comparison import recorded_waits
from foresail.traces.folder import convert
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

app = app_of("compare")


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


def test_what_was_recorded_is_the_logs_own():
    """Its waits; what is unknown is left out."""
    found = recorded_waits(made([0.0, 60.0, None, 180.0]))
    assert found.select("job_id", "wait_seconds").rows() == [("0", 0.0), ("1", 60.0), ("3", 180.0)]


@pytest.mark.parametrize("waits", [[None] * 4, [0.0] * 4, [5.0, None, None, None]])
def test_a_log_without_waits_has_no_such_schedule(waits):
    """None recorded, none that waited, or hardly any known."""
    assert recorded_waits(made(waits)) is None


def lines(wait, ran=300):
    """Twenty jobs of all four processors, one every 100 s, with these waits."""
    head = "; MaxProcs: 4\n"
    return head + "".join(
        f"{n} {100 * n} {wait(n)} {ran} 4 -1 -1 4 600 -1 1 1 1 -1 1 -1 -1 -1\n"
        for n in range(1, 21)
    )


def told_of(log, *options):
    """The words (each run of spaces one space) and the JSON of a comparison of a log."""
    asked = [str(log), "--with", "easy", "--with", "fcfs", *options]
    words = CliRunner().invoke(app, asked)
    assert words.exit_code == 0, words.stderr
    told = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)
    return " ".join(words.stdout.split()), told


def test_a_model_that_comes_near_passes(tmp_path):
    """Its waits are those of EASY, a minute longer each: go by the differences."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 200 * (n - 1) + 60))
    words, told = told_of(log, "--output", str(tmp_path / "out"))
    assert "The model of the machine passes: all 20 jobs waited 33 min on average" in words
    assert "Do not use" not in words
    assert told["recorded"]["is_usable"] is True
    assert told["recorded"]["rank_correlation"] == pytest.approx(1.0)
    page = " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert "The model of the machine passes: all 20 jobs" in page


@pytest.mark.parametrize(
    "wait",
    [
        lambda n: 5 * (200 * (n - 1) + 60),  # far longer
        lambda n: (200 * (n - 1) + 60) / 5,  # far shorter
        lambda n: 200 * (n * 7 % 20),  # as long, in another order
        lambda n: 20 if n < 12 else 200 * (n + 12),  # the mean alone is near
    ],
)
def test_a_model_below_the_bar_is_not_to_be_used(tmp_path, wait):
    """By mean, median or order of the waits; nothing else is refused."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: int(wait(n))))
    words, told = told_of(log)
    assert words.startswith("Do not use this model of the machine: all 20 jobs")
    assert told["recorded"]["is_usable"] is False
    assert [each["policy"] for each in told["policies"]] == ["easy", "fcfs"]


def test_a_machine_that_nobody_waited_for_is_not_judged(tmp_path):
    """Some seconds here and none there have no order that says anything."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: n % 5, ran=90))
    words, _ = told_of(log)
    assert words.startswith("Too few jobs that waited to judge the model of the machine by")
    log.write_text(lines(lambda n: 70 * (n % 2), ran=90))
    assert told_of(log)[0].startswith("Do not use this model of the machine")


def test_only_jobs_with_a_recorded_wait_are_compared(tmp_path):
    """Those that the log knows nothing of waited longest here, and are on neither side."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 200 * (n - 1) if n <= 15 else -1))
    words, told = told_of(log)
    recorded = told["recorded"]
    assert (recorded["jobs"], recorded["of_jobs"]) == (15, 20)
    assert recorded["recorded"] == recorded["simulated"]
    assert recorded["recorded"]["max_wait_seconds"] == 2800.0
    assert told["policies"][0]["max_wait_seconds"] == 3800.0
    assert "15 of 20 jobs, those with a recorded wait" in words


def test_what_was_recorded_is_no_policy_and_earns_no_star(tmp_path):
    """It waited least of all, and no column has a star, as both policies wait alike."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 1))
    words, _ = told_of(log)
    assert "recorded" in words
    assert "* best" in words
    assert words.count("*") == 1


def test_a_machine_of_another_size_was_not_recorded(tmp_path):
    """Waits on 4 processors are not compared with those on 8; nor where a folder was made so."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 100))
    convert(log, tmp_path / "folder", processors=8)
    for words, told in (told_of(log, "--processors", "8"), told_of(tmp_path / "folder")):
        assert "What the log recorded is of 4 processors, not of 8" in words
        assert set(told["recorded"]) == {"words"}
    assert "jobs" in told_of(log, "--processors", "4")[1]["recorded"]


def test_hardly_any_waits_are_not_compared(tmp_path):
    """Of fewer than half of the jobs: that is said."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 100 if n == 1 else -1))
    words, told = told_of(log)
    assert "1 job of 20 are known to have waited: the log's waits are known of too few" in words
    assert set(told["recorded"]) == {"words"}


def test_nothing_is_said_of_a_log_without_waits(tmp_path):
    """It has recorded none."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: -1))
    words, told = told_of(log)
    assert "recorded" not in words
    assert "recorded" not in told


def test_killed_jobs_are_compared_with_nothing_that_ended(tmp_path):
    """Those that ran on in the log are left out; of how many each policy killed, a sentence."""
    log = tmp_path / "log.swf"
    log.write_text(lines(lambda n: 200 * (n - 1), ran=700))
    words, told = told_of(log, "--enforce-limits")
    assert "unfinished: 20 of 20 jobs under every policy" in words
    assert "no better service" in words
    assert told["recorded"]["words"].startswith("No job whose wait was recorded came to its end")
    assert told["policies"][0]["killed_jobs"] == 20
