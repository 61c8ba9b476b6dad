"""What jobs like this one took, from the coarsest likeness to the finest, as compiled steps.

A job belongs to one class per level. A class keeps decayed sums of x = ln(runtime) of its ended
jobs: weight n, S of x and Q of x squared. A belief starts as a prior and passes down the levels;
each known class draws the two moments of x towards its own, as if the coarser belief were k
more jobs of the class:

    E[x] <- (S + k E[x]) / (n + k)        E[x^2] <- (Q + k E[x^2]) / (n + k)

The belief about x is then normal with these moments: its variance holds the scatter within the
classes as well as what they disagree about.

Classes live in a hash table of a fixed number of rows. A class may use the few rows from its home
on; where others hold all of these, it takes over the one with the least weight.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.log_normal import fill_log_normal_belief, summarise_log_normal
from foresail.kernels.columns import (
    BELIEF_COLUMNS,
    CPUS,
    EXECUTABLE,
    REQUESTED,
    SUMMARY_COLUMNS,
    USER,
)
from foresail.kernels.compile import bare_kernel, bare_step, part
from foresail.kernels.signatures import BELIEF_STEP, PREDICTOR_STEP, PredictorInputs

BY_LIMIT: Final = 0
BY_USER: Final = 1
BY_EXECUTABLE: Final = 2
BY_REQUEST: Final = 3
BY_SHAPE: Final = 4
LEVELS: Final = 5
"""Levels: jobs of a similar limit; of the same user; of the same user and executable; of the same
user and limit; of the same user, limit and cpus."""

CLASSES: Final = 0
EXECUTABLES: Final = 1
PRIOR_MEAN: Final = 2
PRIOR_SQUARE: Final = 3
SHORTEST_SECONDS: Final = 4
LONGEST: Final = 5
DECAYS: Final = 6
STRENGTHS: Final = DECAYS + LEVELS
ALIKE_KNOWN: Final = STRENGTHS + LEVELS
ALIKE: Final = ALIKE_KNOWN + 1
ALIKE_BELIEF: Final = ALIKE + 4
ALIKE_SUMMARY: Final = ALIKE_BELIEF + 3
TABLE: Final = ALIKE_SUMMARY + SUMMARY_COLUMNS
"""The model: rows of the table, whether executables count (1 or 0), the prior's E[x] and E[x^2],
what shorter runtimes count as, the longest runtime seen (at first: expected), a decay and a
strength k per level; the last prediction, for jobs of all the same classes until a job ends (1 if
there is one; user, executable, limit and cpus; the job's row; its summary); then the rows of the
table, one after the other."""

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
"""How many rows a class may use."""

SMALLEST_VARIANCE: Final = 1e-4
_BUCKETS_PER_DOUBLING = 2.0
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF_WORD = np.uint64(32)


def model_size(classes: int) -> int:
    """Length of the model with so many rows in its table."""
    return TABLE + classes * COLUMNS


@part
def _belongs(level: int, slot: int, specs: NDArray[np.float64], model: NDArray[np.float64]) -> bool:
    """Whether the job has a class at this level."""
    if level != BY_EXECUTABLE:
        return True
    return bool(model[EXECUTABLES] != 0.0 and specs[slot, EXECUTABLE] >= 0.0)


@part
def _key(level: int, slot: int, specs: NDArray[np.float64]) -> tuple[float, float, float]:
    """The job's class at a level: equal for jobs of one class and for no others."""
    limit = specs[slot, REQUESTED]
    if level == BY_LIMIT:
        if not math.isfinite(limit):
            return float(BY_LIMIT), -1.0, 0.0
        return float(BY_LIMIT), math.floor(_BUCKETS_PER_DOUBLING * math.log2(max(limit, 1.0))), 0.0
    who = (specs[slot, USER] + 1.0) * LEVELS + level
    if level == BY_USER:
        return who, 0.0, 0.0
    if level == BY_EXECUTABLE:
        return who, specs[slot, EXECUTABLE], 0.0
    if level == BY_REQUEST:
        return who, limit, 0.0
    return who, limit, specs[slot, CPUS]


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
def _holds(model: NDArray[np.float64], at: int, key: tuple[float, float, float]) -> bool:
    """Whether the table's row at this place of the model is that of the class."""
    return bool(
        model[at + _WEIGHT] > 0.0
        and model[at + _WHO] == key[0]
        and model[at + _FIRST] == key[1]
        and model[at + _SECOND] == key[2]
    )


@part
def _place(model: NDArray[np.float64], key: tuple[float, float, float]) -> int:
    """Where in the model the class's row begins, or else that of the row it is to take."""
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
def _is_alike(model: NDArray[np.float64], spec: NDArray[np.float64]) -> bool:
    """Whether the last prediction is that of this job too."""
    return bool(
        model[ALIKE_KNOWN] != 0.0
        and model[ALIKE] == spec[USER]
        and model[ALIKE + 1] == spec[EXECUTABLE]
        and model[ALIKE + 2] == spec[REQUESTED]
        and model[ALIKE + 3] == spec[CPUS]
    )


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """What is believed of the job; many alike ones often come, or are refreshed, in a row."""
    model, spec, summary = inputs.model, inputs.specs[inputs.slot], inputs.summaries[inputs.slot]
    job = inputs.jobs[inputs.slot]
    if not _is_alike(model, spec):
        _believe(inputs.slot, inputs.specs, model)
        model[ALIKE_KNOWN] = 1.0
        model[ALIKE], model[ALIKE + 1] = spec[USER], spec[EXECUTABLE]
        model[ALIKE + 2], model[ALIKE + 3] = spec[REQUESTED], spec[CPUS]
    for column in range(JOB_COLUMNS):
        job[column] = model[ALIKE_BELIEF + column]
    for column in range(SUMMARY_COLUMNS):
        summary[column] = model[ALIKE_SUMMARY + column]


@part
def _believe(slot: int, specs: NDArray[np.float64], model: NDArray[np.float64]) -> None:
    """Pass the prior down the job's classes, and cut the belief at the limit."""
    mean = model[PRIOR_MEAN]
    square = model[PRIOR_SQUARE]
    for level in range(LEVELS):
        if not _belongs(level, slot, specs, model):
            continue
        key = _key(level, slot, specs)
        at = _place(model, key)
        if _holds(model, at, key):
            strength = model[STRENGTHS + level]
            total = model[at + _WEIGHT] + strength
            mean = (model[at + _SUM] + strength * mean) / total
            square = (model[at + _SQUARES] + strength * square) / total
    sigma = math.sqrt(max(square - mean * mean, SMALLEST_VARIANCE))
    cap = specs[slot, REQUESTED]
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
    model[LONGEST] = max(model[LONGEST], runtime, model[SHORTEST_SECONDS])
    x = math.log(max(runtime, model[SHORTEST_SECONDS]))
    for level in range(LEVELS):
        if not _belongs(level, slot, specs, model):
            continue
        key = _key(level, slot, specs)
        at = _place(model, key)
        if not _holds(model, at, key):
            model[at + _WHO], model[at + _FIRST], model[at + _SECOND] = key
            model[at + _WEIGHT] = model[at + _SUM] = model[at + _SQUARES] = 0.0
        decay = model[DECAYS + level]
        model[at + _WEIGHT] = decay * model[at + _WEIGHT] + 1.0
        model[at + _SUM] = decay * model[at + _SUM] + x
        model[at + _SQUARES] = decay * model[at + _SQUARES] + x * x


@bare_step(BELIEF_STEP)
def belief(inputs: PredictorInputs, row: NDArray[np.float64]) -> None:
    """The quantiles of the log-normal belief."""
    job = inputs.jobs[inputs.slot]
    if job[CAP] > 0.0:
        fill_log_normal_belief(job[MU], job[SIGMA], job[CAP], 0.0, row)
        return
    for i in range(BELIEF_COLUMNS):
        row[i] = 0.0


@bare_kernel
def absorb(
    model: NDArray[np.float64], other: NDArray[np.float64], codes: NDArray[np.float64]
) -> None:
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
        at = _place(model, key)
        if not _holds(model, at, key):
            model[at + _WHO], model[at + _FIRST], model[at + _SECOND] = key
            model[at + _WEIGHT] = model[at + _SUM] = model[at + _SQUARES] = 0.0
        for column in (_WEIGHT, _SUM, _SQUARES):
            model[at + column] += other[theirs + column]


@part
def _translated(
    who: float, first: float, second: float, codes: NDArray[np.float64]
) -> tuple[float, float, float]:
    """A key of another table in the codes of this one."""
    level = int(who) % LEVELS
    user = int(who) // LEVELS - 1
    if level == BY_LIMIT:
        return who, first, second
    if user >= 0:
        who = (codes[USER, user] + 1.0) * LEVELS + level
    if level == BY_EXECUTABLE:
        first = codes[EXECUTABLE, int(first)]
    return who, first, second
