"""Generator ``gr_slo``: TetriSched's GR_SLO, Hadoop jobs that all have deadlines."""

from __future__ import annotations

import numpy as np

from foresail.model.registry import register
from foresail.traces.generators._gridmix import Mix, gridmix
from foresail.traces.generators._hadoop import HadoopParameters, hadoop_sizes
from foresail.traces.workload import Workload


@register("generator", "gr_slo", parameters=HadoopParameters)
class GrSlo:
    """TetriSched's GR_SLO: unconstrained Hadoop jobs of a SWIM sample, all with deadlines."""

    def __init__(self, parameters: HadoopParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """Jobs on 256 nodes by default."""
        sizes = hadoop_sizes(self._parameters, self._parameters.source, "fb2009")
        return gridmix(self._parameters, Mix(1.0, ("unconstrained",), sizes, sizes), random)
