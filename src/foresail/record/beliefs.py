"""Beliefs of a run: as the event log keeps them, and predictor calls that lead to them again."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.basic import Point
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.summary import quantiles_at
from foresail.model.distribution import Distribution
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.record.records import Predicted

LEVELS: Final = (
    *(0.0, 0.005, 0.01, 0.025, 0.05),
    *(step / 20 for step in range(2, 19)),
    *(0.95, 0.975, 0.99, 0.995, 1.0),
)
"""Levels of the quantiles that are kept; 27."""

_NEARLY_ONE: Final = 0.9999
"""Level in place of 1 where a belief has no end."""

_EXACT: Final = (0.10, 0.50, 0.90)
"""Levels of the quantiles that a record holds to the last digit."""

_FORMAT: Final = ".4g"
_ALL_IN_SHORT: Final = " ".join(["%" + _FORMAT] * len(LEVELS))

_MOST_KNOWN: Final = 1_000
_known: dict[int, tuple[Distribution, tuple[float, ...]]] = {}
"""Beliefs by identity, and what is kept of each: thousands of jobs may share one."""


def in_short(value: float) -> float:
    """A number to four digits."""
    return float(format(value, _FORMAT))


def kept(belief: Distribution) -> tuple[float, ...]:
    """The belief's quantiles (seconds) at ``LEVELS``, to four digits; nothing for a point."""
    known = _known.get(id(belief))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(belief)] = belief, _quantiles(belief)
    return known[1]


def _quantiles(belief: Distribution) -> tuple[float, ...]:
    if isinstance(belief, Point) or belief.quantile(LEVELS[1]) == belief.quantile(_NEARLY_ONE):
        return ()
    values = quantiles_at(belief, _LEVELS[len(LEVELS)]).tolist()
    if values[-1] == float("inf"):
        values[-1] = belief.quantile(_NEARLY_ONE)
    return tuple(map(float, (_ALL_IN_SHORT % tuple(values)).split()))


def differ(one: Distribution, other: Distribution) -> bool:
    """True for two beliefs of which a log keeps different numbers."""
    return one is not other and (one.mean(), kept(one)) != (other.mean(), kept(other))


def _levels(*levels: float) -> NDArray[np.float64]:
    known = np.array(levels)
    known.flags.writeable = False
    return known


_LEVELS: Final = {len(LEVELS): _levels(*LEVELS), 5: _levels(0.0, *_EXACT, 1.0)}
"""Levels of the quantiles that are kept, by their number; in logs before 0.2 of a range alone."""


class LoggedBelief(Quantiles):
    """A belief as a record keeps it: straight between its quantiles, with its exact mean.

    There may be some ten thousand of them, so that no array is kept, and the levels are shared.
    """

    __slots__ = ("_kept", "_mean", "_of_record")

    def __init__(self, mean: float, exact: tuple[float, ...], values: tuple[float, ...]) -> None:
        self._mean = mean
        self._of_record = exact
        self._kept = array("d", sorted(values))
        if len(values) not in _LEVELS or not 0.0 <= self._kept[0] <= self._kept[-1] < np.inf:
            raise ValueError(f"no quantiles of a runtime: {values}")

    @property
    def levels(self) -> NDArray[np.float64]:  # type: ignore[override] # never set
        """Probabilities, strictly ascending from 0 to 1."""
        return _LEVELS[len(self._kept)]

    @property
    def values(self) -> NDArray[np.float64]:  # type: ignore[override] # never set
        """The quantile at each level."""
        values = np.frombuffer(self._kept)
        values.flags.writeable = False
        return values

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return LoggedBelief, (self._mean, self._of_record, tuple(self._kept))

    def mean(self) -> float:
        """Expected value."""
        return self._mean

    def quantile(self, level: float) -> float:
        """Smallest value that the quantity stays below with at least this probability."""
        return self._of_record[_EXACT.index(level)] if level in _EXACT else super().quantile(level)


def is_alike(belief: Distribution, logged: Distribution) -> bool:
    """True if a log that keeps one belief would tell the same numbers of the other."""
    return belief.mean() == logged.mean() and all(
        belief.quantile(level) == logged.quantile(level) for level in _EXACT
    )


def belief_of(record: Predicted) -> Distribution:
    """The belief that a record keeps, or a point.

    Of a log that was written before quantiles were kept, the range alone.
    """
    low, median, high = record.low_seconds, record.median_seconds, record.high_seconds
    values = record.belief
    if not values and low < high:
        values = (low, low, median, high, high)
    return shared_belief(record.mean_seconds, (low, median, high), values)


@lru_cache(maxsize=4_096)
def shared_belief(
    mean: float, exact: tuple[float, ...], values: tuple[float, ...]
) -> LoggedBelief | Point:
    """One belief for all jobs of which a log records the same, as of thousands that wait."""
    return LoggedBelief(mean, exact, values) if values else Point(mean)


class CallKind(Enum):
    """Kind of a call about a job that waits, or begins to run."""

    ASKED = auto()
    """Submitted, and its runtime predicted."""
    ASKED_AGAIN = auto()
    """The belief was made anew, and came out otherwise: that teaches the predictor nothing, but is
    what the job is believed to take from then on."""
    STARTED = auto()
    """An attempt started."""
    NOT_BEGUN = auto()
    """The start of an attempt was not carried out."""
    WITHDRAWN = auto()
    """Withdrawn: it will not run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call about a job at a time."""

    kind: CallKind
    job: Job
    now: float


@dataclass(frozen=True, slots=True)
class Observed:
    """An attempt ended, of this run or of an earlier one; or a part of a job."""

    job: Job
    outcome: Outcome
    is_part: bool = False


PredictorCall = Asked | Observed


@dataclass(frozen=True, slots=True)
class JobBeliefs:
    """About one job: as it was submitted, and from now on while it waits or runs."""

    first: Distribution
    latest: Distribution


def teach(predictor: Predictor, calls: Iterable[PredictorCall]) -> Mapping[str, JobBeliefs]:
    """Make all calls to a fresh predictor, in order; returns what it believes of each job."""
    beliefs: dict[str, JobBeliefs] = {}
    for call in calls:
        job = call.job
        job_id = job.job_id
        match call:
            case Asked(kind=CallKind.ASKED, now=now):
                belief = predictor.predict(job, now)
                beliefs[job_id] = JobBeliefs(belief, belief)
            case Asked(kind=CallKind.ASKED_AGAIN, now=now) if predictor.refreshes_predictions:
                latest = predictor.refreshed(job, now)
                beliefs[job_id] = replace(beliefs[job_id], latest=latest)
            case Asked(kind=CallKind.STARTED, now=now):
                predictor.started(job, now)
            case Asked(kind=CallKind.NOT_BEGUN, now=now):
                predictor.not_started(job, now)
                beliefs[job_id] = replace(beliefs[job_id], latest=beliefs[job_id].first)
            case Asked(kind=CallKind.WITHDRAWN, now=now):
                predictor.withdrawn(job, now)
            case Observed(outcome=outcome, is_part=True):
                predictor.part_ended(job, outcome)
            case Observed(outcome=outcome):
                predictor.observe(job, outcome)
                if job_id in beliefs:  # should it go back to the queue, it is with its first belief
                    beliefs[job_id] = replace(beliefs[job_id], latest=beliefs[job_id].first)
    return beliefs
