"""The user's limit as the prediction: what standard backfilling does."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.columns import REQUESTED, USER
from foresail.kernels.compile import bare_step
from foresail.kernels.steps import PREDICTOR_STEP, PredictorInputs, PredictorSteps
from foresail.model.distribution import Distribution
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.registry import NoParameters, register
from foresail.predictors.kernels.request import ignore, limit_or_stand_in, user_row
from foresail.predictors.stepped import Layout, SteppedPredictor

_LONGEST: Final = 0
_USER_COLUMNS: Final = 1
"""A user's row: the longest runtime seen (0 before the first)."""


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Predict the limit."""
    slot, requested = inputs.slot, inputs.specs[inputs.slot, REQUESTED]
    longest = inputs.users[user_row(inputs.specs, slot), _LONGEST]
    summarise_point(limit_or_stand_in(requested, longest), inputs.summaries[slot])


@bare_step(PREDICTOR_STEP)
def observe(inputs: PredictorInputs) -> None:
    """Remember the user's longest runtime."""
    user = inputs.users[user_row(inputs.specs, inputs.slot)]
    if inputs.runtime > user[_LONGEST]:
        user[_LONGEST] = inputs.runtime


@register("predictor", "requested")
class Requested(SteppedPredictor):
    """Predicts the requested time; without one, the user's longest runtime so far."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(
            PredictorSteps(predict, ignore, observe), Layout(np.empty(0), _USER_COLUMNS)
        )

    def predict(self, job: Job, now: float) -> Distribution:
        """Return the limit, which needs no step and no slot; else what the step says."""
        limit = job.requested_seconds
        if limit is None or not math.isfinite(limit):
            return super().predict(job, now)
        return Point(float(limit))

    def started(self, job: Job, now: float) -> None:
        """Learn nothing."""

    def learn(self, job: Job, outcome: Outcome, value: float) -> None:
        """Remember the user's longest runtime, as the step does."""
        if job.job_id in self._slots:
            super().learn(job, outcome, value)
            return
        row = 1 + self._code(USER, job.user)
        if row == len(self._state.users):
            self._make_room_for_users()
        users = self._state.users
        if value > users[row, _LONGEST]:
            users[row, _LONGEST] = value

    def absorb(self, other: Requested) -> None:
        """Learn what another one has learned."""
        codes = self._codes_of(other)
        users = self._state.users
        users[0] = np.maximum(users[0], other._state.users[0])
        for code in range(len(other._codes[USER])):
            row = 1 + int(codes[USER, code])
            users[row] = np.maximum(users[row], other._state.users[1 + code])
