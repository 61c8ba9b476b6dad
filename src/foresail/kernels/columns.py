"""Columns of arrays that kernels share, job specifications and prediction summaries; whole cpus."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.kernels.compile import Floats

PER_CPU: Final = 2.0**30


def fixed_point_cpus(cpus: Floats) -> Floats:
    """Cpus of jobs in fixed point: rounded down to a billionth, so that their sums are exact."""
    return np.floor(cpus * PER_CPU) / PER_CPU


def fixed_point(cpus: float) -> float:
    """Round like ``fixed_point_cpus``, for one job."""
    return math.floor(cpus * PER_CPU) / PER_CPU


def nearest_fixed_point(cpus: float) -> float:
    """A sum or difference of cpus without what rounding has done to it."""
    return round(cpus * PER_CPU) / PER_CPU


# A specification row per job slot: what was known at submission.
SUBMIT: Final = 0
CPUS: Final = 1
REQUESTED: Final = 2
USER: Final = 3
GROUP: Final = 4
QUEUE: Final = 5
EXECUTABLE: Final = 6
PARTITION: Final = 7
TASKS: Final = 8
MEMORY: Final = 9
GPUS: Final = 10
SPEC_COLUMNS: Final = 11
"""Seconds, cpus, seconds (infinite where not given), then codes (-1 where unknown); tasks, and
memory (bytes) and gpus per task (0 where not asked for). Further columns are codes of features of
the source, as ``Workload.feature_names`` orders them."""

SPEC_NAMES: Final = (
    "submit",
    "cpus",
    "requested",
    "user",
    "group",
    "queue",
    "executable",
    "partition",
    "tasks",
    "memory",
    "gpus",
)
CODED: Final = (USER, GROUP, QUEUE, EXECUTABLE, PARTITION)
"""The columns that are codes of names."""

# A summary row per job slot: what a predictor believed at submission.
PREDICTED: Final = 0
Q10: Final = 1
Q25: Final = 2
Q50: Final = 3
Q75: Final = 4
Q90: Final = 5
URGENCY: Final = 6
SUMMARY_COLUMNS: Final = 7
"""Mean and quantiles in seconds; urgency = E[1 / max(runtime, 10 s)], the rate at which
waiting adds to the expected bounded slowdown."""

SUMMARY_NAMES: Final = ("predicted", "q10", "q25", "q50", "q75", "q90", "urgency")
QUANTILE_LEVELS: Final = (0.10, 0.25, 0.50, 0.75, 0.90)
SLOWDOWN_BOUND_SECONDS: Final = 10.0

BELIEF_LEVELS: Final = (
    *(0.0, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
    *(0.975, 0.99, 0.995, 1.0),
)
"""The levels of a belief row: the whole distribution as quantiles, in seconds."""
BELIEF_COLUMNS: Final = len(BELIEF_LEVELS)
