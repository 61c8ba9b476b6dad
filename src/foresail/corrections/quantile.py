"""Correct an estimate that proved too short to the next quantile of the belief at submission."""

from __future__ import annotations

from foresail.corrections._steps import SteppedCorrection
from foresail.corrections.kernels.correction import to_quantile
from foresail.model.registry import NoParameters, register


@register("correction", "quantile")
class NextQuantile(SteppedCorrection):
    """The next of the 10, 25, 50, 75 and 90 % quantiles predicted; doubles after the last."""

    def __init__(self, _: NoParameters) -> None:
        super().__init__(to_quantile)
