"""The truth as a prediction: the step of an oracle that was handed the runtimes openly."""

from __future__ import annotations

from foresail.distributions.kernels.summary import summarise_point
from foresail.kernels.compile import bare_step
from foresail.kernels.signatures import PREDICTOR_STEP, PredictorInputs


@bare_step(PREDICTOR_STEP)
def predict(inputs: PredictorInputs) -> None:
    """Predict what the job's row holds: its real runtime."""
    summarise_point(inputs.jobs[inputs.slot, 0], inputs.summaries[inputs.slot])
