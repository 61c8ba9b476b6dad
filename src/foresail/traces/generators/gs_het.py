"""Generator ``gs_het``: TetriSched's GS_HET, synthetic jobs that prefer gpus or one rack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail.traces.generators._gridmix import PREFERRED, Mix, gridmix, log_normal_sizes
from foresail.traces.generators.gs_mix import GsMixParameters
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class GsHetParameters(GsMixParameters):
    """Parameters of the generator ``gs_het``.

    Parameters
    ----------
    slo_kinds
        Kinds of the jobs with a deadline, each as likely: ``gpu``, ``mpi`` (all tasks in one rack),
        ``availability`` (no two tasks in one rack) or ``unconstrained``. All others are
        unconstrained (TetriSched T-12), as are jobs too wide for what they prefer.
    """

    slo_share: float = 0.75
    slo_kinds: tuple[str, ...] = ("gpu", "mpi")

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
class GsHet:
    """TetriSched's GS_HET: synthetic jobs on 80 nodes, 75 % with deadlines, of gpu or MPI kind."""

    def __init__(self, parameters: GsHetParameters) -> None:
        self._parameters = parameters

    def generate(self, random: np.random.Generator) -> Workload:
        """Jobs on 80 nodes by default."""
        parameters = self._parameters
        sizes = log_normal_sizes(parameters, parameters.mean_seconds, parameters.log_deviation)
        mix = Mix(parameters.slo_share, parameters.slo_kinds, sizes, sizes)
        return gridmix(parameters, mix, random)
