"""The report and the commands of a campaign, on small generated logs."""

import json
import re

import polars as pl
import pytest
from typer.testing import CliRunner

from foresail.campaigns.figures import all_against_baseline, correlation_map
from foresail.campaigns.page import findings_of, sentences
from foresail.campaigns.results import QUANTILE_LEVELS, Results
from foresail.campaigns.selection import SelectionRule, correlations
from foresail.cli.campaign import app
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.reports.figure import Figure, MissingFigure
from made_campaigns import POLICIES, InProcess, carried_out, made_plan
from reading_pages import page_faults


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a finished campaign: six policies on two logs."""
    parent = tmp_path_factory.mktemp("campaign")
    return carried_out(made_plan(parent), parent / "results").folder


def _invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def test_page_is_one_file_with_everything(folder):
    """The page has every figure's data, asks nobody for anything, and names its CSV files."""
    answer = _invoke("report", folder)
    assert answer.exit_code == 0
    page = (folder / "report.html").read_text()
    assert not page_faults(page, folder)
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=['\"]?https?:", page)
    found = re.search(r"<script type='application/json' id='figures'>(.*?)</script>", page, re.S)
    figures = json.loads(found[1])
    assert set(figures) == {"policies", "correlations", "errors", "predictions"}
    for name in re.findall(r"href='([\w-]+\.csv)'", page):
        assert pl.read_csv(folder / name).height > 0
    assert pl.read_csv(folder / "results.csv").height == len(POLICIES) * 2


def test_error_curves_are_the_runs_quantiles(folder):
    """A drawn curve ends at the smallest and largest error of its run."""
    results = Results(folder)
    largest = results.table().sort("jobs", descending=True, maintain_order=True)["log"][0]
    run = results.quantiles().filter(log=largest, policy="easy").row(0, named=True)
    findings = findings_of(results, SelectionRule())
    figure = next(p for p in findings.parts if isinstance(p, Figure) and p.name == "errors")
    drawn = figure.table.filter(predictor="requested time")
    assert drawn["level"].to_list() == list(QUANTILE_LEVELS)
    assert drawn["error_seconds"].to_list() == run["error_quantiles"]
    assert {trace["name"] for trace in figure.traces} == {
        "requested time",
        "mean of the last two",
        "regression, E-Loss",
        "regression, squared loss",
    }


def test_words_agree_with_the_table(folder):
    """The sentence on top says the mean of the reductions of the choices."""
    findings = findings_of(Results(folder), SelectionRule())
    mean = findings.choices["reduction"].mean()
    said = re.search(r"by ([−+]?[\d.,]+) % in the mean", sentences(findings)[0])
    assert float(said[1].replace("−", "-")) == pytest.approx(-100 * mean, abs=0.06)


def test_clairvoyant_policies_are_no_dots(folder):
    """Policies that nobody could use are drawn only where they are named."""
    figure = all_against_baseline(Results(folder).table(), "easy", {})
    assert len(figure.traces) == 1
    assert len(figure.traces[0]["x"]) == 2 * (len(POLICIES) - 2)
    assert not any("clairvoyant" in text for text in figure.traces[0]["text"])


def test_one_log(folder):
    """A campaign on one log has a report too, which says what it cannot say."""
    table = Results(folder).table().filter(log="log-1")
    assert isinstance(correlation_map(correlations(table)), MissingFigure)


def test_choose_as_json(folder):
    """The choice is for programs too, with the figures behind it."""
    answer = _invoke("choose", folder, "--format", "json")
    rows = json.loads(answer.stdout)["rows"]
    assert [row["log"] for row in rows] == ["log-1", "log-2"]
    for row in rows:
        assert row["reduction"] == pytest.approx(
            1 - row["average_bounded_slowdown"] / row["baseline"]
        )
        assert "clairvoyant" not in row["policy"]
    only = json.loads(_invoke("choose", folder, "--among", "easy++", "--format", "json").stdout)[
        "rows"
    ]
    assert {row["policy"] for row in only} == {parse_policy("easy++").text}


def test_choose_and_report_for_people(folder):
    """Tables name logs and policies; ``--normalised`` and the wait limit are taken."""
    text = _invoke("choose", folder, "--normalised", "--longest-wait", "100").output
    assert "log-1" in text
    assert "mean reduction" in text
    csv = _invoke("report", folder, "--format", "csv").stdout
    assert csv.startswith("log,easy,clairvoyant_fcfs")
    with pytest.raises(InputError, match="no campaign here"):
        _invoke("report", folder / "runs")


def test_run_refuses_mixed_input(tmp_path):
    """A campaign file and options for the same things, or two kinds of workers, are an error."""
    plan = tmp_path / "a.toml"
    plan.write_text("logs = ['x.swf']\ntriples = true\n")
    with pytest.raises(InputError, match="itself"):
        _invoke("run", plan, "--triples", "--output", tmp_path / "out")
    log = made_plan(tmp_path, seeds=(1,)).logs[0].path
    with pytest.raises(InputError, match="own workers"):
        _invoke(
            *("run", log, "--with", "easy", "--output", tmp_path / "out"),
            *("--workers", 2, "--dask", "tcp://127.0.0.1:9"),
        )
    with pytest.raises(InputError, match="no policies"):
        _invoke("run", log, "--output", tmp_path / "out")


def test_run_says_what_it_did(tmp_path, monkeypatch):
    """Piped, every run is a line on standard error; what was there is not run again."""
    monkeypatch.setattr("foresail.campaigns.running.LocalPool", lambda _: InProcess())
    logs = [log.path for log in made_plan(tmp_path).logs]
    output = ("--output", tmp_path / "out")
    first = _invoke("run", *logs, "--with", "easy", *output)
    assert "2 of 2 runs replayed;" in first.stdout
    assert "reading log-1" in first.stderr
    assert re.search(r"1 of 2: log-\d: easy: [\d.]+\n2 of 2: ", first.stderr)
    second = _invoke("run", *logs, "--with", "easy", "--with", "easy++", *output)
    assert "2 of 4 runs replayed, 2 were there" in second.stdout
    assert "reading log" not in second.stderr
    assert "3 of 4: " in second.stderr
