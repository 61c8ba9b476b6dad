"""Runtimes of similar jobs: a log-normal belief from classes of ever closer likeness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.kernels.log_normal import fill_log_normal_belief, summarise_log_normal
from foresail.distributions.log_normal import LogNormal
from foresail.kernels import columns
from foresail.kernels.compile import bare_kernel, bare_step, part
from foresail.kernels.steps import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs, PredictorSteps
from foresail.model.distribution import Distribution, Floats
from foresail.model.errors import require
from foresail.model.registry import register
from foresail.predictors.kernels.request import ignore
from foresail.predictors.stepped import Layout, RefreshingPredictor

BY_LIMIT: Final = 0
BY_USER: Final = 1
BY_EXECUTABLE: Final = 2
BY_REQUEST: Final = 3
BY_SHAPE: Final = 4
LEVELS: Final = 5
"""Levels: jobs of a similar limit; of the same user; of the same user and executable; of the same
user and limit; of the same user, limit and cpus."""

CLASSES: Final = 0
LONGEST: Final = 1
ALIKE_KNOWN: Final = 2
ALIKE: Final = ALIKE_KNOWN + 1
ALIKE_BELIEF: Final = ALIKE + 4
ALIKE_SUMMARY: Final = ALIKE_BELIEF + 3
TABLE: Final = ALIKE_SUMMARY + columns.SUMMARY_COLUMNS
"""The model: rows of the table, the longest runtime seen (at first: expected); the last prediction,
for jobs of all the same classes until a job ends (1 if there is one; user, executable, limit and
cpus; the job's row; its summary); then the rows of the table, one after the other."""

_WHO: Final = 0
_FIRST: Final = 1
_SECOND: Final = 2
_WEIGHT: Final = 3
_SUM: Final = 4
_SQUARES: Final = 5
COLUMNS: Final = 6
"""A row of the table: the class's key in three numbers, then n (0 in an unused row), S and Q."""

MU: Final = 0
SIGMA: Final = 1
CAP: Final = 2
JOB_COLUMNS: Final = 3
"""A job's row: mean and standard deviation of ln(runtime) as predicted, and where that is cut."""

STRETCH: Final = 1.5
"""Without a limit a belief ends at so many times the longest runtime seen: the tail of a log-normal
guessed from few jobs would otherwise put its mean beyond all sense."""

PROBES: Final = 8
"""Number of rows a class may use."""

SMALLEST_VARIANCE: Final = 1e-4

DECAYS: Final = (0.999, 0.9, 0.9, 0.9, 0.9)
"""Past weight of a class, by level, after one more of its jobs has ended."""
STRENGTHS: Final = (1.0, 2.0, 2.0, 2.0, 2.0)
"""Jobs of a class that the belief of the coarser levels counts for, by level."""
SHORTEST_SECONDS: Final = 1.0
"""Runtime that shorter ones are learned as: below the bound of the slowdown none differ."""
UNKNOWN_SECONDS: Final = 2700.0
UNKNOWN_SPREAD: Final = 2.0
"""Median runtime before anything is known, and the standard deviation of its logarithm; they count
as one job of the first class."""
_PRIOR_MEAN: Final = math.log(UNKNOWN_SECONDS)
_PRIOR_SQUARE: Final = _PRIOR_MEAN**2 + UNKNOWN_SPREAD**2

_BUCKETS_PER_DOUBLING = 2.0
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF_WORD = np.uint64(32)


@part
def _belongs(level: int, slot: int, specs: Floats) -> bool:
    """Return whether the job has a class at this level."""
    return bool(level != BY_EXECUTABLE or specs[slot, columns.EXECUTABLE] >= 0.0)


@part
def _key(level: int, slot: int, specs: Floats) -> tuple[float, float, float]:
    """The job's class at a level: equal for jobs of one class and for no others."""
    limit = specs[slot, columns.REQUESTED]
    if level == BY_LIMIT:
        if not math.isfinite(limit):
            return float(BY_LIMIT), -1.0, 0.0
        return float(BY_LIMIT), math.floor(_BUCKETS_PER_DOUBLING * math.log2(max(limit, 1.0))), 0.0
    who = (specs[slot, columns.USER] + 1.0) * LEVELS + level
    if level == BY_USER:
        return who, 0.0, 0.0
    if level == BY_EXECUTABLE:
        return who, specs[slot, columns.EXECUTABLE], 0.0
    if level == BY_REQUEST:
        return who, limit, 0.0
    return who, limit, specs[slot, columns.CPUS]


@part
def _home(key: tuple[float, float, float], classes: int) -> int:
    """Number of the row at which the search for a class begins."""
    mixed = _MULTIPLIER
    for number in key:
        mixed = (mixed ^ np.float64(number).view(np.uint64)) * _MULTIPLIER
        mixed ^= mixed >> _HALF_WORD
    mixed *= _MULTIPLIER
    return int(((mixed >> _HALF_WORD) * np.uint64(classes)) >> _HALF_WORD)


@part
def _holds(model: Floats, at: int, key: tuple[float, float, float]) -> bool:
    """Return whether the table's row at this place of the model is that of the class."""
    return bool(
        model[at + _WEIGHT] > 0.0
        and model[at + _WHO] == key[0]
        and model[at + _FIRST] == key[1]
        and model[at + _SECOND] == key[2]
    )


@part
def _place(model: Floats, key: tuple[float, float, float]) -> int:
    """Return where in the model the class's row begins, or else that of the row it is to take."""
    classes = int(model[CLASSES])
    home = _home(key, classes)
    lightest = -1
    for i in range(min(PROBES, classes)):
        at = TABLE + (home + i) % classes * COLUMNS
        if model[at + _WEIGHT] == 0.0 or _holds(model, at, key):
            return at
        if lightest < 0 or model[at + _WEIGHT] < model[lightest + _WEIGHT]:
            lightest = at
    return lightest


@part
def _is_alike(model: Floats, spec: Floats) -> bool:
    """Return whether the last prediction is that of this job too."""
    return bool(
        model[ALIKE_KNOWN] != 0.0
        and model[ALIKE] == spec[columns.USER]
        and model[ALIKE + 1] == spec[columns.EXECUTABLE]
        and model[ALIKE + 2] == spec[columns.REQUESTED]
        and model[ALIKE + 3] == spec[columns.CPUS]
    )


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Write the belief about the job; many alike ones often come, or are refreshed, in a row."""
    model, spec, summary = inputs.model, inputs.specs[inputs.slot], inputs.summaries[inputs.slot]
    job = inputs.jobs[inputs.slot]
    if not _is_alike(model, spec):
        _believe(inputs.slot, inputs.specs, model)
        model[ALIKE_KNOWN] = 1.0
        model[ALIKE], model[ALIKE + 1] = spec[columns.USER], spec[columns.EXECUTABLE]
        model[ALIKE + 2], model[ALIKE + 3] = spec[columns.REQUESTED], spec[columns.CPUS]
    for column in range(JOB_COLUMNS):
        job[column] = model[ALIKE_BELIEF + column]
    for column in range(columns.SUMMARY_COLUMNS):
        summary[column] = model[ALIKE_SUMMARY + column]


@part
def _believe(slot: int, specs: Floats, model: Floats) -> None:
    """Pass the prior down the job's classes, and cut the belief at the limit."""
    mean = _PRIOR_MEAN
    square = _PRIOR_SQUARE
    for level in range(LEVELS):
        if not _belongs(level, slot, specs):
            continue
        key = _key(level, slot, specs)
        at = _place(model, key)
        if _holds(model, at, key):
            strength = STRENGTHS[level]
            total = model[at + _WEIGHT] + strength
            mean = (model[at + _SUM] + strength * mean) / total
            square = (model[at + _SQUARES] + strength * square) / total
    sigma = math.sqrt(max(square - mean * mean, SMALLEST_VARIANCE))
    cap = specs[slot, columns.REQUESTED]
    if math.isinf(cap):
        cap = STRETCH * model[LONGEST]
    believed = model[ALIKE_BELIEF:ALIKE_SUMMARY]
    believed[MU], believed[SIGMA], believed[CAP] = mean, sigma, cap
    summarise_log_normal(mean, sigma, cap, 0.0, model[ALIKE_SUMMARY:TABLE])


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Add the runtime to the sums of the job's classes."""
    slot, specs, model, runtime = inputs.slot, inputs.specs, inputs.model, inputs.runtime
    if math.isnan(runtime):
        return
    model[ALIKE_KNOWN] = 0.0
    model[LONGEST] = max(model[LONGEST], runtime, SHORTEST_SECONDS)
    x = math.log(max(runtime, SHORTEST_SECONDS))
    for level in range(LEVELS):
        if not _belongs(level, slot, specs):
            continue
        key = _key(level, slot, specs)
        at = _place(model, key)
        if not _holds(model, at, key):
            model[at + _WHO], model[at + _FIRST], model[at + _SECOND] = key
            model[at + _WEIGHT] = model[at + _SUM] = model[at + _SQUARES] = 0.0
        decay = DECAYS[level]
        model[at + _WEIGHT] = decay * model[at + _WEIGHT] + 1.0
        model[at + _SUM] = decay * model[at + _SUM] + x
        model[at + _SQUARES] = decay * model[at + _SQUARES] + x * x


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: Floats) -> None:
    """The quantiles of the log-normal belief."""
    job = inputs.jobs[inputs.slot]
    if job[CAP] > 0.0:
        fill_log_normal_belief(job[MU], job[SIGMA], job[CAP], 0.0, row)
        return
    for i in range(columns.BELIEF_COLUMNS):
        row[i] = 0.0


@bare_kernel
def absorb(model: Floats, other: Floats, codes: Floats) -> None:
    """Add the sums of another table's classes to those of this one.

    Parameters
    ----------
    model, other
        Of the same parameters; ``other`` is only read.
    codes
        ``codes[column, code]`` is the code here of the user or executable with ``code`` there.
    """
    model[ALIKE_KNOWN] = 0.0
    model[LONGEST] = max(model[LONGEST], other[LONGEST])
    for row in range(int(other[CLASSES])):
        theirs = TABLE + row * COLUMNS
        if other[theirs + _WEIGHT] == 0.0:
            continue
        who, first, second = other[theirs], other[theirs + _FIRST], other[theirs + _SECOND]
        key = _translated(who, first, second, codes)
        # A full table forgets its lightest row, as when learning.
        at = _place(model, key)
        if not _holds(model, at, key):
            model[at + _WHO], model[at + _FIRST], model[at + _SECOND] = key
            model[at + _WEIGHT] = model[at + _SUM] = model[at + _SQUARES] = 0.0
        for column in (_WEIGHT, _SUM, _SQUARES):
            model[at + column] += other[theirs + column]


@part
def _translated(
    who: float, first: float, second: float, codes: Floats
) -> tuple[float, float, float]:
    """A key of another table in the codes of this one."""
    level = int(who) % LEVELS
    user = int(who) // LEVELS - 1
    if level == BY_LIMIT:
        return who, first, second
    if user >= 0:
        who = (codes[columns.USER, user] + 1.0) * LEVELS + level
    if level == BY_EXECUTABLE:
        first = codes[columns.EXECUTABLE, int(first)]
    return who, first, second


_NO_USER_COLUMNS: Final = 0
_MOST_CLASSES: Final = 2**31


@dataclass(frozen=True, slots=True)
class SimilarParameters:
    """Parameters of ``similar``.

    The levels are, from coarse to fine: jobs of a similar requested time (within a factor of the
    square root of 2); of the same user; of the same user and executable; of the same user and
    requested time; of the same user, requested time and cpus.
    """

    classes: int = 2**17
    """Number of classes to remember at most; each takes 48 bytes."""

    def __post_init__(self) -> None:
        require(1 <= self.classes < _MOST_CLASSES, self, "classes", "from 1 to 2^31")


@lru_cache(maxsize=4_096)
def _belief(mu: float, sigma: float, cap: float) -> Distribution:
    """One belief for all jobs of which the same is believed, as of thousands that wait."""
    return LogNormal(mu, sigma, cap) if cap > 0.0 else Point(0.0)


@register("predictor", "similar", parameters=SimilarParameters)
class Similar(RefreshingPredictor):
    """Predicts a distribution: what similar jobs took; an end: O(waiting jobs of its user)."""

    def __init__(self, parameters: SimilarParameters) -> None:
        steps = PredictorSteps(predict, ignore, observe, predict, belief)
        model = np.zeros(TABLE)
        model[CLASSES] = parameters.classes
        model[LONGEST] = UNKNOWN_SECONDS * math.exp(2.0 * UNKNOWN_SPREAD)
        super().__init__(
            steps,
            Layout(
                model,
                _NO_USER_COLUMNS,
                JOB_COLUMNS,
                model_size=TABLE + parameters.classes * COLUMNS,
            ),
        )

    likens_jobs = True

    def absorb(self, other: Similar) -> None:
        """Learn what another one with the same parameters has learned, but not jobs in flight.

        Sums add up: what a class of both has decayed by since is as if both had just ended.
        """
        absorb(self._state.model, other._state.model, self._codes_of(other))

    def _belief(self, slot: int) -> Distribution:
        return _belief(*self._state.jobs[slot].tolist())

    def _beliefs(self, slots: Sequence[int]) -> list[Distribution]:
        return [_belief(*row) for row in self._state.jobs[slots].tolist()]
