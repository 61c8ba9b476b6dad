"""``foresail cloud waiting`` as a user meets it."""

from __future__ import annotations

import csv
import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.model.errors import InputError, UnknownNameError
from reading_pages import page_faults

DAY = 86400.0
SMALL = ("--machine", "standard-8", "--fixed", 2)
PRICES = """\
instance_type,cores,memory_gib,on_demand,currency,date,reserved_1y,reserved_3y
small,4,16,0.2,EUR,2024-01-01,0.12,0.08
large,16,64,0.8,EUR,2024-01-01,0.48,0.32
"""


@pytest.fixture
def log(tmp_path):
    """Ten days of jobs in SWF: 60 a day, of 1 to 8 cores and minutes to hours."""
    random = np.random.default_rng(5)
    count = 600
    submit = np.sort(random.random(count) * 10.0 * DAY).astype(int)
    runtime = np.exp(random.normal(7.5, 1.5, count)).clip(10.0, 40_000.0).astype(int)
    cores = 2 ** random.integers(0, 4, count)
    path = tmp_path / "log.swf"
    lines = ["; MaxProcs: 64", "; MaxNodes: 64"]
    lines += [
        f"{at + 1} {s} 0 {r} {c} -1 -1 {c} 43200 -1 1 1 1 1 1 -1 -1 -1"
        for at, (s, r, c) in enumerate(zip(submit, runtime, cores, strict=True))
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text(PRICES)
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, ["waiting", *map(str, arguments)])


def told(*arguments: object):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_advice_first(log, prices, tmp_path):
    """The first sentence says what to own and who waits; today is compared; the page has it all."""
    out = tmp_path / "out"
    arguments = ("--prices", prices, "--machine", "small", "--owned", 12, "--hour-value", 0.01)
    result = run(log, *arguments, "--output", out)
    assert result.exit_code == 0, result.exception
    said = flat(result.stdout)
    assert said.startswith("Own ")
    assert "Today, with 12 machines and all-jobs-wait, it is" in said
    assert "counts as 0.01 EUR, as stated" in said
    assert "With days drawn anew from the log's 10," in said
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    for name in ("policies", "frontier", "by-value"):
        assert f"{name}.csv" in page
        assert (out / f"{name}.csv").stat().st_size > 0
    rows = list(csv.DictReader((out / "frontier.csv").read_text().splitlines()))
    assert sum(row["advised"] == "true" for row in rows) == 1
    assert sum(row["today"] == "true" for row in rows) == 1


def test_numbers_agree(log, prices):
    """Price times the cost of renting everything is the cost, and intervals hold their values."""
    record = told(log, "--prices", prices, "--machine", "small", "--fixed", "2:10:4", "--owned", 6)
    assert {each["machines"] for each in record["points"]} == {2, 6, 10}
    for each in record["points"]:
        assert each["price"] * each["on_demand_cost"] == pytest.approx(each["cost"])
        assert each["price_low"] <= each["price"] <= each["price_high"]
        low, high = each["mean_wait_seconds_low"], each["mean_wait_seconds_high"]
        assert low <= each["mean_wait_seconds"] <= high
        owned = each["machines"] * 0.08 * record["period_seconds"] / 3600.0
        assert each["cost"] >= owned - 1e-6
    best = record["best_by_value"]
    assert (best[0]["from"], best[-1]["to"]) == (0.0, None)
    for lower, upper in pairwise(best):
        assert lower["to"] == upper["from"]
        assert lower["cost"] < upper["cost"]
        assert lower["waiting_hours"] > upper["waiting_hours"]
    value = record["hour_value"]
    worths = [each["cost"] + value * each["waiting_hours"] for each in record["points"]]
    chosen = record["advised"]
    assert chosen["cost"] + value * chosen["waiting_hours"] == pytest.approx(min(worths))


def test_worth_of_waiting_moves_the_advice(log, prices):
    """The more waiting is worth, the less of it; without any worth the cheapest is advised."""
    common = (log, "--prices", prices, "--machine", "small", "--fixed", "2:10:2")
    free = told(*common, "--hour-value", 0)
    dear = told(*common, "--hour-value", 100)
    assert free["advised"]["cost"] == min(each["cost"] for each in free["points"])
    assert dear["advised"]["mean_wait_seconds"] == 0.0
    target = told(*common, "--hour-value", 0, "--target-wait", "5min")
    assert target["advised"]["mean_wait_seconds"] <= 300.0
    assert target["advised"]["cost"] >= free["advised"]["cost"]


def test_target_out_of_reach(log):
    """A mean wait that nothing reaches: the best reachable is said."""
    with pytest.raises(InputError, match="best reachable"):
        raise run(log, *SMALL, "--policy", "all-jobs-wait", "--target-wait", 1).exception


def test_who_believes_what(log):
    """Runtimes as users asked, and waits unknown: dearer or slower than all known, never better."""
    common = (log, *SMALL, "--policy", "compound", "--wait-limit", "1h")
    known = told(*common)["points"][0]
    unknown = told(*common, "--waits", "unknown")["points"][0]
    assert unknown["cost"] == pytest.approx(known["cost"])
    assert unknown["mean_wait_seconds"] >= known["mean_wait_seconds"]
    limits = told(*common, "--runtimes", "requested")["points"][0]
    assert limits["rented_jobs"] < known["rented_jobs"]
    recent = told(*common, "--runtimes", "recent")["points"][0]
    assert recent["rented_jobs"] != known["rented_jobs"]


def test_learned_waits(log):
    """Policies that a model tells of waits need no oracle, and weighing is one of them."""
    common = (log, "--machine", "standard-8", "--fixed", "2,3", "--wait-limit", "4h")
    learned = (*common, "--runtimes", "recent", "--waits", "linear", "--hour-value", 0.05)
    record = told(*learned)
    policies = {each["policy"] for each in record["points"]}
    assert "weighing" in policies
    assert "long-jobs-wait" not in policies
    assert record["goes_by_truths"] == []
    assert record["without_knowledge"] == record["advised"]
    weighing = (*learned[:-1], 0, "--policy", "weighing")
    free = told(*weighing)["points"]
    paid = [each for each in record["points"] if each["policy"] == "weighing"]
    assert [each["rented_jobs"] for each in free] < [each["rented_jobs"] for each in paid]
    error = run(*common, "--policy", "weighing").exception
    assert isinstance(error, InputError)
    assert (error.field, error.value) == ("--waits", "known")


def test_by_formula():
    """The published example: NJW owns 108 servers at a price of 0.467, AJW 7.5 % less at 108."""
    arguments = ("--model", "0.2,500s", "--machine", "standard-1", "--policy", "njw,ajw")
    record = told(*arguments, "--hour-value", 1)
    assert record["advised"]["policy"] == "no-jobs-wait"
    assert record["advised"]["machines"] == 108
    assert record["advised"]["price"] == pytest.approx(0.466944, abs=1e-6)
    (ajw,) = (
        each
        for each in record["points"]
        if each["policy"] == "all-jobs-wait" and each["machines"] == 108
    )
    assert ajw["price"] == pytest.approx(0.432)
    assert ajw["mean_wait_seconds"] == pytest.approx(20.52, abs=0.01)
    assert record["growing_left_out"] == 101
    lowest = {each["policy"]: each["machines"] for each in record["lowest_prices"]}
    assert lowest == {"all-jobs-wait": 101, "no-jobs-wait": 108}
    few = told(*arguments, "--hour-value", 1, "--fixed", "105,110")
    assert few["lowest_prices"] == record["lowest_prices"]
    assert {each["machines"] for each in few["points"]} == {105, 110}
    said = flat(run(*arguments, "--hour-value", 1).stdout)
    assert "lowest with these machines: all-jobs-wait 101 (40.4 %" in said
    assert "no-jobs-wait 108 (46.7 %, mean wait 0 s)" in said
    assert "By formula" not in run(*arguments).stdout


def test_orders(log):
    """Shortest first goes by runtimes; in strict order jobs wait for longer."""
    common = (log, *SMALL, "--policy", "ajw-t,sww", "--wait-limit", "4h")
    plain, shortest, strict = (
        told(*common, "--order", order) for order in ("fcfs", "sjf", "strict-fcfs")
    )
    assert plain == told(*common)
    assert plain["points"] != shortest["points"]
    assert "runtimes" in shortest["goes_by_truths"]
    assert "runtimes" not in plain["goes_by_truths"]
    assert plain["queue"] == "waiting jobs go in the order fcfs"
    waits = [record["points"][0]["mean_wait_seconds"] for record in (plain, strict)]
    assert waits[0] < waits[1]


def test_wrong_predictions_by_formula():
    """Spec section 5.1: SWW on 95 servers at 5 % too long, and on 93 at 50 % too short."""
    common = ("--model", "0.2,500s", "--machine", "standard-1", "--policy", "short-waits-wait")
    common += ("--wait-limit", "900s")
    (over,) = told(*common, "--fixed", "95", "--mispredicted", "0.05,0")["points"]
    assert over["price"] == pytest.approx(0.435166, abs=1e-6)
    (under,) = told(*common, "--fixed", "93", "--mispredicted", "0,0.5")["points"]
    assert under["mean_wait_seconds"] == pytest.approx(802.07, abs=0.005)
    every = told(*common[:4], "--mispredicted", "0.05,0.3", "--fixed", "110")
    assert "compound" not in {each["policy"] for each in every["points"]}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--model", "0.2,500s", "--mispredicted", "0.1"), "two shares"),
        (("--model", "0.2,500s", "--mispredicted", "0.1,-1"), "two shares"),
        (("--model", "0.2,500s", "--mispredicted", "0.1,nan"), "two shares"),
        (("log.swf", "--mispredicted", "0.1,0.1"), "as their predictor does"),
        (("--model", "0.2,500s", "--mispredicted", "0.1,0", "--policy", "compound"), "no formula"),
    ],
)
def test_predictions_that_cannot_be_so_wrong(arguments, problem):
    """Not two shares, a log, and a policy that has no formula for it."""
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert problem in str(error)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--model", "1e300,500s"), "too many jobs at a time"),
        (("--model", "inf,500s"), "no arrivals and runtime"),
        (("--model", "0.2,500s,3"), "no arrivals and runtime"),
        (("--model", "0.2"), "no arrivals and runtime"),
        (("--model", "0.2,500s", "--fixed", "1:100000000:1"), "up to 100,000"),
        (("--model", "0.2,500s", "--runtimes", "recent"), "says nothing about a formula"),
        (("--model", "0.2,500s", "--waits", "forest"), "says nothing about a formula"),
        (("--model", "0.2,500s", "--processors", "3"), "says nothing about a formula"),
        (("--model", "0.2,500s", "--fixed-price", "1e300"), "not a price"),
    ],
)
def test_formulas_of_what_cannot_be(arguments, problem):
    """Absurd numbers, and options that would change nothing."""
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert problem in str(error)


def test_formulas_have_one_order():
    """An order needs a log."""
    error = run("--model", "0.2,500s", "--order", "sjf").exception
    assert isinstance(error, InputError)
    assert error.field == "--order"


def test_options_from_a_file(log, prices, tmp_path):
    """A file gives the sweep."""
    config = tmp_path / "cloud.toml"
    config.write_text(
        f'[waiting]\nprices = "{prices}"\nmachine = "large"\nfixed = "0:2:1"\n'
        'policy = ["njw,ljw"]\nshort = ["1min,1h"]\nformat = "json"\n'
    )
    record = json.loads(run(log, "--config", config).stdout)
    assert {each["policy"] for each in record["points"]} == {"no-jobs-wait", "long-jobs-wait"}
    assert {each["short_seconds"] for each in record["points"]} == {None, 60.0, 3600.0}


def test_a_short_log_has_no_intervals(tmp_path, prices):
    """Two jobs: an answer, and it is said that it is not known how sure it is."""
    path = tmp_path / "two.swf"
    job = "-1 -1 2 43200 -1 1 1 1 1 1 -1 -1 -1"
    path.write_text(f"; MaxProcs: 4\n1 0 0 900 2 {job}\n2 3600 0 900 2 {job}\n")
    result = run(path, "--prices", prices, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.exception
    said = flat(result.stdout)
    assert said.startswith("Own none, and rent a machine for every job at once")
    assert "too short to say how sure this is" in said
    one = tmp_path / "one.swf"
    one.write_text(f"; MaxProcs: 4\n1 0 0 900 2 {job}\n")
    with pytest.raises(InputError, match="too few jobs"):
        raise run(one, "--prices", prices).exception


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (("--wait-limit=-5s",), "--wait-limit", "-5s"),
        (("--short", "soon"), "--short", "soon"),
        (("--fixed", "10:5:1"), "--fixed", "10:5:1"),
        (("--fixed=-3",), "--fixed", "-3"),
        (("--fixed", "1:2:0"), "--fixed", "1:2:0"),
        (("--fixed-price", "0"), "--fixed-price", 0.0),
        (("--hour-value=-1",), "hour value", -1.0),
        (("--owned=-1",), "owned", -1),
        (("--term", "2"), "reserved_2y", None),
    ],
    ids=lambda each: str(each[0]) if isinstance(each, tuple) else "",
)
def test_bad_options(log, arguments, field, value):
    """Negative limits, empty sweeps and impossible prices name their option and value."""
    error = run(log, *arguments).exception
    assert isinstance(error, InputError)
    assert (error.field, error.value) == (field, value)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("0.2,EUR", "0,EUR", "on_demand"),
        ("0.2,EUR", "-1,EUR", "on_demand"),
        ("0.2,EUR", ",EUR", "on_demand"),
        ("0.8,EUR", "0.8,USD", "currency"),
    ],
    ids=["zero", "negative", "missing", "mixed"],
)
def test_bad_prices(log, prices, old, new, field):
    """Prices that are missing, not above 0 or in two currencies: file, line and field."""
    prices.write_text(PRICES.replace(old, new))
    error = run(log, "--prices", prices).exception
    assert isinstance(error, InputError)
    assert error.field == field
    assert str(prices) in str(error)


def test_jobs_without_cores(tmp_path):
    """Where other filters leave jobs without cores, their number is said; else they are dropped."""
    path = tmp_path / "log.swf"
    job = "-1 -1 {} 900 -1 1 1 1 1 1 -1 -1 -1"
    lines = [f"{at} {3600 * at} 0 900 {c} {job.format(c)}" for at, c in ((1, 2), (2, -1), (3, 2))]
    path.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    error = run(path, "--filter", "drop_no_runtime").exception
    assert isinstance(error, InputError)
    assert (error.source, error.field, error.value) == (path, "cpus_per_task", 1)
    assert told(path)["jobs"] == 2


def test_unknown_names(log):
    """Policies and machines by a wrong name: what there is, is said."""
    with pytest.raises(UnknownNameError, match="compound"):
        raise run(log, "--policy", "compund").exception
    with pytest.raises(UnknownNameError, match="standard-64"):
        raise run(log, "--machine", "standard-63").exception


def test_exit_status(log, monkeypatch, capsys):
    """From the shell: one line on standard error, and status 2; a log or a model, not both."""
    arguments = ["foresail", "cloud", "waiting", str(log), "--model", "1,1s"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said == "foresail: give either LOG or --model; expected LOG, or --model RATE,RUNTIME\n"
