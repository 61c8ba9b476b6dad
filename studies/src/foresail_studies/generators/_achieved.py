"""Load and mix that generators of SLO and best-effort jobs say they reached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foresail.model.arrays import Floats
from foresail.traces.facts import offered_load
from foresail.traces.generating import achieved
from foresail_studies.generators._arrivals import variability_of


def of_classes(
    submit: Floats,
    runtime: Floats,
    width: NDArray[np.int64],
    slo: NDArray[np.bool_],
    nodes: int,
    seconds: float,
) -> dict[str, str]:
    """Load and mix of SLO and best-effort jobs, arrivals and mean sizes."""
    return achieved(
        hours=seconds / 3600.0,
        load=offered_load(width, runtime, nodes, seconds),
        slo_load=offered_load(width[slo], runtime[slo], nodes, seconds),
        best_effort_load=offered_load(width[~slo], runtime[~slo], nodes, seconds),
        slo_jobs=float(slo.sum()),
        best_effort_jobs=float((~slo).sum()),
        arrival_variability=variability_of(submit),
        tasks_per_job=float(width.mean()),
        machine_hours_per_job=float(np.mean(width * runtime)) / 3600.0,
    )
