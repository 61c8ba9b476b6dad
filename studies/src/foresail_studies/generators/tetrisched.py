"""TetriSched's workloads (its reference, section 10): GR_SLO, GR_MIX, GS_MIX and GS_HET."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from foresail.model.arrays import Floats
from foresail.model.errors import InputError, require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.reading import read
from foresail.traces.workload import Workload
from foresail_studies.generators._gridmix import (
    PREFERRED,
    Draw,
    GridmixParameters,
    GridmixSizes,
    Mix,
    gridmix,
    log_normal_sizes,
)
from foresail_studies.readers.published_logs import SWIM_BYTES

_LEVELS: Final = np.array([*np.arange(20) * 0.05, 0.98, 0.99, 0.999, 1.0])
_QUANTILES: Final = {
    "fb2009": np.array(
        [
            *(1e0, 1.56e3, 3.5e4, 7.83e4, 1.45e5, 2.03e5, 2.78e5, 4.05e5, 9.23e5, 4.05e6),
            *(2.33e7, 1.3e8, 3.33e8, 5.57e8, 9.89e8, 1e9, 1.58e9, 3.44e9, 7.02e9, 2.91e10),
            *(6.81e10, 1.53e11, 1.05e12, 1.78e12),
        ]
    ),
    "fb2010": np.array(
        [
            *(1e0, 4.97e2, 1.54e3, 1.21e4, 4.51e4, 9.99e4, 5.08e5, 1.55e6, 4.23e6, 1.34e7),
            *(3.35e7, 8.13e7, 2.42e8, 4.12e8, 1.5e9, 3.12e9, 4.26e9, 9e9, 4.65e10, 1.91e11),
            *(6.94e11, 1.83e12, 7.53e12, 8.52e13),
        ]
    ),
}


def draw_bytes(
    source: str | None, built_in: str, count: int, random: np.random.Generator
) -> Floats:
    """Bytes that each job moves, at least 1; shape (count,).

    ``source`` is a SWIM sample to draw jobs from; without one they come from the quantiles that
    ``built_in`` names.

    Raises ``InputError`` if the source is no SWIM sample.
    """
    if source is None:
        logs = np.interp(random.random(count), _LEVELS, np.log(_QUANTILES[built_in]))
        return np.asarray(np.exp(logs))
    jobs = read(Path(source)).jobs
    if any(name not in jobs.columns for name in SWIM_BYTES):
        raise InputError("not a SWIM sample", source=source, expected=", ".join(SWIM_BYTES))
    total = sum(jobs[name].cast(float).to_numpy() for name in SWIM_BYTES)
    drawn: Floats = np.maximum(random.choice(np.asarray(total), count), 1.0)
    return drawn


_ANYWHERE = ("unconstrained",)


@dataclass(frozen=True, slots=True)
class HadoopParameters(GridmixParameters):
    """Parameters of generators that take jobs from SWIM's samples."""

    source: str | None = None
    """SWIM sample that jobs with deadlines are drawn from; None takes the built-in quantiles of the
    Facebook sample of 2009."""
    bytes_per_task: float = 64.0 * 2.0**20
    """A job has one task for each so many bytes, within the limits of the machine's share."""
    bytes_per_second: float = 4.0 * 2.0**20
    """What one task moves in a second."""
    startup_seconds: float = 30.0
    """What every job takes on top."""
    longest_seconds: float = 600.0
    """No job runs longer (before runtimes are scaled to the load)."""

    def __post_init__(self) -> None:
        GridmixParameters.__post_init__(self)
        require_positive(self, "bytes_per_task", "bytes_per_second")
        require_positive(self, "startup_seconds", "longest_seconds")


def _hadoop_sizes(parameters: HadoopParameters, source: str | None, built_in: str) -> Draw:
    """Sizes of jobs of a SWIM sample, or of the built-in quantiles of this name."""

    def draw(count: int, random: np.random.Generator) -> GridmixSizes:
        moved = draw_bytes(source, built_in, count, random)
        tasks = np.ceil(moved / parameters.bytes_per_task)
        width = np.clip(tasks, parameters.narrowest, parameters.widest).astype(np.int64)
        runtime = parameters.startup_seconds + moved / (width * parameters.bytes_per_second)
        return GridmixSizes(np.minimum(runtime, parameters.longest_seconds), width)

    return draw


@register("generator", "gr_slo", parameters=HadoopParameters)
@generator
def gr_slo(parameters: HadoopParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GR_SLO: unconstrained Hadoop jobs of a SWIM sample, all with deadlines."""
    sizes = _hadoop_sizes(parameters, parameters.source, "fb2009")
    return gridmix(parameters, Mix(1.0, _ANYWHERE, sizes, sizes), random)


@dataclass(frozen=True, slots=True)
class GrMixParameters(HadoopParameters):
    """Parameters of the generator ``gr_mix``."""

    slo_share: float = 0.52
    """Share of the jobs that have a deadline."""
    best_effort_source: str | None = None
    """SWIM sample that the others are drawn from; None takes the built-in quantiles of the Facebook
    sample of 2010, in place of Yahoo's, which is not public."""

    def __post_init__(self) -> None:
        HadoopParameters.__post_init__(self)
        require_share(self, "slo_share")


@register("generator", "gr_mix", parameters=GrMixParameters)
@generator
def gr_mix(parameters: GrMixParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GR_MIX: unconstrained Hadoop jobs of SWIM samples, 52 % with deadlines."""
    slo = _hadoop_sizes(parameters, parameters.source, "fb2009")
    best_effort = _hadoop_sizes(parameters, parameters.best_effort_source, "fb2010")
    mix = Mix(parameters.slo_share, _ANYWHERE, slo, best_effort)
    return gridmix(parameters, mix, random)


@dataclass(frozen=True, slots=True)
class GsMixParameters(GridmixParameters):
    """Parameters of the generator ``gs_mix``."""

    nodes: int = 80

    slo_share: float = 0.7
    """Share of the jobs that have a deadline."""
    mean_seconds: float = 120.0
    """Mean runtime, before runtimes are scaled to the load (by less than a job's part)."""
    log_deviation: float = 0.6
    """Standard deviation of the runtime's natural logarithm."""

    def __post_init__(self) -> None:
        GridmixParameters.__post_init__(self)
        require_share(self, "slo_share")
        require_positive(self, "mean_seconds")
        require_at_least(self, 0, "log_deviation")


@register("generator", "gs_mix", parameters=GsMixParameters)
@generator
def gs_mix(parameters: GsMixParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GS_MIX: unconstrained synthetic jobs on 80 nodes, 70 % with deadlines."""
    sizes = log_normal_sizes(parameters, parameters.mean_seconds, parameters.log_deviation)
    mix = Mix(parameters.slo_share, _ANYWHERE, sizes, sizes)
    return gridmix(parameters, mix, random)


@dataclass(frozen=True, slots=True)
class GsHetParameters(GsMixParameters):
    """Parameters of the generator ``gs_het``."""

    slo_share: float = 0.75

    slo_kinds: tuple[str, ...] = ("gpu", "mpi")
    """Kinds of the jobs with a deadline, each as likely: ``gpu``, ``mpi`` (all tasks in one rack),
    ``availability`` (no two tasks in one rack) or ``unconstrained``. All others are unconstrained
    (TetriSched T-12), as are jobs too wide for what they prefer."""

    def __post_init__(self) -> None:
        GsMixParameters.__post_init__(self)
        if not self.slo_kinds or any(kind not in PREFERRED for kind in self.slo_kinds):
            raise InputError(
                "unknown kind",
                field="slo_kinds",
                value=self.slo_kinds,
                expected="some of " + ", ".join(PREFERRED),
            )


@register("generator", "gs_het", parameters=GsHetParameters)
@generator
def gs_het(parameters: GsHetParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GS_HET: synthetic jobs on 80 nodes, 75 % with deadlines, of gpu or MPI kind."""
    sizes = log_normal_sizes(parameters, parameters.mean_seconds, parameters.log_deviation)
    mix = Mix(parameters.slo_share, parameters.slo_kinds, sizes, sizes)
    return gridmix(parameters, mix, random)
