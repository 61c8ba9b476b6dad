"""The user's limit as the prediction: what standard backfilling does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from foresail.distributions.point import Point
from foresail.kernels.columns import USER
from foresail.kernels.signatures import PredictorSteps
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.limits import require_positive
from foresail.model.outcome import Outcome
from foresail.model.registry import register
from foresail.predictors.kernels import request
from foresail.predictors.stepped import DAY_SECONDS, Layout, SteppedPredictor


@dataclass(frozen=True, slots=True)
class RequestedParameters:
    """Parameters of ``requested``."""

    unknown_seconds: float = DAY_SECONDS
    """Prediction for a job without a limit of a user none of whose jobs has ended."""

    def __post_init__(self) -> None:
        require_positive(self, "unknown_seconds")


@register("predictor", "requested", parameters=RequestedParameters)
class Requested(SteppedPredictor):
    """Predicts the requested time; without one, the user's longest runtime so far."""

    def __init__(self, parameters: RequestedParameters) -> None:
        steps = PredictorSteps(request.predict, request.ignore, request.observe)
        model = np.array([parameters.unknown_seconds])
        super().__init__(steps, Layout(model, request.USER_COLUMNS))

    def predict(self, job: Job, now: float) -> Distribution:
        """The limit, which needs no step and no slot; else what the step says."""
        limit = job.requested_seconds
        if limit is None or not math.isfinite(limit):
            return super().predict(job, now)
        return Point(float(limit))

    def started(self, job: Job, now: float) -> None:
        """Nothing comes of it."""

    def learn(self, job: Job, outcome: Outcome, value: float) -> None:
        """Remember the user's longest runtime, as the step does."""
        if job.job_id in self._slots:
            super().learn(job, outcome, value)
            return
        row = 1 + self._code(USER, job.user)
        if row == len(self._state.users):
            self._make_room_for_users()
        users = self._state.users
        if value > users[row, request.LONGEST]:
            users[row, request.LONGEST] = value

    def absorb(self, other: Requested) -> None:
        """Learn what another one with the same parameters has learned."""
        codes = self._codes_of(other)
        users = self._state.users
        users[0] = np.maximum(users[0], other._state.users[0])
        for code in range(len(other._codes[USER])):
            row = 1 + int(codes[USER, code])
            users[row] = np.maximum(users[row], other._state.users[1 + code])
