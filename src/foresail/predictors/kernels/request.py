"""The user's limit as a prediction, and what stands in for it where none was given."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import REQUESTED, USER
from foresail.kernels.compile import bare_step, part
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs

UNKNOWN_SECONDS: Final = 0
MODEL_SIZE: Final = 1
"""The model: seconds to assume of a job without a limit whose user is new."""

LONGEST: Final = 0
USER_COLUMNS: Final = 1
"""A user's row: the longest runtime seen (0 before the first)."""


@part
def user_row(specs: NDArray[np.float64], slot: int) -> int:
    """Row of a job's user in the ``users`` array; jobs of unknown users share row 0."""
    return int(specs[slot, USER]) + 1


@part
def limit_or_stand_in(requested: float, longest: float, unknown: float) -> float:
    """The limit; without one the user's longest runtime so far; without that ``unknown``."""
    if math.isfinite(requested):
        return requested
    return longest if longest > 0.0 else unknown


@bare_step(PREDICTOR_STEP)
def ignore(inputs: PredictorInputs) -> None:
    """The step of a predictor that does not react to this kind of event."""


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Predict the limit."""
    slot, requested = inputs.slot, inputs.specs[inputs.slot, REQUESTED]
    longest = inputs.users[user_row(inputs.specs, slot), LONGEST]
    limit = limit_or_stand_in(requested, longest, inputs.model[UNKNOWN_SECONDS])
    summarise_point(limit, inputs.summaries[slot])


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Remember the user's longest runtime."""
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    if inputs.runtime > user[LONGEST]:
        user[LONGEST] = inputs.runtime
