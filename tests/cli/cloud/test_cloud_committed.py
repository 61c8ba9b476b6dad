"""What a catalogue says is committed already, as ``foresail cloud advise`` counts it."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

from foresail.cli.cloud import app

PRICES = """
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
instance_type = "c8"
cores = 8
memory_gib = 32
on_demand = 0.40
reserved_3y = 0.15
[[commitment]]
instance = "c4"
count = 3
price_per_hour = 0.1
until = 2027-12-31
[[commitment]]
instance = "c8"
count = 1
"""


def advised(path, *arguments):
    command = ["advise", str(path), "--runtimes", "known", "--wait-limit", "4h"]
    return CliRunner().invoke(app, [*command, "--short", "3min", *map(str, arguments)])


def test_the_advice_begins_with_what_is_committed(tmp_path):
    """The type of most cores is the node, and today's; others are named as not counted."""
    random = np.random.default_rng(3)
    submit = np.sort(random.random(400) * 40 * 86_400).astype(int)
    lines = [
        f"{at + 1} {s} 0 {r} 4 -1 -1 4 200000 -1 1 1 1 1 1 1 -1 -1 -1"
        for at, (s, r) in enumerate(zip(submit, random.integers(20_000, 90_000, 400), strict=True))
    ]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 256\n" + "\n".join(lines) + "\n")
    prices = tmp_path / "own.toml"
    prices.write_text(PRICES)
    result = advised(log, "--prices", prices)
    assert result.exit_code == 0, result.exception
    said = " ".join(result.stdout.split())
    assert said.startswith("You have 3 nodes c4 (until 2027-12-31). ")
    assert "Today's nodes are those that are committed to." in said
    assert "Commitments to c8 are not counted." in said
    record = json.loads(advised(log, "--prices", prices, "--format", "json").stdout)
    nodes = {each["what"]: each["nodes"] for each in record["compared"]}
    assert nodes["today"] == 3
    assert nodes["advised"] >= 3
    # Who never waits has those of both types from the first day on.
    at_risk = next(each for each in record["no_waiting"] if each["what"].endswith("foreseen"))
    assert at_risk["nodes"] >= (3 * 4 + 8) / 4
