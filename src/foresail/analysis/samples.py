"""Statistics of a sample of numbers: cumulative shares, variation, Tukey's box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis.finding import Plot

MOST_POINTS: Final = 1000
"""Rows of a table of cumulative shares; a sample with more distinct values is thinned to them."""

_TAIL_POINTS: Final = 100


@dataclass(frozen=True, slots=True)
class TukeyBox:
    """Quartiles (linear interpolation), the furthest values within 1.5 IQR of them, the rest."""

    lower_whisker: float
    quartile_1: float
    median: float
    quartile_3: float
    upper_whisker: float
    outliers: tuple[float, ...]


def known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The finite values."""
    return values[np.isfinite(values)]


def share_of(holds: NDArray[np.bool_]) -> float:
    """The share of which it holds; NaN of none."""
    return float(holds.mean()) if holds.size else float("nan")


def quantile(values: NDArray[np.float64], probability: float) -> float:
    """A quantile (linear interpolation); NaN of none."""
    return float(np.quantile(values, probability)) if values.size else float("nan")


def cumulative_shares(values: NDArray[np.float64], name: str = "value") -> pl.DataFrame:
    """The empirical distribution function of finite values, as columns ``name`` and ``share``.

    One row per distinct value with the share of the sample that is at most it. Of more than
    ``MOST_POINTS`` distinct values those are kept that lie evenly in the share, evenly in the
    logarithm of the value, and evenly in the logarithm of the share beyond (the upper tail); every
    row that is kept is exact.
    """
    distinct, counts = np.unique(values, return_counts=True)
    share = np.cumsum(counts) / max(values.size, 1)
    if distinct.size > MOST_POINTS:
        rows = _informative(distinct, share)
        distinct, share = distinct[rows], share[rows]
    return pl.DataFrame({name: distinct, "share": share})


def cumulative_plot(
    table: str,
    column: str,
    x_label: str,
    y_label: str,
    said: str,
    *,
    series: str | None = None,
    x_kind: Literal["number", "duration"] = "number",
    log_x: bool = True,
) -> Plot:
    """The picture of a table of ``cumulative_shares`` of a column; else as ``Plot`` has it.

    ``said`` is the finding in a sentence.
    """
    return Plot(
        kind="steps",
        table=table,
        x=column,
        y="share",
        x_label=x_label,
        y_label=y_label,
        alternative=said,
        series=series,
        x_kind=x_kind,
        log_x=log_x,
        y_kind="share",
    )


def _informative(distinct: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.int64]:
    evenly = (MOST_POINTS - _TAIL_POINTS) // 2 - 2
    last = distinct.size - 1
    positive = distinct[distinct > 0]
    wanted = [
        np.array([0, last]),
        np.searchsorted(share, np.linspace(0.0, 1.0, evenly)),
        np.searchsorted(share, 1.0 - np.geomspace(1.0 - share[0], 1.0 - share[-2], _TAIL_POINTS)),
    ]
    if positive.size:
        wanted.append(np.searchsorted(distinct, np.geomspace(positive[0], positive[-1], evenly)))
    return np.unique(np.minimum(np.concatenate(wanted), last)).astype(np.int64)


def variation(values: NDArray[np.float64]) -> float:
    """Coefficient of variation: population standard deviation over mean; NaN for a mean of 0."""
    mean = float(values.mean())
    return float(values.std()) / mean if mean else float("nan")


def tukey_box(values: NDArray[np.float64]) -> TukeyBox:
    """Tukey's box of at least one value (spec section 10, W15; golden value G21)."""
    lower, median, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (upper - lower)
    inside = (values >= lower - reach) & (values <= upper + reach)
    return TukeyBox(
        lower_whisker=float(values[inside].min()),
        quartile_1=lower,
        median=median,
        quartile_3=upper,
        upper_whisker=float(values[inside].max()),
        outliers=tuple(float(value) for value in np.sort(values[~inside])),
    )
