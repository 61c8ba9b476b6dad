"""Correct an estimate that proved too short to the user's limit."""

from __future__ import annotations

from foresail.corrections._steps import SteppedCorrection
from foresail.corrections.kernels.correction import to_request
from foresail.model.registry import NoParameters, register


@register("correction", "requested")
class ToRequested(SteppedCorrection):
    """The requested time; without one, twice the expired estimate."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(to_request)
