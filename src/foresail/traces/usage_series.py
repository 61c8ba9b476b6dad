"""Series of cpu and memory use per task and period: regimes, a daily swing, bursts, noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.arrays import Floats, Integers
from foresail.traces.measured import usage_table

PERIOD_SECONDS: Final = 300.0
_DAY_SECONDS: Final = 86400.0
_LONGEST_PERIOD_SECONDS: Final = int(PERIOD_SECONDS)
_ROOT: Final = float(np.sqrt(2.0 * np.log(_LONGEST_PERIOD_SECONDS)))
_HIGHEST_OF_SECONDS: Final = _ROOT - float(
    np.log(np.log(_LONGEST_PERIOD_SECONDS)) + np.log(4.0 * np.pi)
) / (2.0 * _ROOT)
"""Mode of the highest of 300 standard normal numbers (extreme value theory)."""

_MEMORY_LOG_DEVIATION: Final = 0.03
_MEMORY_PEAK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Swings:
    """How use moves around a task's level."""

    regimes: int
    regime_spread: float
    """Number of levels of the Markov chain, and the factor from one to the next."""
    regime_seconds: float
    """Mean stay in a level."""
    daily_swing: float
    """Amplitude of the daily sine, as a share of the level."""
    burst_share: float
    burst_factor: float
    """Share of periods that are bursts, and the factor of their use."""


@dataclass(frozen=True, slots=True)
class MeasuredTasks:
    """The tasks to measure; every array has shape (tasks,).

    ``cpus`` and ``memory_bytes`` are the levels of use, ``day_phase`` the share of the day by which
    the daily sine is shifted, ``second_log_deviation`` that of the logarithm of a second's use
    around its period's mean, ``sampled`` whether the sampling of the task's job worked.
    """

    job_id: NDArray[np.str_]
    task: Integers
    start_seconds: Floats
    end_seconds: Floats
    cpus: Floats
    memory_bytes: Floats
    day_phase: Floats
    second_log_deviation: Floats
    sampled: NDArray[np.bool_]


def measure(tasks: MeasuredTasks, swings: Swings, random: np.random.Generator) -> pl.DataFrame:
    """The usage table of these tasks; periods begin at multiples of 300 s, or with the task."""
    first = np.floor(tasks.start_seconds / PERIOD_SECONDS).astype(np.int64)
    last = np.ceil(tasks.end_seconds / PERIOD_SECONDS).astype(np.int64)
    count = last - first
    of = np.repeat(np.arange(count.size), count)
    begins = np.cumsum(count) - count
    at = first[of] + np.arange(of.size) - begins[of]
    start = np.maximum(at * PERIOD_SECONDS, tasks.start_seconds[of])
    end = np.minimum((at + 1) * PERIOD_SECONDS, tasks.end_seconds[of])
    is_first = np.zeros(of.size, dtype=np.bool_)
    is_first[begins] = True

    middle_days = (start + end) / 2.0 / _DAY_SECONDS
    daily = 1.0 + swings.daily_swing * np.sin(2.0 * np.pi * (middle_days - tasks.day_phase[of]))
    bursting = random.random(of.size) < swings.burst_share
    averaged = (
        tasks.cpus[of]
        * regime_factors(is_first, swings, random)
        * daily
        * np.where(bursting, swings.burst_factor, 1.0)
    )
    deviation = tasks.second_log_deviation[of]
    bias = deviation**2 / 2.0
    sampled = averaged * np.exp(deviation * random.standard_normal(of.size) - bias)
    highest = random.gumbel(_HIGHEST_OF_SECONDS, 1.0 / _ROOT, of.size)
    peak = averaged * np.exp(deviation * np.maximum(highest, deviation / 2.0) - bias)
    memory = tasks.memory_bytes[of] * random.lognormal(0.0, _MEMORY_LOG_DEVIATION, of.size)
    return usage_table(
        {
            "job_id": pl.Series(tasks.job_id).gather(of),
            "task": tasks.task[of],
            "start_seconds": start,
            "end_seconds": end,
            "average_cpus": averaged,
            "maximum_cpus": np.maximum(peak, sampled),
            "sampled_cpus": np.where(tasks.sampled[of], sampled, 0.0),
            "average_memory_bytes": memory,
            "maximum_memory_bytes": memory * (1.0 + random.exponential(_MEMORY_PEAK, of.size)),
        }
    )


def regime_factors(
    is_first: NDArray[np.bool_], swings: Swings, random: np.random.Generator
) -> Floats:
    """Level of each period relative to its task's: a Markov chain, anew for every task.

    A level is left with probability 300 s / ``regime_seconds`` for any other, all alike, so that
    all levels are as frequent; they are ``regime_spread`` apart and 1 on average. ``is_first`` says
    whether a period is its task's first, shape (periods,).
    """
    leaves = random.random(is_first.size) < PERIOD_SECONDS / swings.regime_seconds
    steps = np.where(leaves, random.integers(1, max(swings.regimes, 2), is_first.size), 0)
    steps[is_first] = random.integers(0, swings.regimes, int(is_first.sum()))
    levels = swings.regime_spread ** np.arange(swings.regimes)
    factors: Floats = (levels / levels.mean())[np.cumsum(steps) % swings.regimes]
    return factors
