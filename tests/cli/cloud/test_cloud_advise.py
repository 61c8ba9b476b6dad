"""``foresail cloud advise`` as a user meets it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.model.errors import ForesailError
from reading_pages import page_faults

QUICK = ("--runtimes", "requested", "--workers", 1, "--wait-limit", "1h", "--short", "10min")
HISTORY = """\
timestamp,az,instance_type,os,spot_price,on_demand_price
2015-03-11 00:00:00+00:00,us-east-1a,small,Linux,0.03,0.2
2015-03-13 06:00:00+00:00,us-east-1a,small,Linux,0.3,0.2
2015-03-13 09:00:00+00:00,us-east-1a,small,Linux,0.02,0.2
2015-03-16 00:00:00+00:00,us-east-1a,small,Linux,0.02,0.2
"""


def swf(jobs) -> str:
    lines = ["; MaxProcs: 8"]
    lines += [
        f"{number} {submit} 0 {runtime} {width} -1 -1 {width} {2 * runtime} -1 1 {number % 5} 1 -1 "
        "1 -1 -1 -1"
        for number, (submit, runtime, width) in enumerate(jobs, start=1)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def log(tmp_path):
    """Six weeks of jobs that would keep some five processors busy."""
    random = np.random.default_rng(4)
    submit = np.sort(random.integers(0, 6 * 7 * 86_400, 700))
    runtime = random.exponential(12_000.0, 700).astype(int) + 1
    width = random.integers(1, 4, 700)
    path = tmp_path / "weeks.swf"
    path.write_text(swf(zip(submit, runtime, width, strict=True)))
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


def said(result) -> str:
    return " ".join(result.stdout.split())


def test_advice_in_words_and_tables(log):
    """A sentence first, the comparison, what would change it, what it rests on."""
    result = run(log, *QUICK)
    assert result.exit_code == 0, result.output
    words = said(result)
    assert words.startswith("Reserve ")
    assert " for 3 years (" in words
    assert "Today's 8 nodes, with every job waiting, cost" in words
    for heading in ("What does it come to?", "What would change the advice?", "What it rests on"):
        assert heading in result.stdout
    assert "Prices: thesis of 2018-12-31" in words
    assert "is taken to repeat over the term" in words
    assert "counted otherwise than the advice, and may lie on either side of it" in words
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_report_and_record(log, tmp_path):
    """The page has three pictures, each with its numbers; the record can be applied."""
    out = tmp_path / "out"
    result = run(log, *QUICK, "--owned", 5, "--format", "json", "--output", out)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record == json.loads((out / "advice.json").read_text())
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    for name in ("compared", "frontier", "demand", "sensitivity"):
        rows = list(csv.DictReader((out / f"{name}.csv").read_text().splitlines()))
        assert rows
        assert f"id='section-{name}'" in page or f"id='{name}-table'" in page
    applied = record["apply"]
    tried = list(csv.DictReader((out / "frontier.csv").read_text().splitlines()))
    policy = applied["waiting_policy"]
    same = [
        row
        for row in tried
        if (row["rule"], int(row["nodes"])) == (policy["name"], applied["nodes"])
    ]
    advised = record["compared"][0]
    assert advised["cost_per_month"] in [pytest.approx(float(r["cost_per_month"])) for r in same]
    assert [each["what"] for each in record["compared"]] == ["advised", "today", "all on demand"]
    assert record["compared"][1]["nodes"] == 5
    low, high = advised["cost_per_month_low"], advised["cost_per_month_high"]
    assert low <= advised["cost_per_month"] <= high
    assert len(record["sensitivity"]) == 6


@pytest.mark.parametrize(
    ("target", "missed", "words"),
    [
        (("--budget", 1), "cost", "Nothing that was tried costs 1 USD a month or less"),
        (("--max-wait", "1s", "--budget", 90), "wait", "A mean wait of 1 s cannot be had for 90"),
    ],
    ids=["budget", "wait"],
)
def test_a_target_that_cannot_be_met(log, target, missed, words):
    """The best that can be reached is told first, and the status says so."""
    result = run(log, *QUICK, *target)
    assert result.exit_code == 1
    assert said(result).startswith(words)
    assert "the best that can be reached is" in said(result)
    record = json.loads(run(log, *QUICK, *target, "--format", "json").stdout)
    assert (record["targets_met"], record["target_missed"]) == (False, missed)


def test_all_targets_that_are_missed_are_named(log):
    """Neither the budget nor the wait can be had: both are told, each with the best of it."""
    targets = ("--max-wait", "1s", "--budget", 1)
    result = run(log, *QUICK, *targets)
    assert result.exit_code == 1
    assert "Nothing that was tried costs 1 USD a month or less" in said(result)
    assert (
        "Nor does that keep the mean wait at 1 s or less: the best that can be reached, whatever "
        "it costs, is 0 s, for " in said(result)
    )
    record = json.loads(run(log, *QUICK, *targets, "--format", "json").stdout)
    cost, wait = record["targets_missed"]
    assert (cost["target"], wait["target"]) == ("cost", "wait")
    assert cost["best_cost_per_month"] == record["compared"][0]["cost_per_month"]
    assert wait["best_mean_wait_seconds"] == 0.0
    assert wait["best_cost_per_month"] > cost["best_cost_per_month"]


def test_a_target_that_can_be_met(log):
    """A short mean wait costs more than none asked for, and is kept."""
    free, quick = (
        json.loads(run(log, *QUICK, *target, "--format", "json").stdout)["compared"][0]
        for target in ((), ("--max-wait", "5s"))
    )
    assert quick["mean_wait_seconds"] <= 5.0 < free["mean_wait_seconds"]
    assert quick["cost_per_month"] > free["cost_per_month"]


def test_transient_capacity_by_its_history(log, tmp_path):
    """With a price history the rest may run on transient machines, and that is said."""
    history = tmp_path / "history.csv"
    history.write_text(HISTORY)
    result = run(log, *QUICK, "--history", history)
    assert result.exit_code == 0, result.output
    assert "Transient machines cost" in said(result)
    record = json.loads(run(log, *QUICK, "--history", history, "--format", "json").stdout)
    assert record["apply"]["rent"] == "on demand or transient"
    plain = json.loads(run(log, *QUICK, "--format", "json").stdout)
    assert record["compared"][0]["cost_per_month"] < plain["compared"][0]["cost_per_month"]


def test_predictors_are_believed(log):
    """By default a predictor's beliefs are used; the truth can be asked for."""
    words = said(run(log, *QUICK[2:]))
    assert "Runtimes are believed as combined says" in words
    known = run(log, *QUICK[2:], "--runtimes", "known")
    assert "Runtimes are taken to be known; rules that go by them are tried, but not" in said(known)


def test_one_job_is_too_little(tmp_path):
    """The ugliest log: it says first that nobody should sign for this, and draws its page."""
    path = tmp_path / "one.swf"
    path.write_text(swf([(0, 3600, 2)]))
    out = tmp_path / "out"
    result = run(path, *QUICK, "--output", out)
    assert result.exit_code == 0, result.output
    assert said(result).startswith("The log is 1 h long, with 1 job: too little to commit money")
    assert "too short to say how sure this is" in said(result)
    assert "too little to commit" in (out / "report.html").read_text()


def test_options_from_a_file(log, tmp_path):
    """A table [advise] gives options; what is written on the line goes first."""
    config = tmp_path / "cloud.toml"
    config.write_text(
        '[advise]\nowned = 3\nruntimes = "known"\nwait-limit = "1h"\nshort = "10min"\n'
    )
    record = json.loads(run(log, "--config", config, "--format", "json").stdout)
    assert record["compared"][1]["nodes"] == 3
    assert record["apply"]["waiting_policy"]["runtimes_believed_by"] == "the truth"
    over = run(log, "--config", config, "--owned", 4, "--format", "json")
    assert json.loads(over.stdout)["compared"][1]["nodes"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prices", "thesys"), "thesis"),
        (("--node", "standard-3"), "standard-32"),
        (("--max-wait", "-1h"), "--max-wait"),
        (("--wait-limit", "soon"), "--wait-limit"),
        (("--budget", -1), "field '--budget'"),
        (("--wait-price", -1), "field '--wait-price'"),
        (("--owned", -1), "field '--owned'"),
        (("--node", "standard-4", "--node-price", -1), "field '--node-price'"),
        (("--growth", 0), "field '--growth'"),
        (("--growth-spread", -1), "field '--growth-spread'"),
        (("--growth-spread", 1e11), "field '--growth-spread'"),
        (("--growth", 1e11), "field '--growth'"),
        (("--risk", 0), "field '--risk'"),
        (("--prices", "ec2-2024"), "field '--prices': nothing is reserved"),
        (("--prices", "ec2-2024", "--node", "c5.large"), "field '--node'"),
    ],
    ids=[
        "prices",
        "node",
        "wait",
        "limit",
        "budget",
        "wait price",
        "owned",
        "node price",
        "growth",
        "spread",
        "wide spread",
        "fast growth",
        "risk",
        "no reservations",
        "node not reserved",
    ],
)
def test_bad_input_is_named(log, arguments, message):
    """The option, what was found and what was expected."""
    result = run(log, *QUICK, *arguments)
    assert isinstance(result.exception, ForesailError)
    assert message in str(result.exception)


def test_bad_input_ends_with_status_2(log, monkeypatch, capsys):
    """As from a shell: one line, and status 2."""
    monkeypatch.setattr("sys.argv", ["foresail", "cloud", "advise", str(log), "--risk", "7"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "field '--risk': out of range (found 7.0)" in capsys.readouterr().err
