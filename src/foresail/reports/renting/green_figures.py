"""Pictures of green hours: savings against delay, the day, and the course of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from foresail.cloud.waiting.carbon import GreenMetrics
from foresail.cloud.waiting.green_hours import GreenAnswer, GreenCourse
from foresail.model.arrays import Floats
from foresail.model.words import duration, number, percent
from foresail.reports.curve_figure import Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.plot_axes import scale_of
from foresail.reports.renting.green_tables import points_table
from foresail.reports.renting.green_words import GreenCircumstances
from foresail.reports.style import named_styles

_SHOWN_HOURS: Final = 7 * 24
_INTENSITY: Final = "intensity"
_AT_ONCE: Final = "cores, all start at once"
_WAITING: Final = "cores, waiting for green hours"


def saving_figure(answer: GreenAnswer, asked: GreenCircumstances) -> Figure:
    """CO2 saved against the mean delay, with runtimes known and believed."""
    kinds: dict[str, Sequence[GreenMetrics]] = {
        "runtimes known": [point.known for point in answer.points]
    }
    kinds[f"runtimes {asked.runtimes}"] = [point.believed for point in answer.points]
    words = [duration(point.patience_seconds) for point in answer.points]
    curves, findings = [], []
    for style, (name, metrics) in zip(named_styles(list(kinds)), kinds.items(), strict=True):
        waits = np.array([each.mean_wait_seconds for each in metrics])
        saved = np.array([each.saved for each in metrics])
        believed = metrics is kinds[f"runtimes {asked.runtimes}"]
        sure = [point.certainty for point in answer.points if believed and point.certainty]
        curves.append(
            Curve(
                style,
                waits,
                saved,
                list(range(1, waits.size)) if believed else (),
                words[1:] if believed else (),
                low=np.array([each.saved[0] for each in sure]) if sure else None,
                high=np.array([each.saved[1] for each in sure]) if sure else None,
            )
        )
        findings.append(
            f"{name}: {percent(float(saved[-1]))} saved for {duration(float(waits[-1]))} of mean "
            f"delay, with {words[-1]} of patience."
        )
    across = scale_of("mean delay", "duration", np.concatenate([c.x for c in curves]), log=False)
    drawn = [each for c in curves for each in (c.y, c.low, c.high) if each is not None]
    up = scale_of("CO2 saved", "share", np.concatenate(drawn), log=False)
    if min(float(each.min()) for each in drawn) < 0.0:
        up.axis["rangemode"] = "normal"
    return curve_figure(
        "saving",
        "What does the delay buy?",
        findings,
        curves,
        across,
        up,
        table=points_table(answer),
        note="A point for each patience, which stands beside it."
        + (" Band: 95 % range." if answer.blocks else ""),
    )


def day_figure(course: GreenCourse, asked: GreenCircumstances) -> Figure:
    """Means by hour of the day."""
    hours = np.arange(24.0)
    columns = {
        name: course.by_hour_of_day(column)
        for name, column in zip(
            (_INTENSITY, _AT_ONCE, _WAITING),
            (course.grams_per_kwh, course.cores_at_once, course.cores_waiting),
            strict=True,
        )
    }
    label = "hour of the day, UTC" if asked.dated else "hour of the log's day"
    table = pl.DataFrame(
        {
            "hour": hours,
            "grams_per_kwh": columns[_INTENSITY],
            "cores_at_once": columns[_AT_ONCE],
            "cores_waiting": columns[_WAITING],
        }
    )
    curves, findings = _relative(hours, columns, course)
    return curve_figure(
        "day",
        "At what hours does work run?",
        findings,
        curves,
        scale_of(label, "hour", hours, log=False),
        scale_of(
            "relative to the mean", "number", np.concatenate([c.y for c in curves]), log=False
        ),
        table=table,
        note="Waiting: up to the longest patience.",
        level=(1.0, ""),
    )


def course_figure(course: GreenCourse) -> Figure:
    """The week with most work, or all of it where it is shorter."""
    begins = course.edges_seconds[:-1]
    work = np.concatenate([[0.0], np.cumsum(course.cores_at_once)])
    first = (
        int(np.argmax(work[_SHOWN_HOURS:] - work[:-_SHOWN_HOURS]))
        if work[_SHOWN_HOURS:].size
        else 0
    )
    shown = slice(first, first + _SHOWN_HOURS)
    days = begins[shown] / 86400.0
    columns = {
        _INTENSITY: course.grams_per_kwh[shown],
        _AT_ONCE: course.cores_at_once[shown],
        _WAITING: course.cores_waiting[shown],
    }
    table = pl.DataFrame(
        {
            "begin_seconds": begins,
            "end_seconds": course.edges_seconds[1:],
            "grams_per_kwh": course.grams_per_kwh,
            "cores_at_once": course.cores_at_once,
            "cores_waiting": course.cores_waiting,
        }
    )
    curves, findings = _relative(days, columns, course)
    across = scale_of("days from the log's origin", "number", days, log=False)
    across.axis["rangemode"] = "normal"
    return curve_figure(
        "course",
        "How do intensity and work run, hour by hour?",
        findings,
        curves,
        across,
        scale_of(
            "relative to the mean", "number", np.concatenate([c.y for c in curves]), log=False
        ),
        table=table,
        note=""
        if begins.size <= _SHOWN_HOURS
        else "The week with most work; the CSV has all hours.",
        level=(1.0, ""),
    )


def _relative(
    x: Floats, columns: dict[str, Floats], course: GreenCourse
) -> tuple[list[Curve], list[str]]:
    """Columns over the means of the whole course: of the intensity, and of the cores at work."""
    length = np.diff(course.edges_seconds)
    curves, findings = [], []
    for style, (name, column) in zip(named_styles(list(columns)), columns.items(), strict=True):
        whole = course.grams_per_kwh if name == _INTENSITY else course.cores_at_once
        mean = float(np.average(whole, weights=length))
        known = np.isfinite(column)
        curves.append(Curve(style, x[known], column[known] / (mean or 1.0)))
        findings.append(
            f"{name}: from {number(float(column[known].min()))} to "
            f"{number(float(column[known].max()))}; the mean of the log is {number(mean)}."
        )
    return curves, findings
