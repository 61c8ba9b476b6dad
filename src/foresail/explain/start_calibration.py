"""Ranges of starts corrected by how earlier ones have held.

The futures that forecasts come from leave out what makes real starts differ from all of them at
once: beliefs that are wrong for many jobs alike, orders that change, jobs that were not expected.
Where past starts have lain within their own forecasts says where the next ones will: the 10, 50 and
90 % points of a forecast are replaced by those points of it that so many of the like were below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from foresail.explain.forecast import LEVELS, Range, WaitingForecasts
from foresail.model.distribution import Booleans, Floats

MOST: Final = 600
"""Number of the latest questions whose outcome counts; earlier ones weigh next to nothing."""

_HALF_LIFE: Final = 300.0
"""A question weighs half as much as one that was asked so many questions later."""

_BANDWIDTH: Final = 1.5
"""Bandwidths of a Gaussian kernel over forecast waits, as by ``_scaled``, and over logarithms of
how many jobs wait."""

_PASSED_BANDWIDTH: Final = 0.2
"""Bandwidth over the share of the wait that has passed: who has just come knows less of it."""

_PRIOR: Final = 5.0
_PRIOR_SPREADS: Final = (1.2, 0.85)
"""So many starts count as seen, scattered so many times as far as was forecast: more of jobs that
have just come than of those at half of their wait, whom less can go ahead of that is not drawn."""

_MEDIAN_KEPT: Final = 0.5
"""The median moves less far than starts say, by the share of the wait that has passed, up to this:
as drawn it is the nearer the more of the wait is over."""

_LEAST_SCALE: Final = 0.5
_MOST_SCALE: Final = 3.0
"""Bounds of how much narrower or wider each half of a range becomes."""

_MOST_FACTOR: Final = 4.0
"""No point of a range moves beyond so many times its latest wait, or below such a part of its
earliest: widened by ratios, a few long ranges would otherwise reach for ever."""

_LEAST_HALF: Final = 0.05
"""No half of a range counts as narrower (see ``_scaled``): 3 s of short waits, 5 % of long ones."""

_SHORT_SECONDS: Final = 60.0
"""Waits are compared by ratios, those much shorter than this by differences."""

_TAIL: Final = NormalDist().inv_cdf(LEVELS[-1])
_FURTHEST: Final = 8.0
"""Bound of the place of a start within its forecast."""

_POINTS: Final = 30
_NORMAL: Final = np.array(
    [NormalDist().inv_cdf((number + 0.5) / _POINTS) for number in range(_POINTS)]
)
"""Places of what counts as seen, by spread."""

_KNOTS: Final = np.linspace(0.0, 12.0, 41)
_PASSED: Final = np.linspace(0.0, 1.0, 5)
"""Forecast waits, as by ``_scaled`` (up to 113 days), and shares of waits that have passed, for
which corrections are worked out."""


@dataclass(frozen=True, slots=True)
class AskedStart:
    """A forecast of a start, and what is known of its outcome.

    All that needs to be stored of a question: between and beyond its three points a forecast is
    taken to be a normal distribution with two different halves over scaled waits.

    Parameters
    ----------
    submitted_seconds, made_seconds
        When the job came, and when it was asked.
    drawn
        What was forecast, before any correction.
    waiting
        How many jobs were forecast at once (``len`` of the forecasts).
    seconds, has_started
        When the job started, or until when it is known not to have.
    """

    submitted_seconds: float
    made_seconds: float
    drawn: Range
    waiting: int
    seconds: float
    has_started: bool = True


class StartCalibration:
    """Corrections of forecasts by the outcomes of earlier ones; changes nothing without any.

    Parameters
    ----------
    asked
        Earlier forecasts, in the order in which they were made. Jobs that wait longer than was
        forecast count too (Kaplan and Meier's estimate of distributions from censored times).
    """

    def __init__(self, asked: Sequence[AskedStart] = ()) -> None:
        known = [each for each in asked if math.isfinite(each.drawn.high)][-MOST:]
        drawn = np.array([(e.drawn.low, e.drawn.median, e.drawn.high) for e in known])
        made = np.array([each.made_seconds for each in known])
        low, middle, high = _scaled(drawn.reshape(-1, 3).T - made)
        seconds = np.array([each.seconds for each in known])
        self._places = _places(_scaled(seconds - made), low, middle, high)
        self._started = np.array([each.has_started for each in known], dtype=bool)
        self._expected = middle
        self._line = np.log1p([each.waiting for each in known])
        submitted = np.array([each.submitted_seconds for each in known])
        self._passed = _passed(submitted, made, drawn.reshape(-1, 3)[:, 1])
        recency = 0.5 ** (np.arange(len(known))[::-1] / _HALF_LIFE)
        self._weights = recency / np.sqrt(_times_counted(made, seconds))

    def corrected(self, made_seconds: float, drawn: WaitingForecasts) -> WaitingForecasts:
        """Return corrected forecasts; of the ends as of the starts.

        What is uncertain of a start is how long after the earliest one that can be it is.
        """
        if not len(self._places):
            return drawn
        known = np.isfinite(drawn.starts[-1])
        earliest = np.maximum(drawn.earliest[known], made_seconds)
        low, middle, high = _scaled(drawn.starts[:, known] - earliest)
        passed = _passed(drawn.submitted[known], made_seconds, drawn.starts[1, known])
        nearest = np.rint(passed * (len(_PASSED) - 1)).astype(int)
        points = np.empty((len(LEVELS), len(middle)))
        for number in np.unique(nearest).tolist():
            some = nearest == number
            table = self._points(len(drawn), _PASSED[number])
            points[:, some] = [np.interp(middle[some], _KNOTS, column) for column in table.T]
        bounds = low - math.log(_MOST_FACTOR), high + math.log(_MOST_FACTOR)
        found = [np.clip(_at(place, low, middle, high), *bounds) for place in points]
        starts, ends = drawn.starts.copy(), drawn.ends.copy()
        moved = starts[:, known]
        starts[:, known] = [earliest + _seconds(each) for each in found]
        ends[:, known] += starts[:, known] - moved
        ends[:, known] = np.maximum.accumulate(ends[:, known], axis=0)
        columns = drawn.never, drawn.misses, drawn.causes, drawn.submitted, drawn.earliest
        return WaitingForecasts(drawn.places, starts, ends, drawn.runtimes, *columns)

    def _points(self, waiting: int, passed: float) -> Floats:
        """Return the places that replace the stated quantiles, by forecast wait; (knots, 3)."""
        apart = (_KNOTS[:, None] - self._expected) ** 2 + (math.log1p(waiting) - self._line) ** 2
        apart = apart / _BANDWIDTH**2 + ((passed - self._passed) / _PASSED_BANDWIDTH) ** 2
        weights = self._weights * np.exp(-0.5 * apart)
        prior = np.full((len(_KNOTS), _POINTS), _PRIOR / _POINTS)
        spread = np.interp(passed, (0.0, 0.5), _PRIOR_SPREADS)
        places = np.append(self._places, spread * _NORMAL)
        started = np.append(self._started, np.ones(_POINTS, dtype=bool))
        order = np.lexsort((~started, places))
        weights = np.concatenate((weights, prior), axis=1)[:, order]
        early, middle, late = quantiles(places[order], weights, started[order]).T
        half = _TAIL * _LEAST_SCALE, _TAIL * _MOST_SCALE
        early = middle - np.clip(middle - early, *half)
        late = middle + np.clip(late - middle, *half)
        moved = np.clip((1.0 - min(passed, _MEDIAN_KEPT)) * middle, early, late)
        return np.stack((early, moved, late), axis=1)


def quantiles(values: Floats, weights: Floats, seen: Booleans) -> Floats:
    """Return the quantiles at ``LEVELS`` of values of which some are only known to be exceeded.

    Parameters
    ----------
    values
        In ascending order, of equal ones those that are seen first.
    weights
        For each row of the result, shape (rows, values).
    seen
        Which values are so; the true ones of the others are greater.
    """
    at_risk = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    hazards = np.where(seen, weights, 0.0) / at_risk
    below = 1.0 - np.cumprod(1.0 - hazards, axis=1)
    reached = below[:, :, None] >= np.array(LEVELS) - 1e-9
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), values.size - 1)
    return values[first]


def _times_counted(made: Floats, seconds: Floats) -> Floats:
    """Return how often each wait from its question on is among them, others by their overlap.

    What goes wrong in a stretch of time is wrong for all that wait in it: one piece of evidence.
    """
    lengths = np.maximum(seconds - made, 1.0)
    shared = np.minimum(seconds[:, None], seconds) - np.maximum(made[:, None], made)
    np.maximum(shared, 0.0, out=shared)
    shared /= lengths[:, None] + lengths - shared
    np.fill_diagonal(shared, 1.0)
    counted: Floats = shared.sum(axis=1)
    return counted


def _passed(submitted: Floats, made_seconds: Floats | float, start_seconds: Floats) -> Floats:
    """Return which shares of waits have passed, were the starts at these times."""
    waited = np.maximum(made_seconds - submitted, 0.0)
    return np.asarray(waited / np.maximum(start_seconds - submitted, np.maximum(waited, 1.0)))


def _places(waited: Floats, low: Floats, middle: Floats, high: Floats) -> Floats:
    """Return where starts are in their forecasts, as if these were standard normal."""
    off = waited - middle
    half = np.maximum(np.where(off < 0.0, middle - low, high - middle), _LEAST_HALF)
    return np.clip(_TAIL * off / half, -_FURTHEST, _FURTHEST)


def _at(places: Floats, low: Floats, middle: Floats, high: Floats) -> Floats:
    """Return the waits at such places of forecasts."""
    half = np.maximum(np.where(places < 0.0, middle - low, high - middle), _LEAST_HALF)
    return np.asarray(middle + places * half / _TAIL)


def _scaled(wait_seconds: Floats) -> Floats:
    return np.log1p(np.maximum(0.0, wait_seconds) / _SHORT_SECONDS)


def _seconds(scaled: Floats) -> Floats:
    return np.maximum(0.0, _SHORT_SECONDS * np.expm1(np.minimum(scaled, 60.0)))
