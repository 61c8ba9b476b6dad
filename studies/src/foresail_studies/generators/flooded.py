"""Generator ``flooded``: the E2E workload, most of it from one user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import require_at_least, require_share
from foresail.model.registry import register
from foresail.traces.generating import generator
from foresail.traces.workload import Workload
from foresail_studies.generators._synthetic import synthesise
from foresail_studies.generators.e2e import E2EParameters

FLOODING_USER: Final = "flood"


@dataclass(frozen=True, slots=True)
class FloodedParameters(E2EParameters):
    """Parameters of the generator ``flooded``."""

    flood_share: float = 0.8
    """Share of the jobs that one user submits."""
    others: int = 9
    """How many users share the rest."""

    def __post_init__(self) -> None:
        E2EParameters.__post_init__(self)
        require_share(self, "flood_share")
        require_at_least(self, 1, "others")


@register("generator", "flooded", parameters=FloodedParameters)
@generator
def flooded(parameters: FloodedParameters, random: np.random.Generator) -> Workload:
    """The jobs of ``e2e`` with the same seed, given to ``flood`` and to users ``calm1``, ...

    Whose a job is says nothing about the job.
    """
    workload = synthesise(parameters, parameters.slack_percents, random).workload
    drawing = random.spawn(1)[0]
    floods = drawing.random(len(workload.jobs)) < parameters.flood_share
    calm = drawing.integers(1, parameters.others + 1, len(workload.jobs))
    users = np.where(floods, FLOODING_USER, np.char.add("calm", calm.astype(str)))
    return workload.with_jobs(workload.jobs.with_columns(user=pl.Series(users.tolist())))
