"""Sampling of a job by its first tasks: how many are pilots, which, and what follows.

Source: Jajoo et al., SLearn (NSDI 2022), errors of its figures corrected. The drawn
order and the statistics other than the mean are ours.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import types

from foresail.distributions.kernels.log_normal import upper_tail
from foresail.kernels.compile import bare_kernel, part
from foresail.model.distribution import Floats, Integers

MEAN: Final = 0
POSTERIOR: Final = 1
LOG_POSTERIOR: Final = 2
"""Estimates that stand for a task of the job: the mean of the pilots, or what is believed when
history is joined with them: the mean if both are normal, the median if both are log-normal."""

PERCENT: Final = 0
STATISTIC: Final = 1
SEED: Final = 2
TRIALS: Final = 3
MARGIN: Final = 4
ASKED: Final = 5
VARIATION: Final = 6
VARIATION_JOBS: Final = 7
CHOOSES: Final = 8
SPREADS: Final = 9
HOPELESS_BELOW: Final = 10
MOST_RUNNING: Final = 11
HELD: Final = 12
WORKED: Final = 13
PILOT_NUMBERS: Final = 14
"""The numbers: percent of a job's tasks that are pilots (0: learned), the statistic, the seed
of what is drawn; of the learned ratio, the jobs that each of the first
ratios is tried with, and the factor by which one must be better before the next is tried; what was
learned: jobs that have asked for a ratio, and the sum of squared coefficients of variation within
jobs, with their number; 1 if jobs of which history knows more than pilots would are not sampled;
what is likely, in standard deviations of how far off history has been (0: it is not asked); the
odds of being in time below which a job gives up its place (0: deadlines are not heeded). What these
need: how many tasks have run at once at most, the seconds that tasks have held slots, and what
these are at speed 1."""

RATIOS: Final = 5
FILLED: Final = 0
NEXT: Final = 1
SCORE: Final = 2
FIRST_OUTCOME: Final = 3
"""A row of the scores, for the ratio of as many percent as its number: how many outcomes it holds,
where the next one goes, their mean, and from there on the outcomes."""

_BEGINNING: Final = (3, 2, 4)
_USUAL: Final = 3
_SHIFT_30: Final = np.uint64(30)
_SHIFT_27: Final = np.uint64(27)
_SHIFT_31: Final = np.uint64(31)
_SHIFT_11: Final = np.uint64(11)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR: Final = np.uint64(0x94D049BB133111EB)
_UNIT: Final = 2.0**-53


class Pilots(NamedTuple):
    """Rules and memory of sampling."""

    numbers: Floats
    """Numbers as above; shape (PILOT_NUMBERS,)."""
    scores: Floats
    """A row per ratio from 0; shape (RATIOS + 1, FIRST_OUTCOME + outcomes kept)."""
    proved: Floats
    """Worth of history as it turned out (``pilots.nothing_proved``)."""


_TABLE = types.float64[:, ::1]
PILOTS = types.NamedTuple((types.float64[::1], _TABLE, _TABLE), Pilots)


def no_outcomes(kept: int) -> Floats:
    """Scores before any job has ended."""
    return np.zeros((RATIOS + 1, FIRST_OUTCOME + kept))


@bare_kernel
def drawn(seed: int, stream: int, number: int) -> float:
    """A number between 0 and 1 that depends on its three names alone (SplitMix64)."""
    bits = np.uint64(seed) * _SECOND_FACTOR + np.uint64(stream) * _FIRST_FACTOR
    bits += (np.uint64(number) + np.uint64(1)) * _STEP
    for _ in range(2):
        bits = (bits ^ (bits >> _SHIFT_30)) * _FIRST_FACTOR
        bits = (bits ^ (bits >> _SHIFT_27)) * _SECOND_FACTOR
        bits = bits ^ (bits >> _SHIFT_31)
    return float(bits >> _SHIFT_11) * _UNIT


@bare_kernel
def draw_pilots(order: Integers, tasks: int, pilots: int, seed: int, job: int) -> None:
    """Bring so many of the first ``tasks`` of an order to its front, each as likely.

    ``job`` counts the jobs in order of submission.
    """
    for i in range(pilots):
        other = i + int(drawn(seed, job, i) * (tasks - i))
        kept = order[i]
        order[i] = order[other]
        order[other] = kept


@bare_kernel
def ratio_percent(numbers: Floats, scores: Floats) -> int:
    """The share of the next job's tasks that are to be pilots, by the outcomes of the last jobs."""
    asked = int(numbers[ASKED])
    numbers[ASKED] += 1.0
    trials = numbers[TRIALS]
    for i in range(len(_BEGINNING)):
        if asked < (i + 1) * trials:
            return _BEGINNING[i]
    best = 0
    for ratio in range(1, RATIOS + 1):
        if scores[ratio, FILLED] > 0.0:
            score = scores[ratio, SCORE]
            equal = best > 0 and score == scores[best, SCORE]
            if best == 0 or score < scores[best, SCORE] or (equal and ratio == _USUAL):
                best = ratio
    if best == 0:
        return _USUAL
    if scores[_USUAL, FILLED] > 0.0:
        better = numbers[MARGIN] * scores[best, SCORE] < scores[_USUAL, SCORE]
        if best == _USUAL - 1 and better:
            return 1
        if best == _USUAL + 1 and better:
            return RATIOS
    return best


@bare_kernel
def learn_ratio(scores: Floats, ratio: int, outcome: float) -> None:
    """Add a job's completion time over its size to the last outcomes of its ratio."""
    row = scores[ratio]
    kept = row.size - FIRST_OUTCOME
    row[FIRST_OUTCOME + int(row[NEXT])] = outcome
    row[NEXT] = (row[NEXT] + 1.0) % kept
    row[FILLED] = min(row[FILLED] + 1.0, float(kept))
    total = 0.0
    for i in range(int(row[FILLED])):
        total += row[FIRST_OUTCOME + i]
    row[SCORE] = total / row[FILLED]


@bare_kernel
def pilot_count(percent: float, tasks: int) -> int:
    """Return how many of so many tasks are pilots: one at least, all at most."""
    return min(max(math.floor(percent * tasks / 100.0), 1), tasks)


@part
def _mean(values: Floats) -> float:
    total = 0.0
    for value in values:
        total += value
    return total / values.size


@bare_kernel
def posterior_mean(
    pilots: Floats, task_variance: float, prior: float, prior_variance: float
) -> float:
    """Mean of the belief after the pilots (seconds of each), all normal.

    ``task_variance`` is that of tasks about their job's mean; ``prior`` and ``prior_variance`` are
    the belief about the job's mean before (an infinite variance: none).
    """
    if not (math.isfinite(prior) and math.isfinite(prior_variance)):
        return _mean(pilots)
    if prior_variance == 0.0:
        return prior
    if task_variance == 0.0:
        return _mean(pilots)
    weight = pilots.size / task_variance
    mean = (weight * _mean(pilots) + prior / prior_variance) / (weight + 1.0 / prior_variance)
    return float(mean)


@bare_kernel
def history_is_surer(numbers: Floats, prior: float, prior_variance: float, pilots: int) -> bool:
    """Return whether a belief about the mean of a job's tasks errs less than so many pilots would.

    Their mean has the variance of tasks, as other jobs have shown it, over their number (spec
    slearn, section 6.1). False as long as no other job has.
    """
    jobs = numbers[VARIATION_JOBS]
    if jobs == 0.0 or not (math.isfinite(prior) and math.isfinite(prior_variance)):
        return False
    return bool(prior_variance * pilots < numbers[VARIATION] / jobs * prior * prior)


@part
def _task_variance(numbers: Floats, pilots: Floats) -> float:
    """Variance of tasks within the job: its own pilots', joined with what other jobs' was."""
    mean = _mean(pilots)
    squares = 0.0
    for value in pilots:
        squares += (value - mean) ** 2
    jobs = numbers[VARIATION_JOBS]
    if jobs == 0.0:
        return squares / max(pilots.size - 1, 1)
    usual = numbers[VARIATION] / jobs * mean * mean
    return float((squares + usual) / pilots.size)


@bare_kernel
def usual_variation(numbers: Floats) -> float:
    """Squared coefficient of variation of tasks within jobs that have ended; 0 before any has."""
    jobs = numbers[VARIATION_JOBS]
    return numbers[VARIATION] / jobs if jobs > 0.0 else 0.0


@bare_kernel
def relative_variance(numbers: Floats, pilots: Floats) -> float:
    """Squared coefficient of variation of tasks within the job; 0 if its pilots took no time."""
    mean = _mean(pilots)
    return _task_variance(numbers, pilots) / (mean * mean) if mean > 0.0 else 0.0


@bare_kernel
def log_posterior_median(
    pilots: Floats, relative_variance: float, prior: float, prior_variance: float
) -> float:
    """Median of the belief after the pilots, if the logarithm of a job's mean is normal.

    Long jobs among short ones, which a normal belief cannot think of, do not surprise it.
    ``pilots`` are seconds of each, ``relative_variance`` is the squared coefficient of variation of
    tasks within a job; ``prior`` and ``prior_variance`` are of the logarithm of the job's mean
    before.
    """
    mean = _mean(pilots)
    if mean <= 0.0 or not (math.isfinite(prior) and math.isfinite(prior_variance)):
        return mean
    variance = math.log1p(relative_variance / pilots.size)
    if variance + prior_variance == 0.0:
        return mean
    weight = prior_variance / (variance + prior_variance)
    return math.exp(weight * math.log(mean) + (1.0 - weight) * prior)


class Prior(NamedTuple):
    """A belief about the mean of a job's tasks: its mean and variance, and its logarithm's."""

    mean: float
    variance: float
    log_mean: float
    log_variance: float


@bare_kernel
def task_seconds(numbers: Floats, pilots: Floats, prior: Prior) -> float:
    """Return what a task of the job is expected to take, by its pilots (seconds of each).

    ``prior`` is the belief about the mean of the job's tasks before (nan: none).
    """
    statistic = numbers[STATISTIC]
    if statistic == POSTERIOR:
        return posterior_mean(pilots, _task_variance(numbers, pilots), prior.mean, prior.variance)
    if statistic == LOG_POSTERIOR:
        relative = relative_variance(numbers, pilots)
        return log_posterior_median(pilots, relative, prior.log_mean, prior.log_variance)
    return _mean(pilots)


@bare_kernel
def total_seconds(sampled: float, predicted: float, others: float, share: float) -> float:
    """Seconds of all stages of a job, whose first one was sampled.

    ``sampled`` and ``predicted`` are seconds of the first stage's tasks as sampled, and as history
    has it; ``others`` those of the other stages' tasks as history has them (nan if unknown), which
    are ``share`` times as many.
    """
    if share == 0.0:
        return sampled
    if not math.isfinite(others):
        return sampled * (1.0 + share)
    ratio = sampled / predicted if predicted > 0.0 and math.isfinite(predicted) else 1.0
    return sampled + ratio * others


@bare_kernel
def learn_variation(numbers: Floats, tasks: float, seconds: float, squares: float) -> None:
    """Add how the tasks of a job that has ended vary, by their sum and their sum of squares."""
    if tasks >= 2.0 and seconds > 0.0:
        mean = seconds / tasks
        variance = max(squares - tasks * mean * mean, 0.0) / (tasks - 1.0)
        numbers[VARIATION] += variance / (mean * mean)
        numbers[VARIATION_JOBS] += 1.0


_SPREADS: Final = (0.05, 0.2, 0.5, 1.0)
CLASSES: Final = len(_SPREADS) + 2
ERRORS: Final = 0
SQUARES: Final = 1
RECORD_COLUMNS: Final = 2
"""A row of the record, for beliefs whose logarithm has a standard deviation up to one of those
above, a larger one, or none: how many there were and their squared errors, in logarithms."""

_DOUBT: Final = 5.0
"""Beliefs that a class is taken to have had besides, none of which was worth anything."""


def nothing_proved() -> Floats:
    """A record before any job has ended."""
    return np.zeros((CLASSES, RECORD_COLUMNS))


@bare_kernel
def spread_class(log_variance: float) -> int:
    """The class of a belief by the variance of its logarithm (nan: it has none)."""
    if not math.isfinite(log_variance):
        return CLASSES - 1
    spread = math.sqrt(log_variance)
    number = 0
    while number < len(_SPREADS) and spread > _SPREADS[number]:
        number += 1
    return number


@bare_kernel
def proved_variance(record: Floats, log_variance: float) -> float:
    """Variance of the logarithm of what is believed, by how beliefs of its class have erred.

    Infinite as long as none has.
    """
    row = record[spread_class(log_variance)]
    if row[ERRORS] == 0.0:
        return math.inf
    return float(row[SQUARES] / row[ERRORS] * (1.0 + _DOUBT / row[ERRORS]))


@bare_kernel
def learn_error(record: Floats, log_variance: float, log_error: float) -> None:
    """Add how far off a belief was, in logarithms."""
    row = record[spread_class(log_variance)]
    row[ERRORS] += 1.0
    row[SQUARES] += log_error * log_error


@bare_kernel
def in_time(
    mean: float, relative_variance: float, tasks: float, slots: float, seconds: float
) -> float:
    """Probability that so many tasks have ended on so many slots within so many seconds.

    Tasks of a job are taken to be log-normal about its mean (seconds), with this squared
    coefficient of variation. As many of them as the job gets slots start last, together; those
    before them follow one another on these slots, with little chance in their sum.
    SLearn names tasks' maxima for deadlines; the rules are ours.
    """
    together = min(tasks, slots)
    left = seconds - mean * (tasks - together) / slots
    if left <= 0.0 or mean <= 0.0:
        return 1.0 if left >= 0.0 and mean <= 0.0 else 0.0
    if relative_variance <= 0.0:
        return 1.0 if left >= mean else 0.0
    # Log-normal about the mean: the logarithm's variance, and its mean less half of that.
    variance = math.log1p(relative_variance)
    z = (math.log(left / mean) + variance / 2.0) / math.sqrt(variance)
    return float((1.0 - upper_tail(z)) ** together)
