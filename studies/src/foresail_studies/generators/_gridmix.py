"""The recipe of TetriSched's workloads (TetriSched reference, section 10): jobs like Gridmix's.

Each job has a kind, which says where it runs best: ``unconstrained``; ``gpu`` (on nodes with gpus);
``mpi`` (all tasks in one rack); ``availability`` (no two tasks in one rack).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Booleans, Floats, Integers
from foresail.model.errors import (
    require,
    require_at_least,
    require_each_at_least,
    require_positive,
    require_share,
)
from foresail.traces.facts import deadline_seconds
from foresail.traces.generating import achieved, gangs
from foresail.traces.workload import Workload, WorkloadMeta
from foresail_studies.generators._achieved import of_classes
from foresail_studies.generators._arrivals import draw_arrivals
from foresail_studies.generators._demands import (
    demands,
    draw_slacks,
    rack_nodes,
    rack_sizes,
    require_racks,
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

    hours: float = 1.0
    """Length of the run; the last job arrives at its end."""
    nodes: int = 256
    racks: int = 8
    """The machine; racks are its partitions, and a node counts as one cpu."""
    gpu_racks: int = 2
    """Racks whose nodes have a gpu, the first ones."""
    load: float = 1.0
    """Offered load, which is reached exactly."""
    slack_percents: tuple[float, ...] = (250.0, 300.0)
    """A deadline is submission plus runtime plus one of these percentages of it, each as likely."""
    slowdown_elsewhere: float = 1.5
    """How many times longer a job runs elsewhere than where it runs best."""
    narrowest_share: float = 0.01
    widest_share: float = 0.1
    """Widths of jobs as shares of the machine."""

    def __post_init__(self) -> None:
        require_positive(self, "hours", "load")
        require_at_least(self, 1, "nodes", "slowdown_elsewhere")
        require_share(self, "narrowest_share", "widest_share")
        require_each_at_least(self, 0, "slack_percents")
        require_racks(self.nodes, self.racks)
        require(0 <= self.gpu_racks <= self.racks, self, "gpu_racks", f"0 to {self.racks}")
        narrower = self.narrowest_share <= self.widest_share
        require(narrower, self, "narrowest_share", f"at most {self.widest_share}, the widest")

    @property
    def narrowest(self) -> int:
        """Nodes of the narrowest job, at least one."""
        return max(round(self.narrowest_share * self.nodes), 1)

    @property
    def widest(self) -> int:
        """Nodes of the widest job."""
        return max(round(self.widest_share * self.nodes), self.narrowest)


@dataclass(frozen=True, slots=True)
class GridmixSizes:
    """Runtimes (seconds) and widths (nodes) of jobs; shape (jobs,)."""

    runtime_seconds: Floats
    width: Integers


Draw = Callable[[int, np.random.Generator], GridmixSizes]


@dataclass(frozen=True, slots=True)
class Mix:
    """Mix of users who take part."""

    slo_share: float
    """Share of the jobs that have a deadline."""
    slo_kinds: tuple[str, ...]
    """Kinds of these jobs, each as likely; the others are unconstrained."""
    slo: Draw
    best_effort: Draw
    """Where their sizes come from."""


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
        runtime = np.where(slo, slo_sizes.runtime_seconds, best_effort.runtime_seconds)
        width = np.where(slo, slo_sizes.width, best_effort.width)
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
    fits = {
        "gpu": rack_sizes(parameters.nodes, parameters.racks)[: parameters.gpu_racks].sum(),
        "mpi": rack_sizes(parameters.nodes, parameters.racks).max(),
        "availability": parameters.racks,
    }
    preferred = [
        PREFERRED[kind] if wide <= fits.get(kind, 0) else None
        for kind, wide in zip(kinds, width, strict=True)
    ]
    deadline = deadline_seconds(submit, runtime, slack)
    demanded = demands(deadline, slo, preferred, parameters.slowdown_elsewhere)
    return gangs(submit, runtime, width, executable=kinds, **demanded)


def log_normal_sizes(
    parameters: GridmixParameters, mean_seconds: float, log_deviation: float
) -> Draw:
    """Log-normal runtimes of this mean, widths evenly from narrowest to widest."""

    def draw(count: int, random: np.random.Generator) -> GridmixSizes:
        normal = random.standard_normal(count)
        runtime = mean_seconds * np.exp(log_deviation * normal - log_deviation**2 / 2.0)
        return GridmixSizes(
            runtime, random.integers(parameters.narrowest, parameters.widest + 1, count)
        )

    return draw
