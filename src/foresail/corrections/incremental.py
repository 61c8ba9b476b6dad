"""Correct an estimate that proved too short by longer and longer increments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from foresail.corrections._steps import SteppedCorrection
from foresail.corrections.kernels.correction import ABSOLUTE, CUMULATIVE, by_increments
from foresail.model.registry import register

INCREMENTS_SECONDS: Final = (
    60.0,
    300.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    18_000.0,
    36_000.0,
    72_000.0,
    180_000.0,
    360_000.0,
)
"""One minute to a hundred hours (Tsafrir, Etsion, Feitelson 2007); the last one repeats."""


@dataclass(frozen=True, slots=True)
class IncrementalParameters:
    """Parameters of ``incremental``."""

    reading: Literal["cumulative", "absolute"] = "cumulative"
    """Whether the k-th increment is added to the expired estimate (``cumulative``, paper 004) or to
    the one at submission (``absolute``, as the published study's simulator does)."""


@register("correction", "incremental", parameters=IncrementalParameters)
class Incremental(SteppedCorrection):
    """Adds 1 min, 5 min, 15 min, 30 min, 1 h ... 100 h, at most up to the requested time."""

    def __init__(self, parameters: IncrementalParameters) -> None:
        reading = ABSOLUTE if parameters.reading == "absolute" else CUMULATIVE
        super().__init__(by_increments, reading, *INCREMENTS_SECONDS)
