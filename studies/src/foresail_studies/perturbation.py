"""Runtime distributions that are wrong on purpose, by a shift and a spread (3Sigma figure 4.9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.arrays import Floats
from foresail.model.errors import InputError

SHIFT_DEVIATION: Final = 0.1
"""Standard deviation of a job's shift about the one that is aimed at."""
LEAST_SHARE: Final = 0.01
"""No distribution is centred below this share of the real runtime: shifts reach under -100 %."""


@dataclass(frozen=True, slots=True)
class PerturbedBeliefs:
    """A normal belief for each job, to be truncated to positive values and renormalised."""

    mean_seconds: Floats
    deviation_seconds: Floats
    """Parameters of each job's normal distribution before truncation; shape (jobs,)."""
    shift: Floats
    """By how much of the real runtime each is off, as a fraction; shape (jobs,)."""


def perturbed(
    runtime_seconds: Floats,
    shift_percent: float,
    spread_percent: float,
    random: np.random.Generator,
    shift_deviation: float = SHIFT_DEVIATION,
) -> PerturbedBeliefs:
    """Beliefs N(runtime (1 + shift), runtime x spread), the shift drawn for each job.

    Raises ``InputError`` if a parameter is not a finite number, the spread is negative, or a
    runtime is not positive.

    Parameters
    ----------
    runtime_seconds
        Real runtimes, above 0; shape (jobs,).
    shift_percent
        Mean of the jobs' shifts, in percent of the runtime.
    spread_percent
        Standard deviation in percent of the runtime (the coefficient of variation); 0 for points.
    random
        Where chance comes from.
    shift_deviation
        Standard deviation of the jobs' shifts, as a fraction; 0: all are shifted alike.
    """
    if not math.isfinite(shift_percent):
        raise InputError("not a number", field="shift_percent", value=shift_percent)
    if not 0.0 <= spread_percent < math.inf:
        raise InputError("negative", field="spread_percent", value=spread_percent, expected=">= 0")
    if not (runtime_seconds > 0.0).all():
        raise InputError("a runtime is not positive", field="runtime_seconds", expected="> 0")
    shift = random.normal(shift_percent / 100.0, shift_deviation, runtime_seconds.size)
    return PerturbedBeliefs(
        mean_seconds=runtime_seconds * np.maximum(1.0 + shift, LEAST_SHARE),
        deviation_seconds=runtime_seconds * (spread_percent / 100.0),
        shift=shift,
    )
