"""TetriSched's workloads (its reference, section 10): GR_SLO, GR_MIX, GS_MIX and GS_HET."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.errors import InputError
from foresail.model.limits import require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.generators._gridmix import (
    PREFERRED,
    Draw,
    GridmixParameters,
    GridmixSizes,
    Mix,
    gridmix,
    log_normal_sizes,
)
from foresail.traces.generators._swim_population import draw_bytes
from foresail.traces.workload import Workload

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
