"""The plan as a space-time picture: what runs fades as it may have ended, plans are outlines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.explain.run_snapshot import RunSnapshot
from foresail.model.distribution import Floats
from foresail.model.words import count, duration, from_now
from foresail.reports.figure import Figure, packed
from foresail.reports.plan.view import Band, Bar, PlanView, chance_words, findings_of, plan_view
from foresail.reports.style import axis, layout, level_at, literal, mark_at, time_unit

_COLUMNS: Final = 300
_MOST_ROWS: Final = 400
_MARGIN: Final = 90
_HEIGHTS: Final = (150, 560)
_ROW_HEIGHT: Final = 22
_DRAWN_WIDTH: Final = 900
_LABEL_HEIGHT: Final = 11.0
_LETTER_WIDTH: Final = 7.0
_MOST_LABELS: Final = 80
_MOST_SEAMS: Final = 600
_MOST_OUTLINES: Final = 250
_MOST_POINTS: Final = 2000
_MOST_TICKS: Final = 400
_MOST_BANDS: Final = 24
_LEAST_TICK_HEIGHT: Final = 7.0
_PAST_SHADE: Final = 0.4
"""Density with which an attempt is drawn that has ended, against one that surely runs."""

WITH_DEADLINE: Final = "@policy1"
WITHOUT: Final = "@policy0"
AT_RISK: Final = "@loss"


@dataclass(frozen=True)
class _Canvas:
    """Places of times and lanes on the drawing."""

    view: PlanView
    unit: str
    unit_seconds: float
    height: float

    @classmethod
    def for_view(cls, view: PlanView) -> _Canvas:
        unit, seconds = time_unit(view.to_seconds - view.from_seconds)
        low, high = _HEIGHTS
        return cls(view, unit, seconds, min(max(low, _ROW_HEIGHT * view.lanes.count), high))

    def x(self, time: float) -> float:
        """A time on the log's clock as units from now."""
        return (time - self.view.moment.now) / self.unit_seconds

    def shown(self, start: float, end: float) -> tuple[float, float]:
        """The part of a span that is drawn, in units from now."""
        view = self.view
        begin, until = max(start, view.from_seconds), min(end, view.to_seconds)
        return self.x(begin), self.x(max(until, begin))

    @property
    def lane_pixels(self) -> float:
        return self.height / max(self.view.lanes.count, 1)

    def pixels(self, units: float) -> float:
        """Width of so many units of time."""
        seconds = self.view.to_seconds - self.view.from_seconds
        return units * self.unit_seconds / seconds * _DRAWN_WIDTH


def plan_figure(moment: RunSnapshot) -> tuple[Figure, PlanView]:
    """The picture of a moment, and what it was drawn from."""
    view = plan_view(moment, _COLUMNS)
    canvas = _Canvas.for_view(view)
    figure = Figure(
        name="plan",
        title=f"What will happen next, {duration(moment.since_start)} after the start?",
        findings=findings_of(view),
        traces=[
            _shades(view),
            _seams(canvas),
            _down(canvas),
            *_outlines(canvas),
            *_deadlines(canvas),
            _labels(canvas),
            _points(canvas),
            *_legend(view),
        ],
        layout=_layout(canvas, _named_bands(view)),
        table=_plan_table(view),
        note=_note(view),
    )
    return figure, view


def _shades(view: PlanView) -> dict[str, Any]:
    """Cells shaded by the probability that they are held, in one colour per kind of job."""
    lanes = max(view.lanes.count, 1)
    each = math.ceil(lanes / _MOST_ROWS)
    rows = math.ceil(lanes / each)
    held = np.zeros((2, rows, _COLUMNS))
    for bar, probability in zip(view.running, view.still_running, strict=True):
        _shade(held[_kind(bar)], bar, each, probability)
    width = np.diff(view.times)
    for bar in view.past:
        begun = np.minimum(view.times[1:], bar.likely_seconds)
        share = np.clip((begun - np.maximum(view.times[:-1], bar.start_seconds)) / width, 0.0, 1.0)
        _shade(held[_kind(bar)], bar, each, _PAST_SHADE * share)
    total = np.minimum(held.sum(axis=0), 1.0)
    sign = np.where(held[1] >= held[0], 1.0, -1.0)
    unit_seconds = time_unit(view.to_seconds - view.from_seconds)[1]
    step = float(width[0]) / unit_seconds
    left = (view.from_seconds - view.moment.now) / unit_seconds
    return {
        "type": "heatmap",
        "name": "use",
        "z": packed(np.rint(100.0 + 100.0 * sign * total).astype(np.uint8)),
        "x0": left + step / 2,
        "dx": step,
        "y0": each / 2,
        "dy": each,
        "zmin": 0,
        "zmax": 200,
        "zsmooth": False,
        "colorscale": [[0, WITHOUT], [0.5, "@cell"], [1, WITH_DEADLINE]],
        "showscale": False,
        "hoverinfo": "skip",
    }


def _kind(bar: Bar) -> int:
    return int(bar.job.deadline_seconds is not None)


def _shade(held: Floats, bar: Bar, each: int, share: Floats) -> None:
    for first, end in bar.runs:
        rows = np.arange(first // each, (end - 1) // each + 1)
        inside = np.minimum(end, (rows + 1) * each) - np.maximum(first, rows * each)
        held[rows] += np.outer(inside / each, share)


def _lines(
    name: str, segments: Iterable[Sequence[tuple[float, float]]], **settings: Any
) -> dict[str, Any]:
    """One trace of many polylines."""
    x: list[float | None] = []
    y: list[float | None] = []
    for points in segments:
        x += [*(round(px, 4) for px, _ in points), None]
        y += [*(round(py, 3) for _, py in points), None]
    return _marks("lines", name, x, y, **settings)


def _marks(mode: str, name: str, x: object, y: object, **settings: Any) -> dict[str, Any]:
    """A trace that says nothing where one points at it, and is not in the key."""
    trace = {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y}
    return trace | {"hoverinfo": "skip", "showlegend": False} | settings


def _seams(canvas: _Canvas) -> dict[str, Any]:
    """Thin lines between jobs, where there is room for them."""
    view = canvas.view
    bars = [*view.past, *view.running]
    pieces = [
        (bar, run)
        for bar in bars
        for run in bar.runs
        if (run[1] - run[0]) * canvas.lane_pixels >= 3.0
    ]
    segments = []
    for bar, (first, end) in pieces[-_MOST_SEAMS:]:
        left, right = canvas.shown(bar.start_seconds, max(bar.high_seconds, view.moment.now))
        segments.append(((left, end), (left, first), (right, first)))
    return _lines("seams", segments, line={"color": "@paper", "width": 1})


def _down(canvas: _Canvas) -> dict[str, Any]:
    """Nodes that are down, from then on."""
    view = canvas.view
    boxes = []
    for name, since in view.moment.down.items():
        for first, end in view.lanes.of_nodes([name]):
            left, right = canvas.shown(since, view.to_seconds)
            boxes.append(((left, first), (right, first), (right, end), (left, end), (left, first)))
    return _lines(
        "down",
        boxes[:_MOST_TICKS],
        fill="toself",
        fillcolor="@muted",
        opacity=0.4,
        line={"color": "@muted", "width": 0.5},
    )


def _outlines(canvas: _Canvas) -> list[dict[str, Any]]:
    """Return what is planned, from its start to its likely end; of too much, the widest."""
    traces = []
    for name, kind, colour in (("planned", 0, WITHOUT), ("planned-deadline", 1, WITH_DEADLINE)):
        boxes: list[list[tuple[float, float]]] = []
        for bar in canvas.view.planned:
            if _kind(bar) != kind or bar.start_seconds > canvas.view.to_seconds:
                continue
            left, right = canvas.shown(bar.start_seconds, bar.likely_seconds)
            is_cut = bar.likely_seconds > canvas.view.to_seconds
            for first, end in bar.runs:
                y, below = float(first), float(end)
                box = [(right, y), (left, y), (left, below), (right, below)]
                boxes.append(box if is_cut else [*box, (right, y)])
        boxes.sort(key=lambda box: box[1][1] - box[2][1])
        boxes = boxes[:_MOST_OUTLINES]
        traces.append(_lines(name, boxes, line={"color": colour, "width": 1.6, "dash": "solid"}))
    return traces


def _deadlines(canvas: _Canvas) -> list[dict[str, Any]]:
    """A tick per deadline over the job's lanes; red, thick and crossed where it is at risk."""
    view = canvas.view
    safe: list[Sequence[tuple[float, float]]] = []
    risky: list[Sequence[tuple[float, float]]] = []
    crosses: list[tuple[float, float]] = []
    for bar in _ticked(view):
        x = canvas.x(bar.job.deadline_seconds or 0.0)
        for first, end in bar.runs:
            extra = max(0.0, _LEAST_TICK_HEIGHT / canvas.lane_pixels - (end - first)) / 2
            (risky if bar.at_risk else safe).append(((x, first - extra), (x, end + extra)))
        if bar.at_risk and bar.runs:
            crosses.append((x, sum(bar.runs[0]) / 2))
    return [
        _lines("deadline", safe[:_MOST_TICKS], line={"color": "@ink", "width": 1.6}),
        _lines("deadline-risk", risky[:_MOST_TICKS], line={"color": AT_RISK, "width": 3}),
        _marks(
            "markers",
            "crosses",
            [round(x, 4) for x, _ in crosses[:_MOST_TICKS]],
            [round(y, 3) for _, y in crosses[:_MOST_TICKS]],
            marker={"symbol": "x", "size": 8, "color": AT_RISK},
        ),
    ]


def _labels(canvas: _Canvas) -> dict[str, Any]:
    """The jobs' names, in bars that have room: dark on an outline, light on what surely runs."""
    now = canvas.view.moment.now
    found: list[tuple[float, float, float, str, str]] = []
    for bar in (*canvas.view.running, *canvas.view.planned):
        has_begun = bar.start_seconds <= now
        left, right = canvas.shown(bar.start_seconds, now if has_begun else bar.likely_seconds)
        first, end = max(bar.runs, key=lambda run: run[1] - run[0], default=(0, 0))
        high, wide = (end - first) * canvas.lane_pixels, canvas.pixels(right - left)
        if high >= _LABEL_HEIGHT and wide >= _LETTER_WIDTH * (len(bar.job.job_id) + 2):
            colour, name = "@paper" if has_begun else "@ink", f" {literal(bar.job.job_id)}"
            found.append((high * wide, left, (first + end) / 2, name, colour))
    kept: list[tuple[float, float, float, str, str]] = []
    for label in sorted(found, reverse=True)[: 4 * _MOST_LABELS]:
        if not any(_hide(canvas, label[1:4], other[1:4]) for other in kept):
            kept.append(label)
    kept = kept[:_MOST_LABELS]
    return _marks(
        "text",
        "labels",
        [round(x, 4) for _, x, *_ in kept],
        [round(y, 3) for _, _, y, *_ in kept],
        text=[name for *_, name, _ in kept],
        textposition="middle right",
        textfont={"size": 11, "color": [colour for *_, colour in kept]},
        cliponaxis=True,
    )


def _hide(canvas: _Canvas, one: tuple[float, float, str], other: tuple[float, float, str]) -> bool:
    """Return whether two names at (units, lanes) cannot both be read."""
    left, right = sorted((one, other))
    width = _LETTER_WIDTH * len(left[2])
    apart = abs(left[1] - right[1]) * canvas.lane_pixels
    return canvas.pixels(right[0] - left[0]) < width and apart < _LABEL_HEIGHT


def _points(canvas: _Canvas) -> dict[str, Any]:
    """Invisible points on the bars that tell about them when pointed at."""
    view = canvas.view
    x, y, hovers = [], [], []
    for bars, words in ((view.running, "runs"), (view.planned, "planned"), (view.past, "ended")):
        for bar in bars:
            left, right = canvas.shown(bar.start_seconds, max(bar.likely_seconds, bar.low_seconds))
            for first, end in bar.runs[:8]:
                for part in (0.05, 0.5, 0.95):
                    x.append(round(left + part * (right - left), 4))
                    y.append((first + end) / 2)
                    hovers.append(_hover(bar, words, view.moment.now))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "points",
        "x": x[:_MOST_POINTS],
        "y": y[:_MOST_POINTS],
        "text": hovers[:_MOST_POINTS],
        "marker": {"opacity": 0, "size": 14, "color": "@ink"},
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def _hover(bar: Bar, words: str, now: float) -> str:
    job = bar.job
    lines = [f"job {literal(job.job_id)}: {job.cpus:g} cpus"]
    if words == "ended":
        lines.append(f"ran for {duration(bar.likely_seconds - bar.start_seconds)}, has ended")
    elif words == "runs":
        lines.append(f"runs since {duration(now - bar.start_seconds)}")
        lines.append(
            f"ends in {duration(bar.low_seconds - now)} to {duration(bar.high_seconds - now)} "
            "(80 %)"
        )
    else:
        lines.append(f"planned in {duration(bar.start_seconds - now)}")
        lines.append(
            f"to run for {duration(bar.low_seconds - bar.start_seconds)} to "
            f"{duration(bar.high_seconds - bar.start_seconds)} (80 %)"
        )
    if job.deadline_seconds is not None and words != "ended":
        when = from_now(job.deadline_seconds - now)
        lines.append(f"deadline {when}, chance {chance_words(bar.chance, True)}")
    return "<br>".join(lines)


def _legend(view: PlanView) -> list[dict[str, Any]]:
    """Marks that stand for what the picture has; the page explains them itself."""
    bars = [*view.past, *view.running]
    ticked = _ticked(view)
    some, others = any(map(_kind, bars)), not all(map(_kind, bars))
    kinds = [
        ("runs, with a deadline", "square", WITH_DEADLINE, some),
        ("runs, without a deadline" if some else "runs", "square", WITHOUT, others),
        ("planned", "square-open", "@ink", view.plans_ahead),
        ("deadline", "line-ns-open", "@ink", bool(ticked)),
        ("deadline, chance below a half", "x", AT_RISK, any(bar.at_risk for bar in ticked)),
        ("node down", "square", "@muted", bool(view.moment.down)),
    ]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [None],
            "y": [None],
            "marker": {"symbol": symbol, "size": 11, "color": colour},
            "showlegend": True,
        }
        for name, symbol, colour, is_there in kinds
        if is_there
    ]


def _ticked(view: PlanView) -> list[Bar]:
    """Bars whose deadline is within the picture."""
    return [
        bar
        for bar in (*view.running, *view.planned)
        if bar.job.deadline_seconds is not None
        and view.from_seconds <= bar.job.deadline_seconds <= view.to_seconds
    ]


def _layout(canvas: _Canvas, bands: Sequence[Band]) -> dict[str, Any]:
    view = canvas.view
    borders = [band.first for band in view.lanes.partitions[1:]]
    shapes = [
        level_at(border, width=0.8, yref="y") for border in (borders if len(borders) < 60 else [])
    ]
    now = {"color": "@ink", "width": 1.6, "dash": "dot"}
    shapes.append({**mark_at(0), "layer": "above", "line": now})
    return layout(
        round(canvas.height) + _MARGIN,
        top=44,
        shapes=shapes,
        annotations=[
            {
                "text": "now",
                "xref": "x",
                "yref": "paper",
                "x": 0,
                "y": 1,
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"color": "@ink", "size": 13},
            }
        ],
        hovermode="closest",
        xaxis=axis(
            f"{canvas.unit} from now",
            range=list(canvas.shown(view.from_seconds, view.to_seconds)),
            tickangle=0,
            showgrid=False,
            nticks=8,
            tickformat=",~r",
        ),
        yaxis=axis(
            "",
            range=[max(view.lanes.count, 1), 0],
            tickvals=[band.middle for band in bands],
            ticktext=[_short(band.name) for band in bands],
            showgrid=False,
        ),
    )


def _named_bands(view: PlanView) -> list[Band]:
    """Nodes where they are few, else partitions, else some of these."""
    if 0 < len(view.lanes.nodes) <= _MOST_BANDS:
        return list(view.lanes.nodes)
    partitions = list(view.lanes.partitions)
    step = math.ceil(len(partitions) / _MOST_BANDS)
    return partitions[:: max(step, 1)]


def _short(name: str) -> str:
    return literal(name if len(name) <= 16 else f"{name[:10]}…{name[-5:]}")


def _note(view: PlanView) -> str:
    lanes = view.lanes.count
    each = math.ceil(lanes / _MOST_ROWS)
    rows = "Every row is a cpu" if each == 1 else f"Every row is {each:,} cpus"
    order = "nodes in the cluster's order, by partition" if view.lanes.nodes else "by partition"
    words = [
        f"{rows}, {order}. A bar fades with the probability that the job still runs, by what was "
        "believed at that moment; after its belief has run out it is drawn to its corrected end."
    ]
    if view.plans_ahead:
        words.append(
            "An outline is planned, from its start to when it ends as likely as not; it is drawn "
            "where room is likeliest, for which nodes it gets is not settled before its start."
        )
    elif view.moment.waiting:
        words.append("This scheduler has planned no start ahead.")
    if not view.lanes.nodes:
        words.append(
            "The log names no processors: jobs are laid on the lowest free ones in order of start."
        )
    if sum(len(bar.runs) for bar in view.planned) > _MOST_OUTLINES:
        words.append("Of many planned jobs only the widest are outlined.")
    if view.left_out:
        words.append(f"{count(view.left_out, 'further planned job')} not drawn.")
    return " ".join(words)


def _plan_table(view: PlanView) -> pl.DataFrame:
    """The numbers behind the picture: a row per bar, times in seconds from the run's start."""
    zero = view.moment.zero_seconds
    states = {"ended": view.past, "running": view.running, "planned": view.planned}
    numbers: dict[str, Callable[[Bar], float | None]] = {
        "cpus": lambda bar: bar.job.cpus,
        "start_seconds": lambda bar: bar.start_seconds - zero,
        "end_low_seconds": lambda bar: bar.low_seconds - zero,
        "end_likely_seconds": lambda bar: bar.likely_seconds - zero,
        "end_high_seconds": lambda bar: bar.high_seconds - zero,
        "deadline_seconds": lambda bar: from_start(bar.job.deadline_seconds, zero),
        "chance_of_deadline": lambda bar: bar.chance,
    }
    rows = [
        [state, bar.job.job_id, *(value(bar) for value in numbers.values())]
        for state, bars in states.items()
        for bar in bars
    ]
    schema = {"state": pl.String(), "job_id": pl.String(), **dict.fromkeys(numbers, pl.Float64())}
    return pl.DataFrame(rows, schema=schema, orient="row")


def from_start(time: float | None, zero: float) -> float | None:
    """A time as seconds from the run's start, where there is one."""
    return None if time is None else time - zero
