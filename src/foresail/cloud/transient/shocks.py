"""Types that fail together: a few states of the markets, in each of which they are independent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.transient.joint import JointHistory

_MOST_ROUNDS: Final = 500
_ENOUGH: Final = 1e-9
_MOST_STATES: Final = 4
_PATTERN_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class CommonShocks:
    """Probability of each state of the markets, and of each type to be up in it.

    The first state is the calm one. In a shock several types are down more often than usual, which
    is what makes them fail together; given the state they fail each by itself, so that availability
    is a mean of availability polynomials and stays exact.
    """

    names: tuple[str, ...]
    """Of the types."""
    weights: NDArray[np.float64]
    """Shape (states,): 0 or more, sum 1."""
    up: NDArray[np.float64]
    """Shape (states, types): probabilities."""

    def __post_init__(self) -> None:
        if self.up.shape != (self.weights.size, len(self.names)) or not self.weights.size:
            raise ValueError("up must have a row per state and a column per type")
        if np.any(self.weights < 0.0) or abs(float(self.weights.sum()) - 1.0) > _ENOUGH:
            raise ValueError("weights must not be negative, and their sum must be 1")
        if np.any(self.up < 0.0) or np.any(self.up > 1.0):
            raise ValueError("up must be probabilities")


def fitted_shocks(history: JointHistory, *, doubt_hours: float = 0.0) -> CommonShocks:
    """States of the markets that explain which types were up together, by likelihood.

    Latent classes by expectation and maximisation on the time spent in each pattern of types that
    are up. A pattern that lasted counts once an hour, for hours in a row are no news. There are as
    many states, up to four, as Schwarz's criterion prefers.

    ``doubt_hours`` are put to what was seen, half of them up and half down for every type: a market
    that was never seen down is not certain. Such an hour falls into each state in proportion.
    """
    patterns, inverse = np.unique(history.up, axis=0, return_inverse=True)
    hours = np.bincount(inverse.ravel(), history.seconds, patterns.shape[0]) / _PATTERN_SECONDS
    seen = patterns.astype(np.float64)
    best, least = _fit(history.names, seen, hours, 1)
    for tried in range(2, min(_MOST_STATES, patterns.shape[0]) + 1):
        shocks, criterion = _fit(history.names, seen, hours, tried)
        if criterion < least:
            best, least = shocks, criterion
    return _doubted(best, float(hours.sum()), doubt_hours)


def _doubted(shocks: CommonShocks, hours: float, doubt_hours: float) -> CommonShocks:
    """Every type as available by itself as with independent types and the same doubt."""
    kept = hours / (hours + doubt_hours)
    up = kept * shocks.up + 0.5 * (1.0 - kept)
    return CommonShocks(shocks.names, shocks.weights, up)


def _fit(
    names: tuple[str, ...], seen: NDArray[np.float64], hours: NDArray[np.float64], states: int
) -> tuple[CommonShocks, float]:
    """Shocks, and Schwarz's criterion (smaller is better).

    Begins with the patterns sorted by how many types are down, cut into the states.
    """
    down = seen.shape[1] - seen.sum(axis=1)
    distinct = np.unique(down)
    cuts = np.array_split(distinct, states) if distinct.size >= states else [distinct]
    belongs = np.full((seen.shape[0], states), 0.1 / states)
    for state, part in enumerate(cuts):
        if part.size:
            belongs[np.isin(down, part), state] += 0.9
    belongs /= belongs.sum(axis=1, keepdims=True)
    likelihood = -math.inf
    for _ in range(_MOST_ROUNDS):
        mass = belongs * hours[:, np.newaxis]
        total = np.maximum(mass.sum(axis=0), 1e-12)
        weights = total / total.sum()
        up = np.clip((mass.T @ seen) / total[:, np.newaxis], 0.0, 1.0)
        logs = np.log(weights) + _log_odds(seen, up)
        peak = logs.max(axis=1, keepdims=True)
        summed = np.exp(logs - peak).sum(axis=1)
        belongs = np.exp(logs - peak) / summed[:, np.newaxis]
        before, likelihood = likelihood, float(hours @ (peak[:, 0] + np.log(summed)))
        if likelihood - before < _ENOUGH * (1.0 + abs(likelihood)):
            break
    calm_first = np.argsort(-up.sum(axis=1), kind="stable")
    shocks = CommonShocks(names, weights[calm_first] / weights.sum(), up[calm_first])
    parameters = states * seen.shape[1] + states - 1
    return shocks, parameters * math.log(max(hours.sum(), 2.0)) - 2.0 * likelihood


def _log_odds(seen: NDArray[np.float64], up: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probability of each pattern (rows) in each state (columns)."""
    log_up = np.log(np.maximum(up, 1e-300))
    log_down = np.log(np.maximum(1.0 - up, 1e-300))
    return np.asarray(seen @ log_up.T + (1.0 - seen) @ log_down.T)
