"""What the analyses by hour of the day have in common."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis.clock import DAY_BEGINS, DAY_ENDS
from foresail.analysis.finding import Plot

QUARTILES: Final = "Line: median over the days; band: quartiles."
NO_WHOLE_DAY: Final = "The log holds no whole day from midnight to midnight."


def hourly_scalars(counts: NDArray[np.float64], table: pl.DataFrame, what: str) -> dict[str, float]:
    """Rates, the share by day and the busiest hour.

    Parameters
    ----------
    counts
        (days, 24).
    table
        As ``quartiles_by_hour`` makes it.
    what
        Plural of what was counted.
    """
    by_hour = counts.sum(axis=0)
    total = float(by_hour.sum())
    return {
        f"mean_{what}_per_hour": float(counts.mean()),
        f"most_{what}_per_hour": float(counts.max()),
        f"busiest_median_{what}_per_hour": float(table["median"].to_numpy().max()),
        f"quietest_median_{what}_per_hour": float(table["median"].to_numpy().min()),
        "busiest_hour": float(by_hour.argmax()),
        "share_by_day": float(by_hour[DAY_BEGINS:DAY_ENDS].sum()) / total if total else 0.0,
        "whole_days": float(counts.shape[0]),
    }


def hourly_plot(label: str, said: str) -> Plot:
    """Median over the hours of the day with the quartiles around it."""
    return Plot(
        kind="band",
        table="hours",
        x="hour",
        y="median",
        x_label="hour of the day",
        y_label=label,
        alternative=said,
        x_kind="hour",
    )
