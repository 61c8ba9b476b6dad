"""What similar jobs took: a log-normal belief from classes of ever closer likeness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.log_normal import LogNormal
from foresail.distributions.point import Point
from foresail.kernels.signatures import PredictorSteps
from foresail.model.distribution import Distribution
from foresail.model.limits import require, require_each_at_least, require_positive
from foresail.model.registry import register
from foresail.predictors.kernels import similar
from foresail.predictors.kernels.request import ignore
from foresail.predictors.stepped import Layout, RefreshingPredictor

_NO_USER_COLUMNS: Final = 0
_WIDEST: Final = 10.0
_MOST_CLASSES: Final = 2**31


@dataclass(frozen=True, slots=True)
class SimilarParameters:
    """Parameters of ``similar``.

    The levels are, from coarse to fine: jobs of a similar requested time (within a factor of the
    square root of 2); of the same user; of the same user and executable; of the same user and
    requested time; of the same user, requested time and cpus.
    """

    decays: tuple[float, ...] = (0.999, 0.9, 0.9, 0.9, 0.9)
    """Per level, what the past of a class counts after one more of its jobs has ended."""
    strengths: tuple[float, ...] = (1.0, 2.0, 2.0, 2.0, 2.0)
    """Per level, how many jobs of a class the belief of the coarser levels counts for."""
    executables: bool = True
    """Use the level of executables, for jobs whose executable is known."""
    shortest_seconds: float = 1.0
    """Shorter runtimes are learned as this, so the belief is about the runtime or this, whichever
    is longer. The default is the bound of the slowdown, below which it tells no jobs apart."""
    unknown_seconds: float = 2700.0
    """Median to expect before anything is known; it counts as one job of the first class."""
    unknown_spread: float = 2.0
    """Standard deviation of the logarithm of the runtime expected then."""
    classes: int = 2**17
    """How many classes to remember at most; each takes 48 bytes."""

    def __post_init__(self) -> None:
        for name in ("decays", "strengths"):
            complete = len(getattr(self, name)) == similar.LEVELS
            require(complete, self, name, f"{similar.LEVELS} numbers")
        require_each_at_least(self, 0, "decays", "strengths")
        require(max(self.decays) <= 1.0, self, "decays", "numbers from 0 to 1")
        require_positive(self, "shortest_seconds", "unknown_seconds")
        narrow = 0.0 < self.unknown_spread <= _WIDEST
        require(narrow, self, "unknown_spread", "above 0 and at most 10")
        require(1 <= self.classes < _MOST_CLASSES, self, "classes", "from 1 to 2^31")


@register("predictor", "similar", parameters=SimilarParameters)
class Similar(RefreshingPredictor):
    """Predicts a distribution: what similar jobs took, the more similar counting the more."""

    def __init__(self, parameters: SimilarParameters) -> None:
        steps = PredictorSteps(
            similar.predict, ignore, similar.observe, similar.predict, similar.belief
        )
        super().__init__(steps, Layout(_model(parameters), _NO_USER_COLUMNS, similar.JOB_COLUMNS))

    def absorb(self, other: Similar) -> None:
        """Learn what another one with the same parameters has learned, but not jobs in flight.

        Sums add up: what a class of both has decayed by since is as if both had just ended.
        """
        similar.absorb(self._state.model, other._state.model, self._codes_of(other))

    def _belief(self, slot: int) -> Distribution:
        mu, sigma, cap = self._state.jobs[slot].tolist()
        return LogNormal(mu, sigma, cap) if cap > 0.0 else Point(0.0)


def _model(parameters: SimilarParameters) -> NDArray[np.float64]:
    model = np.zeros(similar.model_size(parameters.classes))
    mean = math.log(parameters.unknown_seconds)
    model[similar.CLASSES] = parameters.classes
    model[similar.EXECUTABLES] = parameters.executables
    model[similar.PRIOR_MEAN] = mean
    model[similar.PRIOR_SQUARE] = mean**2 + parameters.unknown_spread**2
    model[similar.SHORTEST_SECONDS] = parameters.shortest_seconds
    model[similar.LONGEST] = parameters.unknown_seconds * math.exp(2.0 * parameters.unknown_spread)
    model[similar.DECAYS : similar.STRENGTHS] = parameters.decays
    model[similar.STRENGTHS : similar.ALIKE_KNOWN] = parameters.strengths
    return model
