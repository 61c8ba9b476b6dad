"""How results are printed for programs."""

import json
import math

import polars as pl

from foresail.cli.formats import plain_rows, print_json


def test_rows_of_a_table_are_json_whatever_they_hold(capsys):
    """Strict readers take it: null stands where a number is none, or is infinite."""
    table = pl.DataFrame({"log": ["Zürich", "b", "c"], "ratio": [math.inf, math.nan, 0.5]})
    print_json(plain_rows(table))
    printed = capsys.readouterr().out
    assert "Zürich" in printed
    assert [each["ratio"] for each in json.loads(printed)] == [None, None, 0.5]
