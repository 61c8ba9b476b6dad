"""Runtimes and widths of Hadoop jobs from the bytes they move (TetriSched T-13: chosen)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.limits import require_positive
from foresail.traces.generators._gridmix import Draw, GridmixParameters, GridmixSizes
from foresail.traces.generators._swim_population import draw_bytes


@dataclass(frozen=True, slots=True)
class HadoopParameters(GridmixParameters):
    """Parameters of generators that take jobs from SWIM's samples.

    Parameters
    ----------
    source
        SWIM sample that jobs with deadlines are drawn from; None takes the built-in quantiles of
        the Facebook sample of 2009.
    bytes_per_task
        A job has one task for each so many bytes, within the limits of the machine's share.
    bytes_per_second
        What one task moves in a second.
    startup_seconds
        What every job takes on top.
    longest_seconds
        No job runs longer (before runtimes are scaled to the load).
    """

    source: str | None = None
    bytes_per_task: float = 64.0 * 2.0**20
    bytes_per_second: float = 4.0 * 2.0**20
    startup_seconds: float = 30.0
    longest_seconds: float = 600.0

    def __post_init__(self) -> None:
        GridmixParameters.__post_init__(self)
        require_positive(self, "bytes_per_task", "bytes_per_second", "longest_seconds")
        require_positive(self, "startup_seconds")


def hadoop_sizes(parameters: HadoopParameters, source: str | None, built_in: str) -> Draw:
    """Sizes of jobs of a SWIM sample, or of the built-in quantiles of this name."""

    def draw(count: int, random: np.random.Generator) -> GridmixSizes:
        moved = draw_bytes(source, built_in, count, random)
        tasks = np.ceil(moved / parameters.bytes_per_task)
        width = np.clip(tasks, parameters.narrowest, parameters.widest).astype(np.int64)
        runtime = parameters.startup_seconds + moved / (width * parameters.bytes_per_second)
        return GridmixSizes(np.minimum(runtime, parameters.longest_seconds), width)

    return draw
