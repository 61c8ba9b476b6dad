"""What a figure over time shows once it is zoomed into: finer bins, packed beside the drawing.

The page unpacks them (``zoom.js``) when a reader zooms, not before: the first paint does without.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.usage import LaidJobs, Span, gantt

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
