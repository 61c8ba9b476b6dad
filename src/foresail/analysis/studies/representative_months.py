"""Comparison of single months with the whole log."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.samples import TukeyBox, known, tukey_box
from foresail.model.registry import register
from foresail.model.words import count, number
from foresail.traces.workload import Workload

MONTH_SECONDS: Final = 29 * 86400.0
"""As long as the Google trace, whose representativeness the study asks about."""


@register("analysis", "representative_months")
@study("Is a month representative?", "3.7")
def representative_months(workload: Workload) -> Answer | str:
    """Means of 29-day windows over the mean of the whole log: gaps, runtimes and sizes.

    Spec section 10, W15 (dissertation, figure 3.11; golden value G21). Windows count from the first
    submission; the last, partial one is dropped. A gap belongs to the window in which it ends.
    Ratios of each window; a window without jobs has none.
    """
    submit = workload.jobs["submit_seconds"].to_numpy()
    windows = int((submit[-1] - submit[0]) // MONTH_SECONDS) if submit.size else 0
    if windows < 2:
        return "The log is shorter than two months of 29 days."
    window = ((submit - submit[0]) // MONTH_SECONDS).astype(np.int64)
    gaps = np.concatenate(([np.nan], np.diff(submit)))
    scalars = {"months": float(windows)}
    rows: list[pl.DataFrame] = []
    boxes: list[dict[str, Any]] = []
    for quantity, values in (
        ("inter-arrival", gaps),
        ("runtime", columns.runtimes(workload)),
        ("cpus", columns.cpus(workload)),
    ):
        ratios = _ratios(values, window, windows)
        if ratios is None:
            continue
        rows.append(
            pl.DataFrame(
                {
                    "month": np.arange(1.0, windows + 1),
                    "quantity": [f"mean {quantity}"] * windows,
                    "ratio": ratios,
                }
            )
        )
        box = tukey_box(known(ratios))
        boxes.append({"quantity": f"mean {quantity}", **_row(box)})
        name = quantity.replace("-", "_")
        scalars |= {
            f"least_{name}_ratio": float(known(ratios).min()),
            f"most_{name}_ratio": float(known(ratios).max()),
            f"outliers_{name}": float(len(box.outliers)),
        }
    said = ", ".join(
        f"{words} {number(scalars[f'least_{name}_ratio'])}–"
        f"{number(scalars[f'most_{name}_ratio'])} times"
        for name, words in (("inter_arrival", "gaps"), ("runtime", "runtimes"))
        if f"least_{name}_ratio" in scalars
    )
    verdict = f"Months have mean {said} those of the whole log."
    by_month = Plot(
        kind="line",
        table="months",
        x="month",
        y="ratio",
        x_label="month of 29 days",
        y_label="month ÷ whole log (log scale)",
        alternative=verdict,
        series="quantity",
        log_y=True,
    )
    box_plot = Plot(
        kind="box",
        table="boxes",
        x="quantity",
        y="median",
        x_label="what is averaged",
        y_label="month ÷ whole log (log scale)",
        alternative="Half of the months lie between "
        + ", ".join(
            f"{number(box['quartile_1'])} and {number(box['quartile_3'])} times ({box['quantity']})"
            for box in boxes
        )
        + ".",
        x_kind="category",
        log_y=True,
    )
    return Answer(
        verdict,
        scalars,
        {
            "months": pl.concat(rows).with_columns(pl.col("ratio").fill_nan(None)),
            "boxes": pl.DataFrame(boxes),
        },
        (by_month, box_plot),
        (
            f"{count(windows, 'whole month')}.",
            "Boxes: quartiles; whiskers: the furthest months within 1.5 times their distance.",
        ),
    )


def _ratios(
    values: NDArray[np.float64], window: NDArray[np.int64], windows: int
) -> NDArray[np.float64] | None:
    """Mean of each window over the mean of all; NaN for an empty one, None if there is no mean."""
    usable = np.isfinite(values)
    whole = float(values[usable].mean()) if usable.any() else 0.0
    if whole <= 0:
        return None
    size = windows + 1
    window = np.minimum(window, windows)
    sums = np.bincount(window[usable], weights=values[usable], minlength=size)[:windows]
    jobs = np.bincount(window[usable], minlength=size)[:windows]
    means = np.divide(sums, jobs, out=np.full(windows, np.nan), where=jobs > 0)
    return means / whole if np.isfinite(means).any() else None


def _row(box: TukeyBox) -> dict[str, Any]:
    return {
        "lower_whisker": box.lower_whisker,
        "quartile_1": box.quartile_1,
        "median": box.median,
        "quartile_3": box.quartile_3,
        "upper_whisker": box.upper_whisker,
        "outliers": " ".join(f"{value:.6g}" for value in box.outliers),
    }
