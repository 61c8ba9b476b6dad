"""The numbers that figures of a comparison draw, against schedules worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from foresail.reports.comparison.change_figures import relative_metrics, size_map
from foresail.reports.comparison.job_figures import (
    prediction_error,
    slowdown_distribution,
    wait_distribution,
)
from foresail.reports.comparison.time_figures import use_over_time
from foresail.reports.comparison.view import view_of
from foresail.reports.figure import Figure
from made_schedules import made_schedule
from reading_pages import drawn_values


def schedule_of(waits, runtimes, policy="easy", **columns):
    """Jobs that all come at once, one cpu each, with these waits and runtimes (seconds)."""
    starts = np.asarray(waits, dtype=float)
    times = {"submit_seconds": np.zeros(len(starts)), "start_seconds": starts}
    return made_schedule(
        {**times, "end_seconds": starts + np.asarray(runtimes), **columns}, policy=policy
    )


def named(figure, name):
    """The trace of this name."""
    assert isinstance(figure, Figure)
    return next(trace for trace in figure.traces if trace["name"] == name)


def test_use_and_queue_over_time():
    """One of four cpus for a minute, then three for another; two jobs wait in the first."""
    figure = use_over_time(view_of([schedule_of([0, 60, 60], [120, 60, 60])]))
    used, queued, cells = figure.traces
    halves = np.array_split(drawn_values(used["y"]), 2)
    assert [set(half) for half in halves] == [{0.25}, {0.75}]
    assert [set(half) for half in np.array_split(drawn_values(queued["y"]), 2)] == [{2.0}, {0.0}]
    assert drawn_values(used["x"])[[0, -1]] == pytest.approx([0.25, 119.75])
    shares = drawn_values(cells["z"])
    assert shares.mean() == pytest.approx(50.0)
    assert shares[0].min() == 100.0
    assert shares[-1].max() == 0.0


def test_cumulative_shares_of_waits_and_slowdowns():
    """Of four jobs one does not wait, the others 10, 100 and 1,000 s; runtimes are 100 s."""
    view = view_of([schedule_of([0, 10, 100, 1000], [100] * 4)])
    (waits,) = wait_distribution(view).traces
    x, y = drawn_values(waits["x"]), drawn_values(waits["y"])
    for seconds, share in ((5.0, 0.25), (50.0, 0.5), (500.0, 0.75), (1000.0, 1.0)):
        assert y[np.searchsorted(x, seconds * (1 - 1e-6))] == pytest.approx(share)
    (slowed,) = slowdown_distribution(view).traces
    x, y = drawn_values(slowed["x"]), drawn_values(slowed["y"])
    for factor, share in ((1.0, 0.25), (1.5, 0.5), (3.0, 0.75), (11.0, 1.0)):
        assert y[np.searchsorted(x, factor * (1 - 1e-6))] == pytest.approx(share)


def test_metrics_relative_to_the_baseline():
    """Mean waits of 100 and 25 s are a ratio of a quarter, where the axis says mean wait."""
    before, after = schedule_of([0, 200], [100] * 2), schedule_of([0, 50], [100] * 2, "other")
    figure = relative_metrics(view_of([before, after]))
    labels = figure.layout["yaxis"]["ticktext"]
    (place,) = [at for at, words in enumerate(labels) if words.startswith("mean wait")]
    trace = named(figure, "other")
    assert trace["x"][trace["y"].index(place)] == pytest.approx(0.25)
    row = figure.table.row(by_predicate=pl.col("metric") == "mean_wait_seconds", named=True)
    assert (row["baseline"], row["value"], row["ratio"]) == (100.0, 25.0, 0.25)


def test_who_gains_by_size():
    """Ten narrow jobs whose median wait goes from 240 to 15 s, plus a minute: a quarter."""
    before, after = schedule_of([240] * 10, [100] * 10), schedule_of([15] * 10, [100] * 10, "b")
    (cells,) = size_map(view_of([before, after])).traces
    drawn = [value for line in cells["z"] for value in line if value is not None]
    assert drawn == [pytest.approx(math.log2(75 / 300))]
    assert [text for line in cells["text"] for text in line if text] == ["0.25×"]


def test_few_jobs_have_no_ratio():
    """Nine are too few to say who gains."""
    before, after = schedule_of([240] * 9, [100] * 9), schedule_of([15] * 9, [100] * 9, "b")
    (cells,) = size_map(view_of([before, after])).traces
    assert all(value is None for line in cells["z"] for value in line)
    assert [text for line in cells["text"] for text in line if text] == ["few"]


def test_prediction_errors_by_factor():
    """Two of four predictions are right, one ten times too long, one a hundred times too short."""
    predicted = [100.0, 100.0, 1000.0, 1.0]
    figure = prediction_error(
        view_of([schedule_of([0] * 4, [100] * 4, predicted_seconds=predicted)])
    )
    (trace,) = figure.traces
    powers = np.log10(drawn_values(trace["x"])) + 0.05
    shares = dict(zip(powers.round(5).tolist(), drawn_values(trace["y"]).tolist(), strict=True))
    assert {at: share for at, share in shares.items() if share} == {0.0: 0.5, 1.0: 0.25, -2.0: 0.25}
    assert "25 % are too short" in figure.findings[0].replace("\u00a0", " ")
    assert figure.table["jobs"].sum() == 4


def test_few_curves_are_named_where_they_are_drawn():
    """Two that are apart have their names at them and no key; of two alike, a key."""
    far = [schedule_of([0, 10, 100], [100] * 3), schedule_of([900] * 3, [100] * 3, policy="fcfs")]
    figure = wait_distribution(view_of(far))
    high, low = figure.layout["annotations"]
    assert (high["text"], high["yanchor"]) == ("easy", "bottom")
    assert (low["text"], low["yanchor"]) == ("fcfs", "top")
    assert high["y"] > low["y"]
    assert not any(trace["showlegend"] for trace in figure.traces)
    alike = [schedule_of([0, 10, 100], [100] * 3, policy=name) for name in ("easy", "fcfs")]
    figure = wait_distribution(view_of(alike))
    assert figure.layout["annotations"] == []
    assert all(trace["showlegend"] for trace in figure.traces)
