"""``foresail cloud waiting`` as a user meets it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.model.errors import InputError, UnknownNameError


def run(*arguments: object):
    return CliRunner().invoke(app, ["waiting", "0.2,500s", *map(str, arguments)])


def told(*arguments: object):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)["settings"]


def test_the_fewest_costs():
    """The published example: NJW owns 108 servers at a price of 0.467, AJW needs 101."""
    rows = [line.split() for line in run("--policy", "njw,ajw").stdout.splitlines()]
    assert ["no-jobs-wait", "108", "0.467", "0", "s", "3.5", "%", "0", "s"] in rows
    assert [row[:3] for row in rows[2:]] == [["all-jobs-wait", "101", "0.404"]]


def test_numbers_of_machines():
    """AJW with 108 costs 7.5 % less; with 100 its queue only grows, which JSON tells as null."""
    few, many = told("--policy", "ajw", "--fixed", "100,108")
    assert few["mean_wait_seconds"] is None
    assert many["price"] == pytest.approx(0.432)
    assert many["mean_wait_seconds"] == pytest.approx(20.52, abs=0.01)
    product = many["price"] * many["mean_wait_seconds"]
    assert many["opportunity_cost_seconds"] == pytest.approx(product)
    assert "grows" in run("--policy", "ajw", "--fixed", "100").stdout
    assert [each["machines"] for each in told("--policy", "ajw", "--fixed", "90:110:10")] == [
        *(90, 100, 110),
    ]


def test_thresholds():
    """Only those that a policy has, and every pair of them."""
    rows = told("--wait-limit", "15min,1h", "--short", "3min,5min", "--fixed", "101")
    limits = [(each["waiting_seconds"], each["short_seconds"]) for each in rows]
    assert limits[:2] == [(None, None)] * 2
    assert limits[2:6] == [(900.0, None), (3600.0, None)] * 2
    assert limits[6:8] == [(None, 180.0), (None, 300.0)]
    assert sorted(limits[8:]) == [(w, s) for w in (900.0, 3600.0) for s in (180.0, 300.0)]


def test_wrong_predictions():
    """Spec section 5.1: SWW on 95 servers at 5 % too long, and on 93 at 50 % too short."""
    common = ("--policy", "short-waits-wait", "--wait-limit", "900s")
    (over,) = told(*common, "--fixed", "95", "--mispredicted", "0.05,0")
    assert over["price"] == pytest.approx(0.435166, abs=1e-6)
    (under,) = told(*common, "--fixed", "93", "--mispredicted", "0,0.5")
    assert under["mean_wait_seconds"] == pytest.approx(802.07, abs=0.005)
    every = told("--mispredicted", "0.05,0.3", "--fixed", "110")
    assert "compound" not in {each["policy"] for each in every}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--mispredicted", "0.1"), "two shares"),
        (("--mispredicted", "0.1,-1"), "two shares"),
        (("--mispredicted", "0.1,nan"), "two shares"),
        (("--mispredicted", "0.1,0", "--policy", "compound"), "no formula"),
        (("--fixed", "1:100000000:1"), "up to 100,000"),
        (("--fixed", "10:5:1"), "no numbers of machines"),
        (("--fixed=-3",), "no numbers of machines"),
        (("--fixed", "1:2:0"), "no numbers of machines"),
        (("--fixed-price", "0"), "fixed_price"),
        (("--wait-limit=-5s",), "--wait-limit"),
        (("--short", "soon"), "--short"),
    ],
)
def test_bad_options(arguments, problem):
    """Shares, counts, prices and times that cannot be are refused by name."""
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert problem in str(error)


@pytest.mark.parametrize("model", ["1e300,500s", "inf,500s", "0.2,500s,3", "0.2", "x,3s"])
def test_models_that_cannot_be(model):
    """Absurd numbers, or not two of them."""
    error = CliRunner().invoke(app, ["waiting", model]).exception
    assert isinstance(error, InputError)
    assert error.field == "RATE,RUNTIME"


def test_unknown_names():
    """What there is, is said."""
    with pytest.raises(UnknownNameError, match="compound"):
        raise run("--policy", "compund").exception


def test_exit_status(monkeypatch, capsys):
    """From the shell: one line on standard error, and status 2."""
    monkeypatch.setattr("sys.argv", ["foresail", "cloud", "waiting", "0.2"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("foresail: field 'RATE,RUNTIME': no arrivals and runtime")
