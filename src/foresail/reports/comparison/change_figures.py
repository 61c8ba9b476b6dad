"""Was the change worth it, and for whom: metrics against the baseline, and who gains by size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from foresail.metrics.comparison import Change, Metric
from foresail.metrics.statistics import (
    RUNTIME_LABELS,
    width_bounds,
    width_labels,
    with_size_classes,
)
from foresail.model.words import count, duration, number, percent
from foresail.reports import style as looks
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure

METRIC_WORDS: Final[dict[Metric, str]] = {
    "average_bounded_slowdown": "average bounded slowdown",
    "p99_bounded_slowdown": "99 % bounded slowdown",
    "mean_wait_seconds": "mean wait",
    "median_wait_seconds": "median wait",
    "p90_wait_seconds": "90 % wait",
    "p99_wait_seconds": "99 % wait",
    "max_wait_seconds": "longest wait",
    "mean_flow_seconds": "mean time in system",
}

_MOST_MAPS: Final = 3
_FEWEST_JOBS: Final = 10
_GRACE_SECONDS: Final = 60.0
_ONE_POLICY: Final = MissingFigure(
    "Was the change worth it?",
    "There is one policy only, so there is nothing to compare it with.",
    "Replay the same log under another policy to see who gains and who pays.",
)


_NO_WAITS: Final = MissingFigure(
    "Was the change worth it?",
    "No job waited under any of the policies, so they are all the same.",
    "A busier log, or fewer processors, would tell them apart.",
)
_NO_JOBS: Final = MissingFigure(
    "Was the change worth it?",
    "No job has started under one of the policies.",
    "Replay a log that has jobs.",
)


def said(metric: str, value: float) -> str:
    """A metric's value with its unit."""
    return duration(value) if metric.endswith("_seconds") else number(value)


def relative_metrics(view: ReportView) -> Figure | MissingFigure:
    """Dot and interval of each metric of each policy relative to the baseline."""
    if len(view.schedules) == 1:
        return _ONE_POLICY
    if not view.comparisons:
        return _NO_JOBS
    if not any(summary.waited_share for summary in view.summaries):
        return _NO_WAITS
    drawable = {
        (position, metric): change
        for position, comparison in enumerate(view.comparisons)
        for metric in METRIC_WORDS
        if 0 < (change := comparison.change(metric)).ratio.value < math.inf
    }
    metrics = [each for each in METRIC_WORDS if any(each == metric for _, metric in drawable)]
    others = len(view.comparisons)
    spread = min(0.56, 0.2 * (others - 1)) / max(others - 1, 1)
    traces = []
    for position, style in enumerate(view.styles[1:]):
        shift = spread * (position - (others - 1) / 2)
        changes = [change for (at, _), change in drawable.items() if at == position]
        ratios = [change.ratio for change in changes]
        interval = {
            "type": "data",
            "symmetric": False,
            "array": [_reach(ratio.high, ratio.value) for ratio in ratios],
            "arrayminus": [_reach(ratio.value, ratio.low) for ratio in ratios],
            "color": style.colour,
            "thickness": 2,
            "width": 0,
        }
        x = [ratio.value for ratio in ratios]
        y = [metrics.index(change.metric) + shift for change in changes]
        hovers = [_hover(change) for change in changes]
        traces.append(looks.marks_of(style, x, y, "%{text}", error_x=interval, text=hovers))
    rows = [
        _row(comparison.other, comparison.change(metric))
        for comparison in view.comparisons
        for metric in METRIC_WORDS
    ]
    ends = [
        end
        for change in drawable.values()
        for end in (change.ratio.value, change.ratio.low, change.ratio.high)
        if math.isfinite(end) and end > 0
    ]
    labels = [
        f"{METRIC_WORDS[metric]}<br>"
        f"<span style='font-size:11px'>baseline "
        f"{said(metric, view.comparisons[0].change(metric).baseline)}</span>"
        for metric in metrics
    ]
    drawing = looks.layout(
        118 + (34 + 14 * others) * len(metrics),
        top=52,
        xaxis=looks.ratio_axis("relative to the baseline (log scale)", min(ends), max(ends)),
        yaxis=looks.rows_axis(labels),
        shapes=[looks.mark_at(1, "@policy0", 2)],
        annotations=[looks.end_note("← better", "left"), looks.end_note("worse →", "right")],
    )
    return Figure(
        name="relative-metrics",
        title="How does each metric change?",
        findings=_relative_findings(view),
        traces=traces,
        layout=drawing,
        table=pl.DataFrame(rows),
        note=_interval_note(view)
        + " Grey line: the baseline. The longest wait has no interval: one job decides it.",
    )


def size_map(view: ReportView) -> Figure:
    """Ratio of the median waits by width and runtime: who gains, who pays.

    The view has at least one comparison.
    """
    bounds = width_bounds(max(float(pair["cpus"].to_numpy().max()) for pair in view.pairs))
    widths = width_labels(bounds)
    shown = min(len(view.pairs), _MOST_MAPS)
    traces: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    tables = []
    panel = 34 * len(widths) + 84
    height = 60 + panel * shown
    for position, pair in enumerate(view.pairs):
        cells = size_changes(pair, bounds)
        tables.append(cells.with_columns(policy=pl.lit(view.comparisons[position].other)))
        if position >= shown:
            continue
        suffix, style = str(position + 1) if position else "", view.styles[position + 1]
        bottom = max(1 - ((position + 1) * panel - 48) / (panel * shown), 0.0)
        top = 1 - (position * panel + 26) / (panel * shown)
        traces.append(
            _size_cells(cells, widths, view.baseline.unit)
            | {"name": style.drawn, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        )
        up = {"anchor": f"x{suffix}", "domain": [bottom, top]}
        axes[f"xaxis{suffix}"] = _classes_axis("runtime", RUNTIME_LABELS, anchor=f"y{suffix}")
        axes[f"yaxis{suffix}"] = _classes_axis(f"{view.baseline.unit}s", widths, **up)
        annotations.append(looks.caption(f"<b>{style.drawn}</b>", top, style.colour))
    drawing = looks.layout(height, annotations=annotations, **axes)
    left_out = (
        f" The first {shown} policies are drawn; all are in the CSV."
        if len(view.pairs) > shown
        else ""
    )
    return Figure(
        name="wait-by-size",
        title="Who gains, who pays?",
        findings=_size_findings(view, tables),
        traces=traces,
        layout=drawing,
        table=_with_size_labels(pl.concat(tables), widths),
        note="Each cell: median wait under the policy over that under the baseline, a minute added "
        "to both so that jobs that start at once do not divide by zero. Blue: shorter; orange: "
        f"longer. “few”: under {_FEWEST_JOBS} jobs." + left_out,
    )


def _size_cells(cells: pl.DataFrame, widths: Sequence[str], unit: str) -> dict[str, Any]:
    """A cell per class, shaded by the power of two of its ratio; empty where jobs are few."""
    z: list[list[float | None]] = [[None] * len(RUNTIME_LABELS) for _ in widths]
    text = [[""] * len(RUNTIME_LABELS) for _ in widths]
    hover = [["no jobs"] * len(RUNTIME_LABELS) for _ in widths]
    for cell in cells.iter_rows(named=True):
        width, runtime = cell["width_class"], cell["runtime_class"]
        before, after = cell["median_wait_seconds"], cell["median_wait_seconds_other"]
        waits = f"median wait {duration(before)} → {duration(after)}"
        hover[width][runtime] = f"{count(cell['jobs'], 'job')}<br>{waits}"
        text[width][runtime] = "few"
        if cell["jobs"] >= _FEWEST_JOBS:
            z[width][runtime] = min(max(math.log2(cell["ratio"]), -4.0), 4.0)
            text[width][runtime] = _multiple(cell["ratio"])
    return {
        "type": "heatmap",
        "z": z,
        "x": list(RUNTIME_LABELS),
        "y": list(widths),
        "text": text,
        "texttemplate": "%{text}",
        "customdata": hover,
        "hovertemplate": f"%{{y}} {unit}s, %{{x}}<br>%{{customdata}}<extra></extra>",
        "hoverongaps": False,
        "zmin": -4,
        "zmax": 4,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, "@gain"], [0.5, "@neutral"], [1, "@loss"]],
        "showscale": False,
    }


def _classes_axis(title: str, names: Sequence[str], **settings: Any) -> dict[str, Any]:
    """An axis of classes in their order."""
    return looks.axis(
        title,
        type="category",
        categoryarray=list(names),
        categoryorder="array",
        range=[-0.5, len(names) - 0.5],
        showgrid=False,
        tickangle=0,
        **settings,
    )


def size_changes(pair: pl.DataFrame, bounds: tuple[float, ...]) -> pl.DataFrame:
    """Median waits of both schedules and their ratio, by class of width x runtime."""
    return (
        with_size_classes(pair, bounds)
        .group_by("width_class", "runtime_class")
        .agg(
            pl.len().alias("jobs"),
            pl.col("wait_seconds").median().alias("median_wait_seconds"),
            pl.col("wait_seconds_other").median().alias("median_wait_seconds_other"),
        )
        .with_columns(
            ratio=(pl.col("median_wait_seconds_other") + _GRACE_SECONDS)
            / (pl.col("median_wait_seconds") + _GRACE_SECONDS)
        )
        .sort("width_class", "runtime_class")
    )


def _with_size_labels(cells: pl.DataFrame, widths: tuple[str, ...]) -> pl.DataFrame:
    def named(column: str, names: Sequence[str]) -> pl.Expr:
        return pl.col(column).replace_strict(dict(enumerate(names)), return_dtype=pl.String)

    return cells.select(
        "policy",
        named("width_class", widths).alias("processors"),
        named("runtime_class", RUNTIME_LABELS).alias("runtime"),
        "jobs",
        "median_wait_seconds",
        "median_wait_seconds_other",
        "ratio",
    )


def _multiple(ratio: float) -> str:
    return f"{number(float(f'{ratio:.2g}'))}×" if ratio >= 0.01 else "< 0.01×"


def _size_findings(view: ReportView, tables: list[pl.DataFrame]) -> list[str]:
    sentences = []
    for position, cells in enumerate(tables[:_MOST_MAPS]):
        known = cells.filter(pl.col("jobs") >= _FEWEST_JOBS)
        label = view.styles[position + 1].label
        total = int(known["jobs"].sum())
        if not total:
            sentences.append(f"{label}: too few jobs in every class to say who gains.")
            continue
        less = int(known.filter(pl.col("ratio") < 0.9)["jobs"].sum()) / total
        more = int(known.filter(pl.col("ratio") > 1.1)["jobs"].sum()) / total
        sentences.append(
            f"{label}: the typical wait is shorter in classes that hold {percent(less)} of the "
            f"jobs, longer in classes that hold {percent(more)}."
        )
    return sentences


def _reach(upper: float, lower: float) -> float:
    return max(upper - lower, 0.0) if math.isfinite(upper - lower) else 0.0


def _hover(change: Change) -> str:
    words = (
        f"{METRIC_WORDS[change.metric]}: {said(change.metric, change.baseline)} → "
        f"{said(change.metric, change.other.value)}<br>{number(change.ratio.value)}× the baseline"
    )
    if change.ratio.is_known:
        words += f" (95 %: {number(change.ratio.low)}–{number(change.ratio.high)}×)"
    return words


def _row(policy: str, change: Change) -> dict[str, Any]:
    values = {"baseline": change.baseline}
    intervals = {"value": change.other, "difference": change.difference, "ratio": change.ratio}
    for name, each in intervals.items():
        values |= {name: each.value, f"{name}_low": each.low, f"{name}_high": each.high}
    known = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return {"policy": policy, "metric": change.metric, **known}


def _relative_findings(view: ReportView) -> list[str]:
    sentences = []
    for position, comparison in enumerate(view.comparisons):
        better = [c for c in comparison.changes if c.ratio.is_known and c.ratio.high < 1]
        worse = [c for c in comparison.changes if c.ratio.is_known and c.ratio.low > 1]
        label = view.styles[position + 1].label
        judged = sum(c.ratio.is_known for c in comparison.changes)
        if not judged:
            sentences.append(f"{label}: the log is too short to give intervals.")
            continue
        unsure = judged - len(better) - len(worse)
        sentences.append(
            f"{label}: of {judged} metrics with an interval, better {len(better)}, worse "
            f"{len(worse)}, undecided {unsure}."
        )
    return sentences


def _interval_note(view: ReportView) -> str:
    comparison = view.comparisons[0]
    if not comparison.blocks:
        return "No intervals: the log has jobs on fewer than five days."
    unit = "week" if comparison.block_seconds > 86400 else "day"
    return (
        f"Bars: 95 % intervals from drawing the log's {count(comparison.blocks, unit)} with "
        f"replacement, the same {unit}s for both policies."
    )
