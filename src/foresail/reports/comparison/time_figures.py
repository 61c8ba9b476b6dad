"""Use, queue and binned Gantt on one time axis, with finer bins packed for zooming."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.usage import LaidJobs, Span, gantt, lay_out, over_time
from foresail.model.words import count, duration, number, percent
from foresail.reports.comparison.view import ReportView
from foresail.reports.figure import Figure, MissingFigure, packed
from foresail.reports.style import axis, caption, layout, line_of, time_unit

MOST_RECTANGLES: Final = 400_000
"""Beyond so many in one report, finer cells stand in for the jobs: the page stays small."""

FINE_BINS: Final = 6400
_ROWS: Final = 120
_LINE_STEPS: Final = 65535
_LEAST_TICK_SECONDS: Final = 1.0


def zoomed_line(trace: int, values: pl.Series) -> dict[str, Any]:
    """A line in finer bins.

    ``trace`` is its position among the figure's traces; ``values`` are averages over equal bins of
    the whole time, none negative.
    """
    heights = values.to_numpy()
    most = max(float(heights.max()), 1e-12)
    return {
        "trace": trace,
        "bins": heights.size,
        "step": most / _LINE_STEPS,
        "heights": _column(np.rint(heights / most * _LINE_STEPS), 2),
    }


def zoomed_gantts(traces: Sequence[int], laid: Sequence[LaidJobs], window: Span) -> dict[str, Any]:
    """The jobs of each Gantt if they are few enough, else its cells in finer bins.

    ``traces`` are the positions of their heat maps among the figure's traces; the window is the
    whole time, longer than nothing.
    """
    if sum(jobs.low.size for jobs in laid) > MOST_RECTANGLES:
        return {
            "cells": [_cells(trace, jobs, window) for trace, jobs in zip(traces, laid, strict=True)]
        }
    return {
        "jobs": [_rectangles(trace, jobs, window) for trace, jobs in zip(traces, laid, strict=True)]
    }


def _cells(trace: int, laid: LaidJobs, window: Span) -> dict[str, Any]:
    shares = gantt(laid, window, FINE_BINS, _ROWS)
    return {
        "trace": trace,
        "processors": laid.processors,
        "bins": FINE_BINS,
        "rows": shares.shape[0],
        "used": _column(np.rint(100 * np.clip(shares, 0, 1)).ravel(), 1),
    }


def _rectangles(trace: int, laid: LaidJobs, window: Span) -> dict[str, Any]:
    """Times in ticks: seconds, or a millionth of a window that is shorter than eleven days."""
    tick = min(_LEAST_TICK_SECONDS, window.seconds / 1e6)
    begin = np.rint((laid.begin_seconds - window.begin_seconds) / tick)
    end = np.rint((laid.end_seconds - window.begin_seconds) / tick)
    return {
        "trace": trace,
        "processors": laid.processors,
        "tickSeconds": tick,
        "begin": _column(np.diff(begin, prepend=0.0), 4),
        "length": _column(end - begin, 4),
        "low": _column(laid.low, 4),
        "rows": _column(laid.high - laid.low, 4),
    }


def _column(values: NDArray[Any], size: int) -> dict[str, Any]:
    """Whole numbers of ``size`` bytes, all their first bytes before all their second, deflated."""
    whole = np.ascontiguousarray(values.astype(f"<u{size}"))
    planes = whole.view(np.uint8).reshape(-1, size).T
    packed = base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
    return {"count": whole.size, "bytes": size, "packed": packed}


_LINE_BINS: Final = 240
_FINE_LINE_BINS: Final = 32 * _LINE_BINS
_GANTT_BINS: Final = 400
_GANTT_ROWS: Final = 120
_MOST_GANTTS: Final = 3
_GAP: Final = 30


def use_over_time(view: ReportView) -> Figure | MissingFigure:
    """Utilisation and queue length over time, and where jobs lay, on the same axis."""
    title = "How is the machine used?"
    if view.window.seconds <= 0:
        return MissingFigure(title, "No job has run.", "Replay a log that has jobs.")
    unit, unit_seconds = time_unit(view.window.seconds)
    shown = min(len(view.schedules), _MOST_GANTTS)
    panels = [130, 150] + [150] * shown
    inner = sum(panels) + _GAP * len(panels)
    tops = [sum(panels[:i]) + _GAP * (i + 1) for i in range(len(panels))]
    domains = [
        [1 - (top + panel) / inner, 1 - top / inner]
        for top, panel in zip(tops, panels, strict=True)
    ]
    lines = [over_time(schedule, view.window, _LINE_BINS) for schedule in view.schedules]
    traces: list[dict[str, Any]] = []
    zoomed_lines: list[dict[str, Any]] = []
    for style, schedule, line in zip(view.styles, view.schedules, lines, strict=True):
        fine = over_time(schedule, view.window, _FINE_LINE_BINS)
        middle = (line["from_seconds"] + line["to_seconds"]) / 2 - view.window.begin_seconds
        for suffix, column, hover in (
            ("", "utilization", "%{y:.0%} used"),
            ("2", "queued_jobs", "%{y:,.1f} jobs waiting"),
        ):
            zoomed_lines.append(zoomed_line(len(traces), fine[column]))
            traces.append(
                line_of(
                    replace(style, dash="solid"),
                    packed(middle.to_numpy() / unit_seconds),
                    packed(line[column].to_numpy()),
                    f"%{{x:.4~g}} {unit}: {hover}",
                    width=1.6,
                    shape="hvh",
                    legendgroup=style.drawn,
                    showlegend=not suffix,
                    xaxis="x",
                    yaxis=f"y{suffix}",
                )
            )
    width = view.window.seconds / unit_seconds / _GANTT_BINS
    laid = [lay_out(schedule) for schedule in view.schedules[:shown]]
    detail = {
        "seconds": view.window.seconds,
        "unitSeconds": unit_seconds,
        "lineBins": _LINE_BINS,
        "cellBins": _GANTT_BINS,
        "rowBins": _GANTT_ROWS,
        "lines": zoomed_lines,
        **zoomed_gantts(range(len(traces), len(traces) + shown), laid, view.window),
    }
    headings = [(f"share of {view.baseline.unit}s in use", "@ink"), ("jobs waiting", "@ink")]
    for position, schedule in enumerate(view.schedules[:shown]):
        style = view.styles[position]
        cells = gantt(laid[position], view.window, _GANTT_BINS, _GANTT_ROWS)
        processors = schedule.meta.processors
        traces.append(
            {
                "type": "heatmap",
                "z": packed(np.rint(100 * np.clip(cells, 0, 1)).astype(np.uint8)),
                "x0": width / 2,
                "dx": width,
                "y0": processors / cells.shape[0] / 2,
                "dy": processors / cells.shape[0],
                "zmin": 0,
                "zmax": 100,
                "zsmooth": False,
                "colorscale": [[0, "@cell"], [1, style.colour]],
                "showscale": False,
                "hovertemplate": f"%{{x:.4~g}} {unit}, {schedule.meta.unit} %{{y:.0f}}: "
                f"%{{z}} % used<extra>{style.drawn}</extra>",
                "xaxis": "x",
                "yaxis": f"y{position + 3}",
            }
        )
        headings.append((f"{schedule.meta.unit}s: {style.drawn}", style.colour))
    axes: dict[str, Any] = {
        "yaxis": axis("", domain=domains[0], tickformat=".0%", range=[0, 1.04], nticks=4),
        "yaxis2": axis("", domain=domains[1], rangemode="tozero", nticks=5, tickformat=",~r"),
    }
    for position in range(shown):
        axes[f"yaxis{position + 3}"] = axis(
            "",
            domain=domains[position + 2],
            range=[0, view.schedules[position].meta.processors],
            nticks=4,
            showgrid=False,
            tickformat=",~r",
        )
    axes["xaxis"] = axis(
        f"{unit} from the first submission",
        anchor=f"y{shown + 2}",
        range=[0, view.window.seconds / unit_seconds],
        tickangle=0,
        tickformat=",~r",
    )
    drawing = layout(
        inner + 60,
        annotations=[
            caption(heading, domain[1], colour)
            for (heading, colour), domain in zip(headings, domains, strict=True)
        ],
        **axes,
    )
    tables = [
        line.with_columns(policy=pl.lit(style.policy)).select("policy", *line.columns)
        for style, line in zip(view.styles, lines, strict=True)
    ]
    step = duration(view.window.seconds / _GANTT_BINS)
    left_out = (
        f" The first {shown} policies are drawn below the lines."
        if len(view.schedules) > shown
        else ""
    )
    return Figure(
        name="use-over-time",
        title=title,
        findings=_findings(view, lines),
        traces=traces,
        layout=drawing,
        table=pl.concat(tables),
        note=f"Lines: averages over {duration(view.window.seconds / _LINE_BINS)}. Below, each cell "
        f"is {step} wide and shaded by the share in use. The log does not name processors: jobs "
        "are laid on the lowest free ones in the order they started. Zooming in loads finer cells "
        "and lines." + left_out,
        detail=detail,
    )


def _findings(view: ReportView, lines: list[pl.DataFrame]) -> list[str]:
    sentences = []
    for style, summary, line in zip(view.styles, view.summaries, lines, strict=True):
        longest = line["queued_jobs"].arg_max() or 0
        queue = float(line["queued_jobs"][longest])
        day = (line["from_seconds"][longest] - view.window.begin_seconds) / 86400
        sentence = f"{style.label}: {percent(summary.steady_utilization)} of the machine is used"
        if queue >= 0.05:
            jobs = count(round(queue), "job") if queue >= 10 else f"{number(queue)} jobs"
            bin_seconds = float(line["to_seconds"][0] - line["from_seconds"][0])
            sentence += (
                f"; the queue is longest on day {number(float(int(day) + 1))}, with "
                f"{jobs} waiting on average over {duration(bin_seconds)}"
            )
        sentences.append(
            f"{sentence}; {percent(summary.avoidable_idle_share)} stands idle while a waiting job "
            "would fit."
        )
    return sentences
