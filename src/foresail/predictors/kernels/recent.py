"""The mean of a user's last runtimes as a prediction (Tsafrir, Etsion, Feitelson 2007)."""

from __future__ import annotations

import math
from typing import Final

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import REQUESTED
from foresail.kernels.compile import bare_step
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs
from foresail.predictors.kernels.request import limit_or_stand_in, user_row

UNKNOWN_SECONDS: Final = 0
WINDOW: Final = 1
ENOUGH: Final = 2
WHOLE_SECONDS: Final = 3
MODEL_SIZE: Final = 4
"""The model: seconds to assume where nothing is known, how many runtimes to average, how many must
have been seen, whether to cut off fractions (1 or 0)."""

COMPLETED: Final = 0
LONGEST: Final = 1
RING: Final = 2
"""A user's row: jobs seen, longest runtime, then the last runtimes, overwritten in turn."""


def user_columns(window: int) -> int:
    """Width of a user's row that holds the last ``window`` runtimes."""
    return RING + window


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Predict the mean of the last runtimes, at most the limit; until there are enough, that."""
    model, requested = inputs.model, inputs.specs[inputs.slot, REQUESTED]
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    predicted = limit_or_stand_in(requested, user[LONGEST], model[UNKNOWN_SECONDS])
    if user[COMPLETED] >= model[ENOUGH]:
        seen = int(min(user[COMPLETED], model[WINDOW]))
        total = 0.0
        for i in range(seen):
            total += user[RING + i]
        mean = total / seen
        if model[WHOLE_SECONDS] != 0.0:
            mean = math.floor(mean)
        predicted = min(mean, requested)
    summarise_point(predicted, inputs.summaries[inputs.slot])


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Remember the runtime."""
    if math.isnan(inputs.runtime):
        return
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    user[RING + int(user[COMPLETED]) % int(inputs.model[WINDOW])] = inputs.runtime
    user[COMPLETED] += 1.0
    user[LONGEST] = max(user[LONGEST], inputs.runtime)
