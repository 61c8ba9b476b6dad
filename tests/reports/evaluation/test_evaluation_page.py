"""The report of an evaluation as people get it: words, figures, files."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from foresail.evaluation.replaying import evaluate
from foresail.model.errors import InputError
from foresail.reports.document import RankedTable
from foresail.reports.evaluation.page import sentences, write_report
from foresail.reports.evaluation.view import COLUMNS, amount, evaluation_view, figures, microseconds
from foresail.reports.figure import Figure, MissingFigure
from made_evaluations import as_part, made_workload, random_jobs
from reading_pages import drawn_values, page_faults
from toys import Constant

NAMES = ["requested", "recent", "quantile_regression", "similar"]


@pytest.fixture(scope="module")
def workload():
    """Ten weeks of jobs that used known cpu time."""
    return random_jobs(800, seed=4, weeks=10.0)


@pytest.fixture(scope="module")
def evaluations(workload):
    """Four predictors, two of which state ranges; one is given experts."""
    told = [evaluate(workload, name) for name in NAMES]
    experts = np.where(np.arange(800) % 3 == 0, "user, <mean>", "width, rolling")
    jobs = told[-1].jobs.with_columns(expert=pl.Series(experts))
    changed = {**vars(told[-1]), "jobs": jobs, "experts": ("user, <mean>", "width, rolling")}
    return [*told[:-1], type(told[-1])(**changed)]


@pytest.fixture(scope="module")
def written(workload, evaluations, tmp_path_factory):
    """The report in a folder."""
    folder = tmp_path_factory.mktemp("report")
    command = "foresail predict evaluate LOG --predictor '<x>'"
    return folder, write_report(workload, evaluations, folder, command=command)


def drawn(view):
    return {part.name: part for part in figures(view) if isinstance(part, Figure)}


def test_files(written):
    """A page, and a CSV with rows for every figure and table; nothing unfinished stays behind."""
    folder, view = written
    names = {path.name for path in folder.iterdir()}
    tables = {"scores", "worst-users", "coverage-by-user", "derived", *drawn(view)}
    assert names == {"report.html", *(f"{name}.csv" for name in tables)}
    assert set(drawn(view)) == {
        "reliability",
        "coverage",
        "error-histogram",
        "learning-curve",
    }
    for name in tables:
        assert pl.read_csv(folder / f"{name}.csv").height > 0


def test_nothing_is_loaded_from_anywhere(written):
    """No attribute, style or import of the page names another place; links lead to its files."""
    page = (written[0] / "report.html").read_text("utf-8")
    assert not page_faults(page, written[0])
    ours = re.sub(r"<script type='text/plain' id='plotly'>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"https?:|@import|url\(|\bsrc=", ours)
    links = set(re.findall(r"href='([^']*)'", ours))
    assert all(link.startswith("#") or (written[0] / link).exists() for link in links)
    assert "&#x27;&lt;x&gt;&#x27;" in ours


def test_words_come_first(written):
    """Before any table the page says who is closest, how often estimates hold, and ranges."""
    page = (written[0] / "report.html").read_text("utf-8").replace("\u00a0", " ")
    assert not page_faults(page, written[0])
    before = page.split("<main")[0]
    best = min(written[1].scored, key=lambda told: told.relative_crps.value)
    assert f"Closest to what happened is {best.predictor}" in before
    assert before.count("within a factor of two") == len(NAMES)
    assert before.count("its 80 % ranges hold") == 2


def test_figures_are_small_and_named(written):
    """At most 10,000 marks; each with findings that end, a title, no stray colour."""
    for figure in drawn(written[1]).values():
        marks = [
            trace["x"] if trace.get("type") != "bar" else trace["y"] for trace in figure.traces
        ]
        assert (
            sum(len(drawn_values(each)) if isinstance(each, dict) else len(each) for each in marks)
            <= 10_000
        )
        assert figure.title
        assert all(finding.endswith(".") for finding in figure.findings)
        text = json.dumps([figure.layout, list(figure.traces)], allow_nan=False)
        assert not re.search(r'"#[0-9a-f]{6}"', text)


def test_reliability_draws_stated_ranges_only(written):
    """Single numbers state no probability: they are named, not drawn; counts add up."""
    figure = drawn(written[1])["reliability"]
    assert figure.legend == ["quantile_regression", "similar"]
    assert "requested, recent" in figure.findings[-1]
    shares = [trace["y"] for trace in figure.traces if trace["yaxis"] == "y2"]
    assert [drawn_values(each)[:-1].sum() for each in shares] == pytest.approx([1, 1], rel=1e-6)


def test_widths_of_ranges_are_drawn_where_ranges_are_stated(written):
    """All four learn over time; below, only the two that state ranges have a width."""
    figure = drawn(written[1])["learning-curve"]
    places = [trace["yaxis"] for trace in figure.traces]
    assert [places.count(place) for place in ("y", "y2", "y3")] == [4, 4, 2]


def test_coverage_is_told_by_week_and_by_user(written):
    """A band per stated range with a line per stating predictor; users with most jobs, by range."""
    folder, view = written
    figure = drawn(view)["coverage"]
    assert len(figure.traces) == 8
    assert {trace["yaxis"] for trace in figure.traces} == {"y", "y2", "y3", "y4"}
    weeks = pl.read_csv(folder / "coverage.csv").filter(pl.col("predictor") == "similar")
    inside = (weeks["covered_95"] * weeks["jobs"]).sum() / 800
    assert inside == pytest.approx(view.scored[-1].coverage[95].value)
    users = pl.read_csv(folder / "coverage-by-user.csv").filter(pl.col("predictor") == "similar")
    assert users.height == 10
    assert users["jobs"].is_sorted(descending=True)
    page = (folder / "report.html").read_text("utf-8")
    assert not page_faults(page, folder)
    assert "Do the ranges hold for every user?" in page
    assert "in 95 %" in page.replace("\u00a0", " ")


def test_error_histogram_has_the_studys_buckets(written):
    """All jobs are in it, the last step is the tail, and both sides are named."""
    figure = drawn(written[1])["error-histogram"]
    for trace in figure.traces:
        x, y = drawn_values(trace["x"]), drawn_values(trace["y"])
        assert (x[0], x[-2], x[-1]) == (-105, 95, 105)
        assert y[:-1].sum() == pytest.approx(1, rel=1e-6)
    texts = " ".join(note["text"] for note in figure.layout["annotations"]) + figure.note
    for words in ("under-estimated", "over-estimated", "77 to 92 %"):
        assert words in texts


def test_the_best_of_each_column(written):
    """The least CRPS is marked, once, as it is printed."""
    told = written[1].scored
    marks = [row[4] for row in RankedTable("", [], told, COLUMNS).rows()]
    best = min(range(len(told)), key=lambda i: told[i].relative_crps.value)
    assert [i for i, (_, is_best) in enumerate(marks) if is_best] == [best]


def test_one_job(tmp_path):
    """A log of one job makes a page that says what cannot be told."""
    workload = made_workload({"submit_seconds": [0.0], "runtime_seconds": [10.0]})
    view = write_report(workload, [evaluate(workload, as_part(Constant(10.0)))], tmp_path)
    missing = [part.title for part in figures(view) if isinstance(part, MissingFigure)]
    assert len(missing) == 3
    page = (tmp_path / "report.html").read_text("utf-8")
    assert not page_faults(page, tmp_path)
    assert "does not name users" in page
    assert "too short for intervals" in page
    assert not (tmp_path / "derived.csv").exists()


@pytest.mark.parametrize("runtime", [0.0, 600.0], ids=["zero", "equal"])
def test_all_runtimes_equal(tmp_path, runtime):
    """Equal runtimes, even of nothing, are drawn or said to be undrawable."""
    columns = {
        "submit_seconds": [3600.0 * i for i in range(100)],
        "runtime_seconds": [runtime] * 100,
        "user": ["only"] * 100,
        "requested_seconds": [1200.0] * 100,
    }
    workload = made_workload(columns)
    view = write_report(workload, [evaluate(workload, name) for name in NAMES], tmp_path)
    assert ("error-histogram" in drawn(view)) == (runtime > 0)
    assert len(sentences(view)) >= len(NAMES)


@pytest.mark.parametrize(
    ("used", "derived"), [([1.0, 1.0], False), ([1.0, 2.0], True), ([None, 2.0], False)]
)
def test_work_is_derived_from_where_it_was_measured(tmp_path, used, derived):
    """One cpu time for all jobs is a placeholder; nothing is derived from it."""
    columns = {
        "submit_seconds": [0.0, 1.0],
        "runtime_seconds": [10.0, 20.0],
        "used_cpu_seconds": used,
    }
    workload = made_workload(columns)
    write_report(workload, [evaluate(workload, "recent")], tmp_path)
    assert (tmp_path / "derived.csv").exists() == derived


def test_different_subjects_are_refused(evaluations):
    """Only evaluations of the same log and quantity share a page."""
    other = evaluate(random_jobs(5), "recent", quantity="cpu_time")
    with pytest.raises(InputError, match="different subjects"):
        evaluation_view([evaluations[0], other])
    with pytest.raises(InputError, match="needs an evaluation"):
        evaluation_view([])


def test_amounts_are_said_with_their_unit():
    """Durations, memory and cores as people say them; unknown ones are a dash."""
    assert amount("seconds", 90.0) == "90 s"
    assert amount("bytes", 6.29e6) == "6.29 MB"
    assert amount("cores", 2.5) == "2.5 cores"
    assert amount("core seconds", 1500.0) == "1,500 core s"
    assert {amount(unit, float("nan")) for unit in ("seconds", "bytes", "cores")} == {"–"}


def test_costs_below_the_clock_are_not_made_up():
    """Microseconds with three digits; less than the clock can tell is said to be less."""
    assert microseconds(2.3094e-05) == "23.1"
    assert microseconds(0.0) == "<0.1"
