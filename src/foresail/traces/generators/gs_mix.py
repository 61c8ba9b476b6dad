"""Generator ``gs_mix``: TetriSched's GS_MIX, synthetic jobs that run equally well anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.limits import require_at_least, require_positive, require_share
from foresail.model.registry import register
from foresail.traces.generators._gridmix import GridmixParameters, Mix, gridmix, log_normal_sizes
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class GsMixParameters(GridmixParameters):
    """Parameters of the generator ``gs_mix``.

    Parameters
    ----------
    slo_share
        Share of the jobs that have a deadline.
    mean_seconds
        Mean runtime, before runtimes are scaled to the load (by less than a job's part).
    log_deviation
        Standard deviation of the runtime's natural logarithm.
    """

    nodes: int = 80
    slo_share: float = 0.7
    mean_seconds: float = 120.0
    log_deviation: float = 0.6

    def __post_init__(self) -> None:
        GridmixParameters.__post_init__(self)
        require_share(self, "slo_share")
        require_positive(self, "mean_seconds")
        require_at_least(self, 0, "log_deviation")


@register("generator", "gs_mix", parameters=GsMixParameters)
class GsMix:
    """TetriSched's GS_MIX: unconstrained synthetic jobs on 80 nodes, 70 % with deadlines."""

    def __init__(self, parameters: GsMixParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """Jobs on 80 nodes by default."""
        parameters = self._parameters
        sizes = log_normal_sizes(parameters, parameters.mean_seconds, parameters.log_deviation)
        mix = Mix(parameters.slo_share, ("unconstrained",), sizes, sizes)
        return gridmix(parameters, mix, random)
