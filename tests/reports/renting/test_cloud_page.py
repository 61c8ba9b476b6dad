"""Pages about renting: curves, levels, tables, and the files behind them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.reports.curve_figure import Axis, Curve, curve_figure, scale_of
from foresail.reports.figure import MissingFigure
from foresail.reports.renting.page import CloudPage, NumbersTable, as_document, write_cloud_page
from foresail.reports.style import named_styles

X = np.array([1.0, 2.0, 3.0])
Y = np.array([0.1, 1.0, 100.0])
TABLE = pl.DataFrame({"x": X, "y": Y})


def figure(*, log=False, names=("first", "second")):
    curves = [
        Curve(style, X, Y * (i + 1), [1], ["here"], low=Y * 0.5, high=Y * 3)
        for i, style in enumerate(named_styles(names))
    ]
    across, up = Axis("x"), Axis("y", log=log)
    level = (10.0, "a <level>")
    return curve_figure("curves", "How?", ["So."], curves, across, up, table=TABLE, level=level)


@pytest.mark.parametrize(("log", "height"), [(False, 10.0), (True, 1.0)])
def test_level_lies_where_it_is_said(log, height):
    """A level's line is at its value; its words at the logarithm, where the axis is one."""
    drawn = figure(log=log)
    assert drawn.layout["shapes"][0]["y0"] == 10.0
    assert drawn.layout["annotations"][0]["y"] == pytest.approx(height)
    assert drawn.layout["annotations"][0]["text"] == "a &lt;level&gt;"


def test_bands_lines_and_marks():
    """A band, a line and its marks for each curve; only lines are in the key."""
    traces = figure().traces
    assert [trace["mode"] for trace in traces] == ["lines", "lines", "markers+text"] * 2
    assert figure().legend == ["first", "second"]
    sides = [trace["textposition"] for trace in traces if "textposition" in trace]
    assert sides == ["top center", "bottom center"]


def page(parts):
    return CloudPage("Title <of> it", "Asked.", ["One.", "Two."], parts, ["Rests on this."])


def test_page_and_files(tmp_path):
    """Words first, escaped; a table, a figure with its key, what is missing; a CSV for each."""
    table = NumbersTable("table", "Numbers", ["name", "value"], [["a<b", "3 min"]], TABLE, "Note.")
    missing = MissingFigure("Not this", "Too little data.", "More would do.")
    path = write_cloud_page(page([table, figure(), missing]), tmp_path / "out", command="run <it>")
    text = path.read_text()
    assert "<h1>Title &lt;of&gt; it</h1>" in text
    assert text.index("One.") < text.index("a&lt;b") < text.index("id='curves'")
    assert "3\\u00a0min" in text or "3\u00a0min" in text
    assert text.count("<ul class='key'") == 1
    assert "Too little data." in text
    assert "run &lt;it&gt;" in text
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "curves.csv",
        "report.html",
        "table.csv",
    ]
    assert pl.read_csv(tmp_path / "out" / "table.csv")["y"].to_list() == Y.tolist()


def test_single_curve_needs_no_key():
    """One line is named by its figure."""
    assert "class='key'" not in as_document(page([figure(names=("only",))]))


def test_folder_that_cannot_be_made(tmp_path):
    """A file where the folder should be: refused by name."""
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="out"):
        write_cloud_page(page([]), tmp_path / "out")


def test_said_values_of_shares():
    """What hovers over a point is said as people say it."""
    (style,) = named_styles(["s"])
    up = scale_of("share", "share", Y / 100, log=True)
    axes = Axis("x"), Axis("share", "share", log=True)
    drawn = curve_figure("c", "t", ["f"], [Curve(style, X, Y / 100)], *axes, table=TABLE)
    assert drawn.traces[0]["customdata"] == ["1: 0.1 %", "2: 1 %", "3: 100 %"]
    assert math.isclose(up.drawn(np.array([0.5]))[0], 0.5)
