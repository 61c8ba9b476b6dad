"""The oracle: real runtimes, revealed before a replay, as the bound of what prediction can give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foresail.distributions.basic import Point
from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels import steps
from foresail.kernels.compile import bare_step
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import NoParameters, register
from foresail.predictors.kernels.request import ignore


@bare_step(steps.PREDICTOR_STEP)
def predict(inputs: steps.PredictorInputs) -> None:
    """Predict the content of the job's row: its real runtime."""
    summarise_point(inputs.jobs[inputs.slot, 0], inputs.summaries[inputs.slot])


@register("predictor", "clairvoyant")
class Clairvoyant(Predictor):
    """Predicts the real runtime (an upper bound for comparison: needs the truth revealed)."""

    def __init__(self, _: NoParameters) -> None:
        self._truth: dict[str, float] = {}

    def reveal(self, runtime_seconds: Mapping[str, float]) -> None:
        """Receive the real runtime of every job by job id, in order of the replay's slots."""
        self._truth = dict(runtime_seconds)

    def predict(self, job: Job, now: float) -> Point:  # noqa: ARG002 - the truth has no date
        """The job's real runtime.

        Raises ``InputError`` if it was not revealed.
        """
        if job.job_id not in self._truth:
            raise InputError(
                "the job's real runtime was not revealed",
                field="job_id",
                value=job.job_id,
                expected="a replay of a recorded workload: a live cluster knows no runtimes ahead",
            )
        return Point(self._truth[job.job_id])

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn nothing: all is known."""

    def compiled(
        self,
        specs: Floats,
        features: tuple[str, ...] = (),  # noqa: ARG002 - knows better
    ) -> tuple[steps.PredictorSteps, steps.PredictorState]:
        """Steps and state for a compiled replay of the revealed jobs, in the order revealed.

        Raises ``InputError`` if the revealed runtimes are not one per row of ``specs``.
        """
        if len(self._truth) != len(specs):
            raise InputError(
                "the real runtimes were not revealed for these jobs",
                value=len(self._truth),
                expected=f"{len(specs)} runtimes",
            )
        runtimes = np.fromiter(self._truth.values(), dtype=np.float64, count=len(specs))
        state = steps.PredictorState(np.zeros(1), np.zeros((1, 1)), runtimes.reshape(-1, 1))
        return steps.PredictorSteps(predict, ignore, ignore), state
