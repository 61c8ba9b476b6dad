"""``foresail cloud waiting --customised``: machines of just what jobs ask for."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app
from foresail.model.errors import InputError


def log_of(path, kibibytes):
    """Ten days of jobs of three cores, each with so much memory per core."""
    lines = ["; MaxProcs: 64", "; MaxNodes: 64"]
    lines += [
        f"{at + 1} {at * 2000} 0 7000 3 -1 -1 3 43200 {kibibytes} 1 1 1 1 1 -1 -1 -1"
        for at in range(400)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(log, *options):
    small = ("--machine", "standard-8", "--fixed", "2", "--format", "json")
    return CliRunner().invoke(
        app, ["waiting", str(log), *small, "--policy", "no-jobs-wait", *options]
    )


def test_jobs_pay_for_what_they_ask_for(tmp_path):
    """A job of 3 cores and 3 GiB, on demand: not 4 cores with 16 GiB."""
    log = log_of(tmp_path / "log.swf", 1024 * 1024)
    plain, own = (
        json.loads(run(log, *options).stdout)["advised"]["on_demand_cost"]
        for options in ((), ("--customised",))
    )
    assert own == pytest.approx(plain * (3 * 0.65097 + 3 / 4 * 0.34903) / 4, rel=0.01)


def test_memory_has_to_be_known(tmp_path):
    """Or there is no price."""
    found = run(log_of(tmp_path / "log.swf", -1), "--customised")
    assert isinstance(found.exception, InputError)
    assert "how much memory" in str(found.exception)


def test_a_formula_knows_no_memory():
    """Nothing is customised without a log."""
    found = CliRunner().invoke(app, ["waiting", "--model", "0.2,500s", "--customised"])
    assert "formula" in str(found.exception)
