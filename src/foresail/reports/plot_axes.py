"""Axes of the plots that analyses ask for: linear or logarithmic, in units that people read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.words import duration, number, percent
from foresail.reports.style import axis, duration_axis, time_unit

_LEAST_SECONDS: Final = 1.0
_MOST_POWERS: Final = 8
_FEW_POWERS: Final = 2.2
_ONE_POWER: Final = 1.0
_DAY_HOURS: Final = 23
_FEW_WHOLE: Final = 12


@dataclass(frozen=True)
class AxisScale:
    """How values of one axis are drawn."""

    axis: dict[str, Any]
    """As Plotly takes it."""
    divisor: float = 1.0
    """What values are divided by."""
    least: float | None = None
    """Smaller values are drawn here; None without a limit."""
    kind: str = field(default="number")

    def drawn(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values as they are drawn."""
        scaled = values / self.divisor
        return scaled if self.least is None else np.maximum(scaled, self.least)

    def said(self, value: float) -> str:
        """A value in words."""
        if self.kind == "duration":
            return duration(value)
        return percent(value) if self.kind == "share" else number(value)


def scale_of(
    label: str, kind: str, values: NDArray[np.float64], *, log: bool, longest: float = 0.0
) -> AxisScale:
    """The axis for some values: all finite ones that are drawn on it.

    The kind is ``number``, ``duration`` (seconds), ``share`` or ``hour``. ``longest`` is the
    longest duration of the page in seconds: logarithmic axes of durations all reach that far.
    """
    if log and kind == "duration":
        far = max(longest, float(values.max(initial=0.0)))
        return AxisScale(duration_axis(label, far), least=_LEAST_SECONDS, kind=kind)
    if log:
        return _logarithmic(label, kind, values)
    if kind == "duration":
        unit, seconds = time_unit(float(values.max(initial=0.0)))
        shape = axis(f"{label}, {unit}", rangemode="tozero", tickformat=",~r", tickangle=0)
        return AxisScale(shape, divisor=seconds, kind=kind)
    if kind == "share":
        shape = axis(label, tickformat=".0%", rangemode="tozero", nticks=6, tickangle=0)
        return AxisScale(shape, kind=kind)
    if kind == "hour":
        shape = axis(label, range=[-0.5, _DAY_HOURS + 0.5], dtick=3, tick0=0, tickangle=0)
        return AxisScale(shape, kind=kind)
    smallest = float(values.min(initial=0.0))
    mode = "tozero" if smallest >= 0 else "normal"
    few = values.size > 0 and np.ptp(values) <= _FEW_WHOLE and bool((values % 1 == 0).all())
    ticks = {"dtick": 1} if few else {"nticks": 7}
    shape = axis(label, rangemode=mode, tickformat=",~r", tickangle=0, **ticks)
    return AxisScale(shape, kind=kind)


def _logarithmic(label: str, kind: str, values: NDArray[np.float64]) -> AxisScale:
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (1.0, 10.0)
    low, high = (low / 1.3, high * 1.3) if high / low < 1.7 else (low, high)
    reach = math.log10(high / low)
    margin = 0.03 * reach
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if reach <= _ONE_POWER:
        ticks = [step * 10.0**power for power in powers for step in (1, 1.5, 2, 3, 4, 5, 6, 8)]
    elif reach <= _FEW_POWERS:
        ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    else:
        each = max(1, math.ceil(len(powers) / _MOST_POWERS))
        ticks = [10.0**power for power in powers if power % each == 0]
    kept = [tick for tick in ticks if low * 0.93 <= tick <= high * 1.07]
    say = percent if kind == "share" else _short
    shape = axis(
        label,
        type="log",
        range=[math.log10(low) - margin, math.log10(high) + margin],
        tickvals=kept,
        ticktext=[say(tick) for tick in kept],
        tickangle=0,
    )
    return AxisScale(shape, least=low, kind=kind)


def _short(value: float) -> str:
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M")):
        if value >= size:
            return number(value / size) + letter
    return number(value)
