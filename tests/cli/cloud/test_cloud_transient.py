"""``foresail cloud transient`` as a user meets it."""

from __future__ import annotations

import csv
import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.cloud.transient.plan import from_record
from foresail.model.errors import ForesailError, InputError
from foresail.reports.renting.transient_page import how_often
from reading_pages import page_faults

TYPES = """\
name,capacity,availability,price_per_unit_hour
a,10,0.95,0.20
b,10,0.98,0.30
c,10,0.99,0.40
d,10,0.90,0.12
e,10,0.97,0.25
"""
MACHINES = "instance_type,capacity\nsmall,10\nlarge,20\n"


@pytest.fixture
def types(tmp_path):
    path = tmp_path / "types.csv"
    path.write_text(TYPES)
    return path


@pytest.fixture
def market(tmp_path):
    """Four markets over thirty days, each dear now and then; and their machines."""
    random = np.random.default_rng(3)
    lines = ["timestamp,az,instance_type,os,spot_price,on_demand_price"]
    for zone in ("a", "b"):
        for name, price in (("small", 0.4), ("large", 0.8)):
            for hour in range(0, 720, 3):
                spot = price * (2.0 if random.uniform() < 0.04 else 0.3)
                day, rest = divmod(hour, 24)
                lines.append(
                    f"2015-04-{day + 1:02d} {rest:02d}:00:00+00:00,{zone},{name},Linux,"
                    f"{spot},{price}"
                )
    history, machines = tmp_path / "history.csv", tmp_path / "machines.csv"
    history.write_text("\n".join(lines) + "\n")
    machines.write_text(MACHINES)
    return "--prices", history, "--machines", machines


def run(*arguments: object):
    return CliRunner().invoke(app, ["transient", *map(str, arguments)])


def test_a_type_that_comes_twice_is_refused(types):
    """The line of the second one is named."""
    types.write_text(TYPES + "b,10,0.98,0.30\n")
    result = run("--types", types, "--capacity", 20)
    assert isinstance(result.exception, InputError)
    assert "types.csv, line 7, field 'name': a type is given twice" in str(result.exception)


def test_plan_as_a_table(types):
    """The worked example: four machines for 11.5 an hour, 57.5 % of on demand."""
    result = run(
        "--types", types, "--capacity", 20, "--availability", 0.9999, "--on-demand-price", 1
    )
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "c 1 10 0.9900 4.0000 4.0000" in lines
    assert "together 4 40 0.9999399 11.5000" in lines
    assert "That is 57.5 % of what it costs on demand." in lines


def test_plan_as_json(types, tmp_path):
    """JSON is the plan's record, and so is the file beside the page."""
    out = tmp_path / "out"
    result = run("--types", types, "--capacity", 20, "--format", "json", "--output", out)
    assert result.exit_code == 0
    plan = from_record(json.loads(result.stdout))
    assert {each.type.name: each.count for each in plan.rented} == {"a": 1, "b": 1, "c": 1, "e": 1}
    assert from_record(json.loads((out / "plan.json").read_text())) == plan
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    for name in ("plan", "capacities", "frontier"):
        assert f"{name}.csv" in page
        assert len((out / f"{name}.csv").read_text().splitlines()) > 4
    rows = csv.DictReader((out / "frontier.csv").read_text().splitlines())
    assert [row["target_availability"] for row in rows][-1] == "0.999999"


def test_unreachable_target(types):
    """A target that no pool reaches: the best reachable is said."""
    with pytest.raises(InputError, match=r"best reachable is 0\.9999999700"):
        raise run("--types", types, "--capacity", 20, "--availability", 0.99999999).exception


def test_a_large_capacity_is_planned_in_parts(types):
    """A million machines: as available and, for each unit, as dear as a plan for twenty units."""
    result = run("--types", types, "--capacity", 1e7, "--format", "json")
    record = json.loads(result.stdout)
    assert record["availability"] >= 0.9999
    assert record["price_per_hour"] / 1e7 == pytest.approx(0.575, rel=0.01)


def test_a_folder_that_cannot_be_made_is_said_before_the_plan(types, tmp_path):
    """Before the answer, so that it is not taken for a success."""
    (tmp_path / "file").touch()
    for needed in (("--capacity", 20), ("--tier", "web=20")):
        result = run("--types", types, *needed, "--output", tmp_path / "file")
        assert result.stdout == ""
        assert isinstance(result.exception, InputError)


def test_exit_status(types, monkeypatch, capsys):
    """From the shell: one line on standard error, and status 2."""
    arguments = ["foresail", "cloud", "transient", "--types", str(types), "--capacity", "-1"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said == (
        "foresail: field '--capacity': no capacity to plan for (found -1.0); expected above 0\n"
    )


def test_dearer_than_on_demand(types):
    """A pool that costs more than on demand says so."""
    result = run("--types", types, "--capacity", 20, "--on-demand-price", 0.1)
    assert result.exit_code == 0
    assert "rent it on demand instead" in " ".join(result.stdout.split())


@pytest.mark.parametrize("price", [1e-300, 1e300])
def test_prices_that_are_none(types, price):
    """What is far below or above any price is refused, not divided by."""
    with pytest.raises(InputError, match="'--on-demand-price': not a price"):
        raise run("--types", types, "--capacity", 20, "--on-demand-price", price).exception


def test_the_headline_is_what_the_check_found(market):
    """Where the time after showed less than the model says, that is what leads, and is expected."""
    asked = (*market, "--capacity", 40, "--availability", 0.99, "--check-window", 7)
    record = json.loads(run(*asked, "--format", "json").stdout)
    found = {}
    for each in record["windows"]:
        if each["planned"] and each["window"] != "oracle":
            seconds = each["end_seconds"] - each["begin_seconds"]
            found[each["begin_seconds"]] = seconds, each["availability"]
    after = sum(s * a for s, a in found.values()) / sum(s for s, _ in found.values())
    by_model = record["availability"]
    least = min(after, by_model, record["availability_in_history"])
    assert record["availability_expected"] == pytest.approx(least)
    result = run(*asked)
    said = " ".join(result.stdout.split())
    assert ("the history does not bear that out" in said) == (least < by_model)
    missed = min(after, record["availability_in_history"]) < 0.99
    assert missed is not record["accepted"]
    assert result.exit_code == missed
    assert ("Not accepted" in said) == missed


def test_a_plan_that_its_history_does_not_bear_out_is_not_accepted(tmp_path):
    """Markets that fail together: one that is never down is the cheapest plan that would have held.

    Without it none would have, and the best is said.
    """
    lines = ["timestamp,az,instance_type,os,spot_price,on_demand_price"]
    for day in range(1, 31):
        for zone, price in (("a", 0.1), ("b", 0.11), ("c", 0.3)):
            spot = 0.9 if zone != "c" and day % 10 == 0 else price
            lines.append(f"2015-04-{day:02d} 00:00:00+00:00,{zone},small,Linux,{spot},0.4")
    history, machines = tmp_path / "history.csv", tmp_path / "machines.csv"
    history.write_text("\n".join(lines) + "\n")
    machines.write_text(MACHINES)
    asked = ("--prices", history, "--machines", machines, "--capacity", 10, "--doubt", 0)
    result = run(*asked, "--market", "[ab]/*", "--availability", 0.98)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "Not accepted: 0.98 of the time was missed in all of the history." in said
    assert "The best, which would not either, is planned for 0.9, at " in said
    assert ": there 0.9" in said
    after = run(*asked, "--market", "[ab]/*", "--availability", 0.98, "--check-window", 7)
    said = " ".join(after.stdout.split())
    assert after.exit_code == 1
    assert "missed after plans made like it of 7 days, in all of the history. The best, " in said
    assert "is planned for 0.99 (--extra-nines 0.30103), at " in said
    held = run(*asked, "--availability", 0.99999, "--format", "json")
    assert held.exit_code == 0, held.exception
    record = json.loads(held.stdout)
    assert record["accepted"] is True
    assert record["availability_in_history"] == 1.0
    assert [each.type.name for each in from_record(record).rented] == ["c/small"]


def test_what_windows_allow_is_said(market):
    """Cheapest plan that trailing windows bear out, where the one asked for misses them.

    Asked for as it is said, it is accepted, at the price and with the share that were said.
    """
    asked = (*market, "--capacity", 40, "--availability", 0.97, "--check-window", 7)
    result = run(*asked)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 1
    found = re.search(
        r"cheapest that would have had it is planned for 0.99 \(--extra-nines (0.477121)\), at "
        r"([0-9.]+) an hour: there ([0-9.]+) of the time",
        said,
    )
    assert found is not None, said
    again = run(*asked, "--extra-nines", found[1], "--format", "json")
    assert again.exit_code == 0
    record = json.loads(again.stdout)
    assert record["price_per_hour"] == pytest.approx(float(found[2]))
    assert record["availability_expected"] == pytest.approx(float(found[3]), abs=1e-4)
    assert float(found[3]) >= 0.97


def test_how_often():
    """The worst of model and checks leads; where the model is the worst, nothing is said of it."""
    words = how_often(1e-5, {"after A": 0.998, "in B": 0.9999, "in C": math.nan})
    assert words.startswith("0.99800 of the time, missing 18 h a year, as it was after A. By the")
    assert words.endswith("model it would be 0.9999900: the history does not bear that out.")
    assert how_often(0.002, {"after A": 0.999}) == "0.99800 of the time, missing 18 h a year."


def test_tiers(types, tmp_path):
    """Tiers: a plan each, how often all are up, what further nines cost; as words and as a page."""
    out = tmp_path / "out"
    arguments = ("--types", types, "--tier", "web=20", "--tier", "db=10", "--availability", 0.999)
    result = run(*arguments, "--format", "json", "--output", out)
    record = json.loads(result.stdout)
    assert [each["name"] for each in record["tiers"]] == ["web", "db"]
    assert record["availability"] >= 0.999
    prices = [each["price_per_hour"] for each in record["frontier"]]
    assert len(prices) > 4
    assert prices == sorted(prices)
    plan = json.loads((out / "plan.json").read_text())
    assert plan.items() <= record.items()
    assert "all tiers are up 0.999" in " ".join(run(*arguments).stdout.split())
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    for name in ("tiers", "plan-1", "plan-2", "capacities", "frontier"):
        assert f"{name}.csv" in page
        assert (out / f"{name}.csv").is_file()
    rows = csv.DictReader((out / "capacities.csv").read_text().splitlines())
    assert {row["tier"] for row in rows} == {"web", "db"}


def test_tiers_in_the_history_that_they_were_learned_from(market):
    """All tiers together are up no more often than each of them."""
    result = run(
        *market, "--tier", "a=20", "--tier", "b=10", "--availability", 0.9, "--format=json"
    )
    assert 0.8 < json.loads(result.stdout)["availability_in_history"] <= 1.0


@pytest.mark.parametrize(
    "options",
    [("--check-window", 7), ("--window", 7)],
    ids=lambda options: options[0],
)
def test_options_that_would_be_ignored(types, options):
    """What needs a history is refused without one."""
    with pytest.raises(InputError, match=f"'{options[0]}': needs price histories"):
        raise run("--types", types, "--capacity", 20, *options).exception


def test_tiers_are_not_checked_in_windows(market):
    """What is made for one service only is refused with tiers."""
    with pytest.raises(InputError, match="'--check-window': is not known of tiers"):
        raise run(*market, "--tier", "web=20", "--check-window", 7).exception


def test_learned_from_histories(market, tmp_path):
    """Histories: the plan, what it would have had, and windows checked."""
    out = tmp_path / "out"
    result = run(
        *market,
        "--capacity",
        40,
        "--availability",
        0.99,
        "--check-window",
        7,
        "--output",
        out,
        "--format",
        "json",
    )
    record = json.loads(result.stdout)
    assert result.exit_code == (not record["accepted"])
    plan = from_record(record)
    assert plan.availability >= 0.99
    assert all(each.type.price_per_unit_hour == pytest.approx(0.012) for each in plan.rented)
    assert 0.9 < record["availability_in_history"] <= 1.0
    assert {each["window"] for each in record["windows"]} == {"7 days", "oracle"}
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    assert "Does what was learned hold afterwards?" in page


def test_a_plan_that_was_made_before(market, types, tmp_path):
    """A plan is read back and held to histories; what it costs is what was planned."""
    out = tmp_path / "out"
    first = run(*market, "--capacity", 40, "--availability", 0.99, "--output", out, "--format=json")
    record = json.loads(first.stdout)
    again = run(*market, "--plan", out / "plan.json", "--format", "json")
    assert again.exit_code == 0, again.exception
    found = json.loads(again.stdout)
    assert from_record(found) == from_record(record)
    assert found["availability_in_history"] == record["availability_in_history"]
    (tmp_path / "bad.json").write_text("{}")
    for arguments, said in (
        ((*market, "--plan", tmp_path / "bad.json"), "is no plan"),
        ((*market, "--plan", tmp_path / "none.json"), "cannot be read"),
        ((*market, "--plan", out / "plan.json", "--capacity", 3), "'--capacity': the plan has"),
        (("--types", types, "--plan", out / "plan.json"), "'--plan': needs price histories"),
    ):
        with pytest.raises(InputError, match=said):
            raise run(*arguments).exception


def test_last_days_and_some_markets(market):
    """Only the last days of the markets that a pattern names; fitted shocks keep the target."""
    result = run(
        *market,
        "--market",
        "*/small",
        "--window",
        10,
        "--correlated",
        "--capacity",
        10,
        "--availability",
        0.95,
        "--format",
        "json",
    )
    assert result.exit_code == 0, result.exception
    plan = from_record(json.loads(result.stdout))
    assert {each.type.name for each in plan.rented} <= {"a/small", "b/small"}
    assert plan.model.endswith("states")
    assert plan.availability >= 0.95


def test_options_from_a_file(types, tmp_path):
    """A file gives the requirement; tiers as a list."""
    config = tmp_path / "cloud.toml"
    config.write_text(
        f'[transient]\ntypes = "{types}"\ncapacity = 20\navailability = 0.999\nformat = "json"\n'
    )
    record = json.loads(run("--config", config).stdout)
    assert record["price_per_hour"] == pytest.approx(8.7)
    config.write_text(f'[transient]\ntypes = "{types}"\ncapacity = "much"\n')
    error = run("--config", config).exception
    assert isinstance(error, InputError)
    assert (error.source, error.field, error.value) == (config, "capacity", "much")


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ("f,10,1.2,0.1", "availability", "1.2"),
        ("f,10,0.9,0", "price_per_unit_hour", "0.0"),
        ("f,10,0.9,-1", "price_per_unit_hour", "-1.0"),
        ("f,10,0.9,", "price_per_unit_hour", None),
        ("f,0,0.9,1", "capacity", "0.0"),
        ("f,ten,0.9,1", "capacity", "ten"),
        ("f,,0.9,1", "capacity", None),
        (",10,0.9,1", "name", None),
    ],
)
def test_bad_types(types, row, field, value):
    """A type that cannot be: the file, the line, the field and the value."""
    types.write_text(TYPES + row + "\n")
    error = run("--types", types, "--capacity", 20).exception
    assert isinstance(error, InputError)
    assert (str(error.source), error.line, error.field) == (str(types), 7, field)
    assert value is None or str(error.value) == value


def test_types_in_toml(tmp_path):
    """Types as tables, with prices of whole machines; a bad one is counted."""
    path = tmp_path / "types.toml"
    good = (
        '[[types]]\nname = "a"\ncapacity = 10\navailability = 0.95\nprice_per_hour = 2\n'
        "on_demand_price_per_hour = 10\n"
    )
    path.write_text(good)
    result = run("--types", path, "--capacity", 10, "--availability", 0.9, "--format", "json")
    assert json.loads(result.stdout)["on_demand_share"] == pytest.approx(0.2)
    path.write_text(good + '[[types]]\nname = "b"\ncapacity = 10\navailabilty = 1\n')
    error = run("--types", path, "--capacity", 10).exception
    assert isinstance(error, InputError)
    assert error.field == "types[2].availabilty"
    assert "availability" in str(error.expected)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--capacity", 20), "--types or --prices"),
        (("--types", "TYPES", "--prices", "HISTORY", "--capacity", 20), "--machines"),
        (("--types", "TYPES"), "--capacity"),
        (("--types", "TYPES", "--capacity", -1), "capacity"),
        (("--types", "TYPES", "--capacity", 20, "--availability", 1.0), "--availability"),
        (("--types", "TYPES", "--capacity", 20, "--availability", 0), "--availability.*above 0"),
        (("--types", "TYPES", "--capacity", 20, "--extra-nines", -1), "--extra-nines"),
        (("--types", "TYPES", "--capacity", 20, "--tier", "a=1"), "--tier"),
        (("--types", "TYPES", "--tier", "web"), "--tier"),
        (("--types", "TYPES", "--capacity", 20, "--on-demand-price", 0), "--on-demand-price"),
        (("--types", "nowhere.csv", "--capacity", 20), "nowhere.csv"),
    ],
)
def test_bad_input(types, market, arguments, said):
    """What cannot be is refused with the option or field."""
    words = {"TYPES": types, "HISTORY": market[1]}
    with pytest.raises(ForesailError, match=said):
        raise run(*(words.get(each, each) for each in arguments)).exception


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--market", "nothing*"), "--market"),
        (("--doubt", -1), "--doubt"),
        (("--check-window", 0), "days"),
        (("--check-window", 60), "first plan"),
        (("--window", -3), "'--window': no number of days"),
    ],
)
def test_bad_input_with_histories(market, arguments, said):
    """The same for what goes with histories."""
    with pytest.raises(ForesailError, match=said):
        raise run(*market, "--capacity", 20, "--availability", 0.9, *arguments).exception


def test_machines_without_capacity(market):
    """An instance type of the histories that the file of machines lacks is named."""
    machines = market[3]
    machines.write_text("instance_type,capacity\nsmall,10\n")
    with pytest.raises(InputError, match="large"):
        raise run(*market, "--capacity", 20).exception
