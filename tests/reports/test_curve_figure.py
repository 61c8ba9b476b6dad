"""Curves as they are drawn: values on their axes, marks, bands and levels."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from foresail.reports.curve_figure import Axis, Curve, curve_figure
from foresail.reports.style import named_styles
from reading_pages import drawn_values

X = np.array([1.0, 10.0, 100.0])
Y = np.array([3600.0, 7200.0, 0.5])


def drawn(*curves, log=False, **more):
    """The figure of these curves, across numbers and up durations."""
    across, up = Axis("x", log=True), Axis("y", "duration", log=log)
    table = pl.DataFrame({"x": X, "y": Y})
    return curve_figure("c", "Title", ["Said."], curves, across, up, table=table, **more)


def test_values_are_drawn_in_the_unit_of_their_axis():
    """Seconds as minutes where the axis says so; in words at the mouse."""
    (style,) = named_styles(["one"])
    figure = drawn(Curve(style, X, Y))
    (line,) = figure.traces
    assert figure.layout["yaxis"]["title"]["text"] == "y, minutes"
    assert drawn_values(line["x"]) == pytest.approx(X)
    assert drawn_values(line["y"]) == pytest.approx(Y / 60.0, rel=1e-6)
    assert line["customdata"][0].endswith("1 h")
    assert line["showlegend"]


def test_what_is_below_a_log_axis_lies_on_its_edge():
    """Half a second is drawn as one."""
    (style,) = named_styles(["one"])
    (line,) = drawn(Curve(style, X, Y), log=True).traces
    assert drawn_values(line["y"]) == pytest.approx([3600.0, 7200.0, 1.0])


def test_marks_stand_at_their_points_on_alternating_sides():
    """Each with its text, markup in it shown as it is written."""
    curves = [
        Curve(style, X, Y, [0, 2], ["<b>first</b>", "last"]) for style in named_styles(["a", "b"])
    ]
    marks = drawn(*curves).traces[1::2]
    assert [mark["textposition"] for mark in marks] == ["top center", "bottom center"]
    assert marks[0]["x"] == [1.0, 100.0]
    assert marks[0]["y"] == pytest.approx([60.0, 0.5 / 60.0])
    assert marks[0]["text"] == ["&lt;b&gt;first&lt;/b&gt;", "last"]


def test_a_band_goes_along_above_and_back_below():
    """There and back again around the line, in its unit, and not in the key."""
    (style,) = named_styles(["one"])
    band, _ = drawn(Curve(style, X, Y, low=Y / 2, high=Y * 2)).traces
    assert drawn_values(band["x"]) == pytest.approx([1, 10, 100, 100, 10, 1])
    expected = np.concatenate((Y * 2, Y[::-1] / 2)) / 3600.0
    assert drawn_values(band["y"]) == pytest.approx(expected, rel=1e-6)
    assert not band["showlegend"]


@pytest.mark.parametrize(("log", "at", "named_at"), [(False, 120.0, 120.0), (True, 7200.0, None)])
def test_levels_are_lines_with_a_name(log, at, named_at):
    """At the height on the axis; on a logarithmic one the name's place is a power."""
    (style,) = named_styles(["one"])
    layout = drawn(Curve(style, X, Y), log=log, level=(7200.0, "limit")).layout
    assert layout["shapes"][0]["y0"] == layout["shapes"][0]["y1"] == pytest.approx(at)
    expected = math.log10(7200.0) if named_at is None else named_at
    assert layout["annotations"][0]["y"] == pytest.approx(expected)
    assert layout["annotations"][0]["text"] == "limit"
