"""3Sigma's predictor in plain Python: dictionaries of lists, every score and estimate recomputed.

Without forgetting and with fewer distinct values than bins; slow and obvious.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

ESTIMATORS = 4


@dataclass
class Experience:
    """All that was seen of one feature-value, in order."""

    values: list[float] = field(default_factory=list)
    scored: list[tuple[list[float], float]] = field(default_factory=list)

    def estimates(self, alpha: float, median_of: int, few: int) -> list[float]:
        """Mean, median of the last, rolling average, mean of the last few."""
        rolling = self.values[0]
        for value in self.values[1:]:
            rolling = alpha * value + (1 - alpha) * rolling
        return [
            sum(self.values) / len(self.values),
            statistics.median(self.values[-median_of:]),
            rolling,
            statistics.mean(self.values[-few:]),
        ]

    def errors(self) -> list[float]:
        """Sum of absolute errors over sum of values, by estimator."""
        total = sum(value for _, value in self.scored)
        summed = [sum(abs(said[k] - value) for said, value in self.scored) for k in range(4)]
        return [(e / total) if total else (math.inf if e else 0.0) for e in summed]


class SlowHistory:
    """``keys(job)`` lists the job's value of every feature (None: it has none), the last for all.

    ``attributes`` are the numbers of attributes of the features.
    """

    def __init__(self, keys, attributes, alpha=0.6, median_of=100, few=3) -> None:
        self._keys = keys
        self._attributes = attributes
        self._settings = (alpha, median_of, few)
        self._seen: dict[object, Experience] = {}
        self._said: dict[object, dict[int, list[float]]] = {}

    def predict(self, name, job) -> tuple[int, list[float]]:
        """The number of the winning expert (-1: none) and the history of its feature-value."""
        known = {}
        said = self._said[name] = {}
        for number, value in enumerate(self._keys(job)):
            experience = self._seen.get((number, value))
            if value is not None and experience is not None:
                known[number] = experience
                said[number] = experience.estimates(*self._settings)
        last = len(self._attributes) - 1
        candidates = [
            (error, -len(known[number].values), number, k)
            for number in known
            if number != last and known[number].scored
            for k, error in enumerate(known[number].errors())
        ]
        if candidates:
            _, _, number, k = min(candidates)
        elif any(number != last for number in known):
            number = max((n for n in known if n != last), key=lambda n: (self._attributes[n], -n))
            k = 0
        elif known:
            number, k = last, 0
        else:
            return -1, []
        return number * ESTIMATORS + k, list(known[number].values)

    def said(self, name, expert) -> float:
        """What an expert said at the job's submission."""
        return self._said[name][expert // ESTIMATORS][expert % ESTIMATORS]

    def observe(self, name, job, runtime) -> None:
        """Score what was said, then remember the runtime."""
        for number, value in enumerate(self._keys(job)):
            if value is None:
                continue
            experience = self._seen.setdefault((number, value), Experience())
            if number in self._said[name]:
                experience.scored.append((self._said[name][number], runtime))
            experience.values.append(runtime)
