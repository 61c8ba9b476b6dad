"""Shared parts of predictors' kernels: a job's user, its limit, and what stands in for a limit."""

from __future__ import annotations

import math
from typing import Final

from foresail.kernels.columns import USER
from foresail.kernels.compile import Floats, bare_step, part
from foresail.kernels.steps import PREDICTOR_STEP, PredictorInputs

DAY_SECONDS: Final = 86_400.0


@part
def user_row(specs: Floats, slot: int) -> int:
    """Row of a job's user in the ``users`` array; jobs of unknown users share row 0."""
    return int(specs[slot, USER]) + 1


@part
def limit_or_stand_in(requested: float, longest: float) -> float:
    """Return the limit; without one the user's longest runtime so far; without that a day."""
    if math.isfinite(requested):
        return requested
    return longest if longest > 0.0 else DAY_SECONDS


@bare_step(PREDICTOR_STEP)
def ignore(inputs: PredictorInputs) -> None:
    """Leave the model as it is: the step of a predictor that does not react to an event."""
