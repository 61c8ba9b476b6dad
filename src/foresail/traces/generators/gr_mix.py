"""Generator ``gr_mix``: TetriSched's GR_MIX, Hadoop jobs with and without deadlines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.limits import require_share
from foresail.model.registry import register
from foresail.traces.generators._gridmix import Mix, gridmix
from foresail.traces.generators._hadoop import HadoopParameters, hadoop_sizes
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class GrMixParameters(HadoopParameters):
    """Parameters of the generator ``gr_mix``.

    Parameters
    ----------
    slo_share
        Share of the jobs that have a deadline.
    best_effort_source
        SWIM sample that the others are drawn from; None takes the built-in quantiles of the
        Facebook sample of 2010, in place of Yahoo's, which is not public.
    """

    slo_share: float = 0.52
    best_effort_source: str | None = None

    def __post_init__(self) -> None:
        HadoopParameters.__post_init__(self)
        require_share(self, "slo_share")


@register("generator", "gr_mix", parameters=GrMixParameters)
class GrMix:
    """TetriSched's GR_MIX: unconstrained Hadoop jobs of SWIM samples, 52 % with deadlines."""

    def __init__(self, parameters: GrMixParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """Jobs on 256 nodes by default."""
        parameters = self._parameters
        slo = hadoop_sizes(parameters, parameters.source, "fb2009")
        best_effort = hadoop_sizes(parameters, parameters.best_effort_source, "fb2010")
        mix = Mix(parameters.slo_share, ("unconstrained",), slo, best_effort)
        return gridmix(parameters, mix, random)
