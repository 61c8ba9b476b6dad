"""Correct an estimate that proved too short by doubling it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from foresail.corrections._steps import SteppedCorrection
from foresail.corrections.kernels.correction import by_factor
from foresail.model.registry import register


@dataclass(frozen=True, slots=True)
class DoublingParameters:
    """Parameters of ``doubling``."""

    reading: Literal["double", "triple"] = "double"
    """Paper 004 increases the estimate "by the double of the elapsed time": to twice the elapsed
    time (``double``), or, word by word, to three times (``triple``)."""


@register("correction", "doubling", parameters=DoublingParameters)
class Doubling(SteppedCorrection):
    """Doubles the elapsed time, at most up to the requested time."""

    def __init__(self, parameters: DoublingParameters) -> None:
        super().__init__(by_factor, 3.0 if parameters.reading == "triple" else 2.0)
