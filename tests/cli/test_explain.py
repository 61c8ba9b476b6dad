"""``foresail explain``: the plan at a moment, and its place in the report of a simulation."""

from __future__ import annotations

import re
import subprocess
import sys

import polars as pl
import pytest

from calling import call
from foresail.cli.main import app_of
from foresail.model.errors import InputError
from foresail.model.registry import find
from foresail.record.log_text import read_log
from foresail.record.records import Decided, Solved
from foresail.reports import figure as images
from foresail.schedulers._planning import triage
from foresail.traces.folder import write_folder
from foresail.traces.generating import generate
from reading_pages import page_faults

explain = app_of("explain")
simulate = app_of("simulate")

POLICY = "3sigma(relative_gap=9),history,exponential_increment"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of 3Sigma on a few racks, with its log and its report."""
    place = tmp_path_factory.mktemp("explain")
    entry = find("generator", "e2e")
    made = generate("e2e", entry.parameters(hours=0.4, nodes=32, load=4.0), 5)
    write_folder(made, place / "made")
    options = ("--policy", POLICY, "--on-nodes", "--cycle", "10", "--output", place / "report")
    call(simulate, place / "made", *options, "--events", place / "events.jsonl")
    return place


def test_the_log_says_what_the_solver_believed(folder):
    """Every pass of the scheduler has its value, bound and time beside it."""
    records = list(read_log(folder / "events.jsonl"))
    solved = [each for each in records if isinstance(each, Solved)]
    assert len(solved) == sum(isinstance(each, Decided) for each in records) > 0
    assert all(0.0 <= each.value <= each.bound * (1 + 1e-3) for each in solved)
    assert all(each.cycle_seconds > 0.0 for each in solved)


def test_the_busiest_moment_is_told(folder):
    """Sentences, the solver's word and the waiting jobs with their reasons, within 100 columns."""
    told = call(explain, folder)
    assert re.search(r"jobs? runs? on \d+ of 32 cpus", told)
    assert "wait" in told
    assert "Solver: The last plan is worth" in told
    assert "next in line" in told
    assert max(map(len, told.splitlines())) <= 100
    assert call(explain, folder / "events.jsonl") == told


def test_it_is_told_who_is_left_out(folder, tmp_path, monkeypatch):
    """Of a queue too long for its cycles: how many in the log, and why in the words of each job."""
    monkeypatch.setattr(triage.problems, "groups_within", lambda *_: 3)
    log = tmp_path / "events.jsonl"
    options = ("--policy", POLICY, "--on-nodes", "--cycle", "10", "--output", tmp_path / "report")
    call(simulate, folder / "made", *options, "--events", log)
    solved = [each for each in read_log(log) if isinstance(each, Solved)]
    worst = max(solved, key=lambda each: each.left_out)
    assert worst.left_out > 0 == min(each.left_out for each in solved)
    told = " ".join(call(explain, log, "--at", f"{worst.time + 1.0:.0f} s").split())
    assert re.search(r"It left out \d+ waiting jobs?: plan and bound", told)
    assert "left out of this cycle" in told


def test_a_moment_is_written(folder, tmp_path):
    """The page and both tables, of the moment that was asked for."""
    call(explain, folder, "--at", "5 min", "--output", tmp_path / "new")
    page = (tmp_path / "new" / "plan.html").read_text("utf-8").replace("\u00a0", " ")
    assert "5 min after the start" in page
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "plan.html",
        "plan.csv",
        "waiting.csv",
    }
    bars = pl.read_csv(tmp_path / "new" / "plan.csv")
    running = bars.filter(pl.col("state") == "running")
    assert (running["start_seconds"] <= 300.0).all()
    assert (bars.filter(pl.col("state") == "planned")["start_seconds"] >= 300.0).all()
    call(explain, folder, "--at", "0")


@pytest.mark.skipif(images.browser() is None, reason="no browser to draw with")
def test_a_moment_is_drawn(folder, tmp_path):
    """``--png`` leaves a picture beside the page."""
    pytest.importorskip("kaleido")
    call(explain, folder, "--output", tmp_path, "--png")
    assert (tmp_path / "plan.png").read_bytes()[:4] == b"\x89PNG"


def test_the_report_of_a_simulation_has_the_plan(folder):
    """With an event log: the busiest moment, who waited then, and why jobs waited at all."""
    page = (folder / "report" / "report.html").read_text("utf-8")
    assert not page_faults(page, folder / "report")
    for part in ("section-plan", "section-waiting-by-reason", "id='waiting-table'", "id='solver'"):
        assert part in page
    for name in ("plan.csv", "waiting.csv", "waiting-by-reason.csv"):
        assert pl.read_csv(folder / "report" / name).height > 0
    shares = pl.read_csv(folder / "report" / "waiting-by-reason.csv")
    assert shares["share"].sum() == pytest.approx(1.0)


def test_the_moment_of_the_report_can_be_chosen(folder, tmp_path):
    """``--moment`` is a time since the start; a scheduler that plans nothing is drawn as well."""
    options = ("--policy", "prio", "--on-nodes", "--cycle", "10")
    files = ("--events", tmp_path / "events.jsonl", "--output", tmp_path / "report")
    call(simulate, folder / "made", *options, *files, "--moment", "4 min")
    page = (tmp_path / "report" / "report.html").read_text("utf-8").replace("\u00a0", " ")
    assert not page_faults(page, tmp_path / "report")
    assert "What will happen next, 4 min after the start?" in page
    assert "Not known" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("77777",), "does not know this job"),
        (("--at", "20 h"), "after the end of the run"),
        (("--at", "noon"), "not a duration"),
        (("--at", "-5"), "not a duration"),
        (("--png",), "only with --output"),
        (("1", "--at", "5 min"), "no such option"),
    ],
)
def test_questions_that_cannot_be_answered(folder, options, words):
    """Each is refused with what was expected."""
    with pytest.raises(InputError, match=words):
        call(explain, folder, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--moment", "5 min"), "only with --events"), (("--moment", "soon"), "not a duration")],
)
def test_moments_that_simulate_refuses(folder, options, words):
    """Before anything is simulated."""
    with pytest.raises(InputError, match=words):
        call(simulate, folder / "made", "--on-nodes", *options)


def test_logs_that_cannot_be_explained(folder, tmp_path):
    """A folder without one, half a line, a log of nothing, and one that stops within a line."""
    with pytest.raises(InputError, match="no event log"):
        call(explain, tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        call(explain, tmp_path / "absent.jsonl")
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    only = tmp_path / "only.jsonl"
    only.write_text(lines[0])
    with pytest.raises(InputError, match="no scheduling pass"):
        call(explain, only)
    broken = tmp_path / "broken.jsonl"
    broken.write_text("".join(lines[:40]) + "half a line\n" + lines[41])
    with pytest.raises(InputError, match="line 41: not a record"):
        call(explain, broken)
    headless = tmp_path / "headless.jsonl"
    headless.write_text(lines[0] + "".join(lines[len(lines) // 2 :]))
    with pytest.raises(InputError, match="does not fit together"):
        call(explain, headless)
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join(lines[: len(lines) // 2]) + lines[len(lines) // 2][:20])
    assert "after the start" in call(explain, torn)


def test_errors_have_status_two(folder):
    """As one line on standard error."""
    program = "import sys; from foresail.cli.main import main; sys.argv[0] = 'foresail'; main()"
    command = [sys.executable, "-c", program, "explain", str(folder), "--at", "20 h"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    said = [
        line for line in result.stderr.splitlines() if not line.startswith(("working", "reading"))
    ]
    assert len(said) == 1
