"""Times between submissions, compared with a Poisson process."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.analysis import columns
from foresail.analysis.finding import Answer, study
from foresail.analysis.samples import cumulative_plot, cumulative_shares, variation
from foresail.model.registry import register
from foresail.model.words import duration, number, percent
from foresail.traces.workload import Workload

_TERMS: Final = 20
_SWITCH: Final = 1.0
"""Below it the alternating series needs many terms and the transformed one few."""


def distance_to_exponential(gaps: NDArray[np.float64]) -> float:
    """Largest distance between the gaps' distribution and the exponential one of the same mean.

    D = max over the sorted gaps of max(i/n - F, F - (i-1)/n) (spec section 10, W7; golden value
    G19). There is at least one gap of at least 0 (any unit), and their mean is positive.
    """
    ordered = np.sort(gaps)
    count = ordered.size
    expected = -np.expm1(-ordered / ordered.mean())
    rank = np.arange(1, count + 1)
    return float(np.max(np.maximum(rank / count - expected, expected - (rank - 1) / count)))


def asymptotic_p_value(distance: float, count: int) -> float:
    """Probability that a sample of ``count`` is at least so far from its own distribution.

    Kolmogorov's limit for large samples of a continuous distribution that is fully known. Where
    the mean was estimated from the same sample (Lilliefors) true probabilities are smaller.
    """
    at = math.sqrt(count) * distance
    if at <= 0:
        return 1.0
    if at < _SWITCH:
        base = -(math.pi**2) / (8 * at * at)
        inner = sum(math.exp(base * (2 * k - 1) ** 2) for k in range(1, _TERMS))
        return 1.0 - math.sqrt(2 * math.pi) / at * inner
    signs = (1.0 if k % 2 else -1.0 for k in range(1, _TERMS))
    terms = (math.exp(-2 * (k * at) ** 2) for k in range(1, _TERMS))
    return 2 * sum(sign * term for sign, term in zip(signs, terms, strict=True))


_LEAST_SAID: Final = 0.0001
_FEWEST: Final = 30
"""Gaps that show how finely a log's clock counts."""


@register("analysis", "interarrivals")
@study("How far apart are submissions?", "3.4")
def interarrivals(workload: Workload) -> Answer | str:
    """Cumulative shares of the gaps between submissions, against the exponential distribution.

    Spec section 10, W7 (dissertation, figure 3.5). Gaps between consecutive submissions, zeros
    included.
    """
    gaps = np.diff(columns.submissions(workload))
    resolution = _resolution(gaps)
    if not gaps.size:
        return "There is no second job."
    if not gaps.any():
        return "All jobs were submitted at once."
    distance = distance_to_exponential(gaps)
    chance = asymptotic_p_value(distance, gaps.size)
    short = float((gaps < 1).mean())
    scalars = {
        "mean_seconds": float(gaps.mean()),
        "p50_seconds": float(np.median(gaps)),
        "p90_seconds": float(np.quantile(gaps, 0.9)),
        "longest_seconds": float(gaps.max()),
        "coefficient_of_variation": variation(gaps),
        "kolmogorov_smirnov_distance": distance,
        "kolmogorov_smirnov_p_value": chance,
    }
    half = duration(scalars["p50_seconds"])
    said = f"half of the jobs follow within {half}"
    if resolution <= 1:
        scalars["share_below_1_second"] = short
        said = f"{percent(short)} of the jobs follow within a second, half within {half}"
    odds = f"= {number(chance)}" if chance >= _LEAST_SAID else "< 0.0001"
    verdict = (
        f"{said[0].upper()}{said[1:]}; against a Poisson process D = {number(distance)} (p {odds})."
    )
    notes = [
        "D: Kolmogorov-Smirnov distance to the exponential distribution of the same mean. The "
        "mean is estimated from the same gaps (Lilliefors) and ties exaggerate D, so p is only "
        "indicative."
    ]
    if resolution == 1:
        notes.append("Times are whole seconds: “within a second” is in the same second.")
    elif resolution > 1:
        notes.append(
            f"Times are multiples of {duration(resolution)}: what is shorter cannot be seen."
        )
    plot = cumulative_plot(
        "gaps",
        "gap_seconds",
        "time to the next submission (log scale)",
        "share of submissions",
        verdict,
        x_kind="duration",
    )
    return Answer(
        verdict, scalars, {"gaps": cumulative_shares(gaps, "gap_seconds")}, (plot,), tuple(notes)
    )


def _resolution(gaps: NDArray[np.float64]) -> float:
    """Seconds that all gaps are multiples of: 0 unless they are whole, 1 where they are too few."""
    if not (gaps == np.floor(gaps)).all():
        return 0.0
    if np.count_nonzero(gaps) < _FEWEST:
        return 1.0
    return float(np.gcd.reduce(gaps.astype(np.int64)))
