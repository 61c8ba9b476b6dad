"""TetriSched's workloads (its reference, section 10): GR_SLO, GR_MIX, GS_MIX and GS_HET.

Each job has a kind, which says where it runs best: ``unconstrained``; ``gpu`` (on nodes with gpus);
``mpi`` (all tasks in one rack); ``availability`` (no two tasks in one rack).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias

import numpy as np
import polars as pl

from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.errors import require, require_at_least, require_each_at_least, require_positive
from foresail.model.registry import register
from foresail.traces.generating import gangs, generator
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators._demands import (
    RACKS,
    achieved,
    deadline_seconds,
    demands,
    draw_arrivals,
    draw_slacks,
    of_classes,
    rack_nodes,
    rack_sizes,
)

PREFERRED: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "unconstrained": None,
        "gpu": "attribute:gpu",
        "mpi": "same:rack",
        "availability": "spread:rack",
    }
)
"""Where jobs of each kind run best."""


@dataclass(frozen=True, slots=True)
class GridmixParameters:
    """Parameters that all generators of the recipe share."""

    racks: ClassVar[int] = RACKS
    gpu_racks: ClassVar[int] = 2
    """Racks, and those whose nodes have a gpu, the first ones."""
    width_shares: ClassVar[tuple[float, float]] = (0.01, 0.1)
    """Widths of the narrowest and the widest job as shares of the machine."""
    hours: float = 1.0
    """Length of the run; the last job arrives at its end."""
    nodes: int = 256
    """The machine, in eight racks, which are its partitions; a node counts as one cpu."""
    load: float = 1.0
    """Offered load, which is reached exactly."""
    slack_percents: tuple[float, ...] = (250.0, 300.0)
    """A deadline is submission plus runtime plus one of these percentages of it, each as likely."""
    slowdown_elsewhere: float = 1.5
    """How many times longer a job runs elsewhere than where it runs best."""

    def __post_init__(self) -> None:
        require_positive(self, "hours", "load")
        require_at_least(self, self.racks, "nodes")
        require_at_least(self, 1, "slowdown_elsewhere")
        require_each_at_least(self, 0, "slack_percents")

    @property
    def widths(self) -> tuple[int, int]:
        """Nodes of the narrowest job and of the widest, at least one."""
        least, most = (max(round(share * self.nodes), 1) for share in self.width_shares)
        return least, most


Sizes: TypeAlias = tuple[Floats, Integers]
"""Runtimes (seconds) and widths (nodes) of jobs; shape (jobs,)."""
Draw = Callable[[int, np.random.Generator], Sizes]


@dataclass(frozen=True, slots=True)
class Mix:
    """Mix of users who take part."""

    slo_share: float
    """Share of the jobs that have a deadline."""
    slo: Draw
    best_effort: Draw
    """Where their sizes come from."""
    slo_kinds: tuple[str, ...] = ("unconstrained",)
    """Kinds of jobs with a deadline, each as likely; the others are unconstrained."""


def gridmix(parameters: GridmixParameters, mix: Mix, random: np.random.Generator) -> Workload:
    """A workload of the recipe: Poisson arrivals, as many jobs as the load needs."""
    sizes, mixing, arriving, slacking = random.spawn(4)
    seconds = 3600.0 * parameters.hours
    wished = parameters.load * parameters.nodes * seconds
    slo, runtime, width = _enough(mix, wished, sizes, mixing)
    factor = wished / float(np.sum(runtime * width))
    runtime = runtime * factor
    submit = draw_arrivals(runtime.size, seconds, 1.0, arriving)
    drawn = mixing.integers(0, len(mix.slo_kinds), runtime.size)
    kinds = [mix.slo_kinds[k] if s else "unconstrained" for k, s in zip(drawn, slo, strict=True)]
    slack = draw_slacks(parameters.slack_percents, runtime.size, slacking)
    jobs = _jobs(parameters, submit, runtime, width, slo, kinds, slack)
    figures = of_classes(submit, runtime, width, slo, parameters.nodes, seconds)
    figures |= achieved(slo_job_share=float(slo.mean()), runtime_factor=factor)
    figures |= achieved(
        **{f"{kind}_jobs": float(kinds.count(kind)) for kind in PREFERRED if kind in kinds}
    )
    nodes = rack_nodes(parameters.nodes, parameters.racks, parameters.gpu_racks)
    meta = WorkloadMeta("", "", processors=parameters.nodes, header=figures)
    return Workload(jobs, meta, nodes)


def _enough(
    mix: Mix, wished: float, sizes: np.random.Generator, mixing: np.random.Generator
) -> tuple[Booleans, Floats, Integers]:
    """Take as many jobs as bring their work nearest to the target; at least two."""
    count = 256
    while True:
        slo_sizes, best_effort = mix.slo(count, sizes), mix.best_effort(count, sizes)
        slo = _spread(count, mix.slo_share, mixing)
        runtime, width = (np.where(slo, *each) for each in zip(slo_sizes, best_effort, strict=True))
        sums = np.cumsum(runtime * width)
        if sums[-1] >= wished:
            enough = max(int(np.argmin(np.abs(sums - wished))) + 1, 2)
            return slo[:enough], runtime[:enough], width[:enough]
        count *= 2


def _spread(count: int, share: float, random: np.random.Generator) -> Booleans:
    """Marks with this share in every stretch (it is off by less than one job), at random places."""
    due = np.floor(np.arange(count + 1) * share + random.random())
    marks: Booleans = np.diff(due) > 0
    return marks


def _jobs(
    parameters: GridmixParameters,
    submit: Floats,
    runtime: Floats,
    width: Integers,
    slo: Booleans,
    kinds: list[str],
    slack: Floats,
) -> pl.DataFrame:
    sizes = rack_sizes(parameters.nodes, parameters.racks)
    fits = {
        "gpu": sizes[: parameters.gpu_racks].sum(),
        "mpi": sizes.max(),
        "availability": parameters.racks,
    }
    preferred = [
        PREFERRED[kind] if wide <= fits.get(kind, 0) else None
        for kind, wide in zip(kinds, width, strict=True)
    ]
    deadline = deadline_seconds(submit, runtime, slack)
    demanded = demands(deadline, slo, preferred, parameters.slowdown_elsewhere)
    return gangs(submit, runtime, width, executable=kinds, **demanded)


def log_normal_sizes(parameters: GsMixParameters) -> Draw:
    """Log-normal runtimes of the mean asked for, widths evenly from narrowest to widest."""
    least, most = parameters.widths

    def draw(count: int, random: np.random.Generator) -> Sizes:
        logs = _LOG_DEVIATION * random.standard_normal(count) - _LOG_DEVIATION**2 / 2.0
        return parameters.mean_seconds * np.exp(logs), random.integers(least, most + 1, count)

    return draw


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


def draw_bytes(sample: str, count: int, random: np.random.Generator) -> Floats:
    """Bytes that each job moves, of the quantiles of a sample; shape (count,)."""
    logs = np.interp(random.random(count), _LEVELS, np.log(_QUANTILES[sample]))
    return np.asarray(np.exp(logs))


_BYTES_PER_TASK: Final = 64.0 * 2.0**20
"""A Hadoop job has one task for each so many bytes, within the limits of the machine's share."""
_BYTES_PER_SECOND: Final = 4.0 * 2.0**20
"""What one task moves in a second."""
_STARTUP_SECONDS: Final = 30.0
_LONGEST_SECONDS: Final = 600.0
"""What every job takes on top, and the longest runtime before runtimes are scaled to the load."""
_LOG_DEVIATION: Final = 0.6
"""Standard deviation of a synthetic runtime's natural logarithm."""


def _hadoop_sizes(parameters: GridmixParameters, sample: str) -> Draw:
    """Sizes of jobs by the quantiles of a sample of Facebook's jobs."""

    def draw(count: int, random: np.random.Generator) -> Sizes:
        moved = draw_bytes(sample, count, random)
        width = np.clip(np.ceil(moved / _BYTES_PER_TASK), *parameters.widths).astype(np.int64)
        runtime = _STARTUP_SECONDS + moved / (width * _BYTES_PER_SECOND)
        return np.minimum(runtime, _LONGEST_SECONDS), width

    return draw


@register("generator", "gr_slo", parameters=GridmixParameters)
@generator
def gr_slo(parameters: GridmixParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GR_SLO: unconstrained Hadoop jobs of a SWIM sample, all with deadlines."""
    sizes = _hadoop_sizes(parameters, "fb2009")
    return gridmix(parameters, Mix(1.0, sizes, sizes), random)


@register("generator", "gr_mix", parameters=GridmixParameters)
@generator
def gr_mix(parameters: GridmixParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GR_MIX: unconstrained Hadoop jobs of SWIM samples, 52 % with deadlines.

    Jobs without deadlines are of Facebook's sample of 2010, in place of Yahoo's, which is not
    public.
    """
    slo, best_effort = (_hadoop_sizes(parameters, each) for each in ("fb2009", "fb2010"))
    return gridmix(parameters, Mix(0.52, slo, best_effort), random)


@dataclass(frozen=True, slots=True)
class GsMixParameters(GridmixParameters):
    """Parameters of the generator ``gs_mix``."""

    nodes: int = 80

    mean_seconds: float = 120.0
    """Mean runtime, before runtimes are scaled to the load (by less than a job's part)."""

    def __post_init__(self) -> None:
        GridmixParameters.__post_init__(self)
        require_positive(self, "mean_seconds")


@register("generator", "gs_mix", parameters=GsMixParameters)
@generator
def gs_mix(parameters: GsMixParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GS_MIX: unconstrained synthetic jobs on 80 nodes, 70 % with deadlines."""
    sizes = log_normal_sizes(parameters)
    return gridmix(parameters, Mix(0.7, sizes, sizes), random)


@dataclass(frozen=True, slots=True)
class GsHetParameters(GsMixParameters):
    """Parameters of the generator ``gs_het``."""

    slo_kinds: tuple[str, ...] = ("gpu", "mpi")
    """Kinds of the jobs with a deadline, each as likely: ``gpu``, ``mpi`` (all tasks in one rack),
    ``availability`` (no two tasks in one rack) or ``unconstrained``. All others are unconstrained
    (TetriSched T-12), as are jobs too wide for what they prefer."""

    def __post_init__(self) -> None:
        GsMixParameters.__post_init__(self)
        known = bool(self.slo_kinds) and all(kind in PREFERRED for kind in self.slo_kinds)
        require(known, self, "slo_kinds", "some of " + ", ".join(PREFERRED))


@register("generator", "gs_het", parameters=GsHetParameters)
@generator
def gs_het(parameters: GsHetParameters, random: np.random.Generator) -> Workload:
    """TetriSched's GS_HET: synthetic jobs on 80 nodes, 75 % with deadlines, of gpu or MPI kind."""
    sizes = log_normal_sizes(parameters)
    return gridmix(parameters, Mix(0.75, sizes, sizes, parameters.slo_kinds), random)
