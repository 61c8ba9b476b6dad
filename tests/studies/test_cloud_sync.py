"""``foresail cloud sync`` as a user meets it."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.model.errors import ForesailError, InputError
from reading_pages import page_faults


def run(*arguments: object):
    return CliRunner().invoke(app, ["sync", *map(str, arguments)])


def test_table_has_the_published_maxima():
    """Without options: the standard models and their maxima, as published."""
    result = run()
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["on_demand", "10", "4.776", "2.094", "6", "3.089"] in rows
    assert ["fsp(dropped=k-1)", "14", "3.339", "0.419", "8", "10.774"] in rows


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("fsp", "fsp(dropped=k-1)"),
        ("fsp(replicas=2)", "fsp(dropped=k-1,replicas=2)"),
        ("partial", "partial(dropped=k/2)"),
        ("staleness", "staleness(intervals=10)"),
        ("replicas", "replicas(count=1)"),
        ("transient", "transient"),
    ],
)
def test_defaults_are_told(model, told):
    """What was modelled is told, not only what was asked for."""
    result = run("--workers", 4, "--model", model, "--format", "json")
    assert json.loads(result.stdout)["models"][0]["model"] == told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--speed-intervals", 3), "'--speed-intervals': changes nothing alone"),
        (("--workers", "1:100000000"), "expected 1 to 100000"),
    ],
)
def test_options_that_would_change_nothing_or_take_for_ever_are_refused(options, message):
    """The option is named, with what it needs."""
    result = run(*options)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_folder_that_cannot_be_made_is_said_first(tmp_path):
    """Before the answer, so that it is not taken for a success."""
    (tmp_path / "file").touch()
    result = run("--workers", "1,8", "--output", tmp_path / "file")
    assert result.stdout == ""
    assert isinstance(result.exception, InputError)


def test_json_and_report(tmp_path):
    """JSON has every number of workers; the page has its figures and a CSV for each."""
    result = run("--workers", "1,8", "--model", "fsp", "--format", "json", "--output", tmp_path)
    assert result.exit_code == 0
    (told,) = json.loads(result.stdout)["models"]
    assert told["workers"] == [1, 8]
    assert told["seconds"][1] == pytest.approx(2724.889, abs=1e-3)
    page = (tmp_path / "report.html").read_text()
    assert not page_faults(page, tmp_path)
    assert "fsp(dropped=k-1): fastest with 8 workers" in page
    for name in ("models", "speedup", "cost", "value"):
        rows = list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
        assert [row["workers"] for row in rows] == ["1", "8"]
        assert f"id='{name}'" in page or name == "models"


def test_drawn_speeds_have_intervals(tmp_path):
    """Drawn speeds: the same for the same seed, with the interval of their mean."""
    options = ("--workers", "4", "--model", "transient", "--barriers", 40, "--monte-carlo", 10)
    first, again = (run(*options, "--format", "json").stdout for _ in range(2))
    other = run(*options, "--format", "json", "--seed", 2).stdout
    assert first == again != other
    assert json.loads(first)["models"][0]["half_interval_seconds"][0] > 0.0
    assert run(*options, "--output", tmp_path).exit_code == 0
    assert "95 % interval" in (tmp_path / "report.html").read_text().replace("\u00a0", " ")


def test_options_from_a_file(tmp_path):
    """A table of the file gives options; the command line goes first."""
    config = tmp_path / "cloud.toml"
    config.write_text('[sync]\nworkers = "1:8"\nmodel = "fsp"\noutput-format = "json"\n')
    with pytest.raises(InputError, match="output-format"):
        raise run("--config", config).exception
    config.write_text('[sync]\nworkers = "1:8"\nmodel = ["fsp"]\nformat = "json"\n')
    (told,) = json.loads(run("--config", config).stdout)["models"]
    assert told["workers"] == list(range(1, 9))
    (told,) = json.loads(run("--config", config, "--workers", "3").stdout)["models"]
    assert told["workers"] == [3]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[sync]\nbarriers = 9.5\n", "barriers"),
        ("[sync]\nworker = '1:8'\n", "worker"),
        ("[waiting]\n", "sync"),
        ("[sync\n", None),
    ],
)
def test_bad_files(tmp_path, content, field):
    """A file that cannot be used is named, with the field."""
    config = tmp_path / "cloud.toml"
    config.write_text(content)
    error = run("--config", config).exception
    assert isinstance(error, InputError)
    assert error.source == config
    assert error.field == field


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workers", "0:3"), "--workers"),
        (("--workers", "many"), "--workers"),
        (("--model", "fps"), "fsp"),
        (("--model", "fsp(dropped=q)"), "dropped"),
        (("--model", "fsp(dropped=k)"), "all workers are dropped"),
        (("--model", "partial(dropped=k)"), "expected fewer than k"),
        (("--discount", "1.5"), "transient_discount"),
        (("--operations", "0"), "operations"),
        (("--operations", "1e-320"), "operations"),
        (("--network", "1e308"), "network"),
        (("--monte-carlo", "1"), "runs"),
        (("--lowest-speed", "0"), "lowest"),
    ],
)
def test_bad_input(arguments, said):
    """What cannot be is refused with the field and what was expected."""
    with pytest.raises(ForesailError, match=said):
        raise run(*arguments).exception
