"""``foresail cloud buy`` as a user meets it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.cli.main import main
from foresail.model.errors import InputError, UnknownNameError
from foresail.traces.folder import write_folder
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from reading_pages import page_faults

DAY = 86400.0


def written(path, submit, runtime, cores):
    lines = ["; MaxProcs: 256", "; MaxNodes: 256"]
    lines += [
        f"{at + 1} {s} 0 {r} {c} -1 -1 {c} 200000 -1 1 1 1 1 1 -1 -1 -1"
        for at, (s, r, c) in enumerate(zip(submit, runtime, cores, strict=True))
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path):
    """Eight weeks of some twenty jobs a day, of 1 to 16 cores."""
    random = np.random.default_rng(2)
    count = 1200
    return written(
        tmp_path / "log.swf",
        np.sort(random.random(count) * 56.0 * DAY).astype(int),
        np.exp(random.normal(8.5, 1.5, count)).clip(60.0, 400_000.0).astype(int),
        2 ** random.integers(0, 5, count),
    )


def run(*arguments: object):
    return CliRunner().invoke(app, ["buy", *map(str, arguments)])


def told(*arguments: object):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_advice_first(log, tmp_path):
    """What to reserve comes first, then hindsight and how the log was stretched."""
    out = tmp_path / "out"
    result = run(log, "--provider", "microsoft", "--output", out)
    assert result.exit_code == 0, result.exception
    said = flat(result.stdout)
    assert said.startswith("Reserve ")
    assert "In hindsight nothing could cost less than" in said
    assert "shorter than the 3 years that are planned for: it is assumed to repeat" in said
    page = (out / "report.html").read_text()
    assert not page_faults(page, out)
    names = ("costs", "reserve", "demand", "options", "forecast-error")
    for name in names:
        assert f"{name}.csv" in page
        assert len((out / f"{name}.csv").read_text().splitlines()) > 1
    rows = list(csv.DictReader((out / "demand.csv").read_text().splitlines()))
    for row in rows:
        level, cores = float(row["level"]), float(row["mean"])
        assert 0.0 <= float(row["below_level"]) <= min(level, cores) + 1e-9
        assert float(row["highest"]) >= cores - 1e-9


def test_numbers_agree(log):
    """The optimum is the cheapest; demand is all used; an error of the forecast only costs."""
    record = told(log, "--provider", "amazon", "--forecast-error=-0.5,0,0.5")
    costs = {each["policy"]: each["cost"] for each in record["costs"]}
    assert costs["optimum"] == min(costs.values())
    assert sum(each["share"] for each in record["options"]) == pytest.approx(1.0)
    errors = {each["error"]: each["cost"] for each in record["by_demand_error"]}
    assert errors[0.0] == pytest.approx(costs["optimum"])
    assert set(errors) == {-0.5, 0.0, 0.5}
    assert min(errors.values()) >= costs["optimum"] * (1.0 - 1e-9)
    share = record["first_year_share"]["cores"]
    assert share["q05"] <= share["expected"] <= share["q95"]


def test_risk(log):
    """Who takes less risk reserves no more; machines are no more than the amounts."""
    amounts = []
    for risk in (0.02, 0.4):
        record = told(log, "--risk", risk, "--without-transient", "--provider", "microsoft")
        assert all(each["option"] != "transient" for each in record["options"])
        units = record["reserve_units"]["cores"]
        amounts.append(sum(units.values()))
        cores = sum(
            int(each["machine"].split("-")[1]) * each["count"] for each in record["reserve"]
        )
        assert amounts[-1] - 2.0 < cores <= amounts[-1]
    assert 0.0 < amounts[0] <= amounts[1]


def test_lives_of_transient_machines(log):
    """Machines that live longer make transient capacity cheaper, and the optimum with it."""
    short, long = (
        next(
            each["share"]
            for each in told(log, "--provider", "microsoft", "--lifetime", hours)["costs"]
            if each["policy"] == "optimum"
        )
        for hours in (6, 1000)
    )
    assert long < short


def test_short_logs(log, tmp_path):
    """A log shorter than a commitment may be refused; one job is enough for an answer."""
    with pytest.raises(InputError, match=r"'--short-log'.*--short-log repeat .* 1095 days"):
        raise run(log, "--short-log", "refuse").exception
    one = written(tmp_path / "one.swf", [0], [7200], [4])
    result = run(one, "--output", tmp_path / "one")
    assert result.exit_code == 0, result.exception
    assert "Reserve" in result.stdout


OWN = """
name = "own"
currency = "EUR"
date = 2026-03-01
[[offer]]
instance_type = "c4"
cores = 4
memory_gib = 16
on_demand = 0.20
reserved_3y = 0.08
[[offer]]
instance_type = "g8"
cores = 8
memory_gib = 32
gpus = 1
on_demand = 1.4
reserved_3y = 0.7
"""
HAVE = """
[[commitment]]
instance = "c4"
count = 3
price_per_hour = 0.1
until = 2027-12-31
"""


def test_what_is_committed_is_counted(log, tmp_path):
    """The answer says what one has, until when; less is bought, and it costs less."""
    bare, own = tmp_path / "bare.toml", tmp_path / "own.toml"
    bare.write_text(OWN)
    own.write_text(OWN + HAVE)
    result = run(log, "--prices", own, "--types", "c*", "--output", tmp_path / "out")
    said = flat(result.stdout)
    assert said.startswith("You have 3 c4 until 2027-12-31. Beyond that reserve ")
    assert "What is committed costs" in said
    assert "committed or reserved" in (tmp_path / "out" / "report.html").read_text()
    without, having = (told(log, "--prices", path, "--types", "c*") for path in (bare, own))
    assert having["committed"] == [
        {"machine": "c4", "count": 3, "until": "2027-12-31", "price_per_hour": 0.1}
    ]
    cores = [sum(each["reserve_units"]["cores"].values()) for each in (without, having)]
    assert cores[1] < cores[0]
    assert having["costs"][-1]["cost"] < without["costs"][-1]["cost"]
    other = run(log, "--prices", own, "--types", "g8")
    assert "not counted: commitments to c4, which --types leaves out" in other.stderr


def test_gpus_are_bought(log, tmp_path):
    """A log that asks for them, at prices that have them; and at prices that have not."""
    prices = tmp_path / "own.toml"
    prices.write_text(OWN)
    at = np.arange(600.0)
    table = jobs_table(
        {
            "job_id": [f"{number:.0f}" for number in at],
            "submit_seconds": 3600.0 * at,
            "runtime_seconds": 7200.0 + 60.0 * (at % 50),
            "tasks": [1] * 600,
            "cpus_per_task": [2.0] * 600,
            "gpus_per_task": at % 3,
        }
    )
    gpus = tmp_path / "gpus"
    write_folder(Workload(table, WorkloadMeta("made", "made")), gpus)
    record = told(gpus, "--prices", prices, "--amounts", "of-machines")
    assert record["counted"] == "GPUs"
    assert {each["machine"] for each in record["reserve"]} == {"g8"}
    result = run(gpus, "--prices", prices)
    assert "GPU hours" in result.stdout
    with pytest.raises(InputError, match=r"no machine with GPUs.*400 of 600 jobs.*drop_gpus"):
        raise run(gpus).exception
    assert told(gpus, "--filter", "drop_gpus")["counted"] == "cores"


def test_options_from_a_file(log, tmp_path):
    """A file gives provider and risk."""
    config = tmp_path / "cloud.toml"
    config.write_text('[buy]\nprovider = "google"\nrisk = 0.3\nformat = "json"\n')
    record = json.loads(run(log, "--config", config).stdout)
    assert (record["provider"], record["risk"]) == ("google", 0.3)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--risk", "0"), "--risk"),
        (("--growth-spread", "1e11"), "--growth-spread"),
        (("--risk", "1"), "--risk"),
        (("--growth", "0"), "--growth"),
        (("--growth-spread=-1",), "--growth-spread"),
        (("--forecast-error=-2",), "--forecast-error"),
        (("--forecast-error", "much"), "--forecast-error"),
        (("--lifetime", "0"), "--lifetime"),
        (("--prices", "ec2-2017", "--lifetime", "5"), "--lifetime"),
        (("--without-transient", "--lifetime", "5"), "--without-transient"),
    ],
    ids=lambda each: "-".join(each).strip("-") if isinstance(each, tuple) else "",
)
def test_bad_options(log, arguments, field):
    """What is out of range is named."""
    error = run(log, *arguments).exception
    assert isinstance(error, InputError)
    assert error.field == field


def test_unknown_names(log, tmp_path):
    """Providers and catalogues by a wrong name; several regions without one named."""
    with pytest.raises(UnknownNameError, match="google"):
        raise run(log, "--provider", "goggle").exception
    with pytest.raises(UnknownNameError, match="thesis"):
        raise run(log, "--prices", "thesys").exception
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "instance_type,region,cores,memory_gib,on_demand,currency,date,reserved_1y\n"
        "a,east,4,16,0.2,USD,2024-01-01,0.1\na,west,4,16,0.3,USD,2024-01-01,0.1\n"
    )
    error = run(log, "--prices", prices).exception
    assert isinstance(error, InputError)
    assert error.field == "--region"
    assert "east, west" in str(error)
    assert told(log, "--prices", f"table:{prices}", "--region", "west")["reserve"]


def test_no_cores(tmp_path, monkeypatch, capsys):
    """A log whose jobs have neither cores nor runtimes: one line, and status 2."""
    path = tmp_path / "empty.swf"
    path.write_text("; MaxProcs: 4\n1 0 0 -1 -1 -1 -1 -1 -1 -1 1 1 1 1 1 -1 -1 -1\n")
    monkeypatch.setattr("sys.argv", ["foresail", "cloud", "buy", str(path)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "no jobs" in capsys.readouterr().err.splitlines()[-1]
