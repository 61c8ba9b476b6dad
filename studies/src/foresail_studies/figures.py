"""The pictures of a study: a measure against the study's axis, or by system, with intervals."""

from __future__ import annotations

import math
import re

import polars as pl

from foresail.model.words import number
from foresail.reports.figure import Figure
from foresail.reports.plots import PlottedTable, drawn, plot_of
from foresail.reports.style import PolicyStyle, named_styles
from foresail_studies.study import Measure, Study


def figures_of(study: Study, summary: pl.DataFrame) -> tuple[Figure, ...]:
    """A figure per group and drawn measure that has any value."""
    figures = []
    for group in study.groups:
        for name in study.drawn:
            rows = summary.filter(pl.col("group") == group, pl.col("measure") == name)
            if rows.height:
                figures.append(_figure(study, group, study.measure(name), rows))
    return tuple(figures)


def _figure(study: Study, group: str, measure: Measure, rows: pl.DataFrame) -> Figure:
    styles = [
        style
        for style in named_styles(study.systems)
        if style.policy in set(rows["system"].to_list())
    ]
    subject = f"{measure.label}, {group}" if len(study.groups) > 1 else measure.label
    along = rows["x"].null_count() == 0
    across = ("x", "mean", study.axis) if along else ("system", "mean", "system")
    plot = plot_of(
        "band" if along else "rows",
        *across,
        measure.label,
        x_kind="number" if along else "category",
        y_kind=measure.kind,
    )
    most = pl.max_horizontal("mean", pl.lit(1.0 if measure.kind == "share" else math.inf))
    reach = rows.with_columns(
        low=pl.coalesce("low", "mean").clip(pl.min_horizontal("mean", 0.0)),
        high=pl.coalesce("high", "mean").clip(upper_bound=most),
    )
    panel = [
        PlottedTable(style, plot, reach.filter(pl.col("system") == style.policy).sort("x"))
        for style in styles
    ]
    return drawn(
        _stem(f"{group}-{measure.name}" if len(study.groups) > 1 else measure.name),
        subject[0].upper() + subject[1:],
        [_finding(measure, rows, style) for style in styles],
        [panel],
        table=rows,
        note=f"Means over {_seeds(rows)} seeds; bands are 95 % intervals (Student's t)."
        if along
        else f"Means over {_seeds(rows)} seeds; ± is the 95 % interval (Student's t).",
        height=380 if along else 100 + 34 * len(styles),
    )


def _finding(measure: Measure, rows: pl.DataFrame, style: PolicyStyle) -> str:
    part = rows.filter(pl.col("system") == style.policy).sort("x")
    if part["x"].null_count():
        mean, high = part["mean"][0], part["high"][0]
        reach = "" if high is None else f" ± {measure.said(high - mean)}"
        return f"{style.label}: {measure.said(mean)}{reach}."
    said = ", ".join(
        f"{measure.said(mean)} at {number(x)}" for x, mean in part.select("x", "mean").iter_rows()
    )
    return f"{style.label}: {said}."


def _seeds(rows: pl.DataFrame) -> str:
    counts = sorted(set(rows["seeds"].to_list()))
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _stem(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
