"""``foresail cloud sync`` as a user meets it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.model.errors import ForesailError


def run(*arguments: object):
    return CliRunner().invoke(app, ["sync", *map(str, arguments)])


def test_table_has_the_published_maxima():
    """Without options: the standard models and their maxima, as published."""
    result = run()
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["on_demand", "10", "4.776", "2.094", "6", "3.089"] in rows
    assert ["fsp(dropped=k-1)", "14", "3.339", "0.419", "8", "10.774"] in rows


def test_json():
    """Has every number of workers, and the best of them."""
    result = run("--workers", "1,8,14", "--model", "fsp", "--format", "json")
    assert result.exit_code == 0
    (told,) = json.loads(result.stdout)["models"]
    assert told["workers"] == [1, 8, 14]
    assert told["seconds"][1] == pytest.approx(2724.889, abs=1e-3)
    assert (told["best_value_workers"], told["fastest_workers"]) == (8, 14)


def test_drawn_speeds():
    """Take longer than expected ones, and the same at every run."""
    options = ("--workers", "4", "--model", "transient", "--barriers", 40, "--format", "json")
    expected = run(*options).stdout
    first, again = (run(*options, "--monte-carlo", 10).stdout for _ in range(2))
    assert first == again
    seconds = [json.loads(each)["models"][0]["seconds"][0] for each in (expected, first)]
    assert seconds[0] < seconds[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--workers", "0:3"), "--workers"),
        (("--workers", "many"), "--workers"),
        (("--workers", "1:100000000"), "expected 1 to 100000"),
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
