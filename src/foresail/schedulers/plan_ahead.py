"""3Sigma and TetriSched: plan ahead with distributions of runtimes, or with one estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from foresail.model.registry import register
from foresail.schedulers._planning.core import PlanAhead
from foresail.schedulers._planning.valuing import OverEstimates, PlanAheadParameters


@register("scheduler", "3sigma", parameters=PlanAheadParameters)
class ThreeSigma(PlanAhead):
    """Plans ahead with distributions, preempting; a cycle: O(waiting jobs)."""


@dataclass(frozen=True, slots=True)
class TetriSchedParameters(PlanAheadParameters):
    """Parameters of ``tetrisched``: those of ``3sigma`` with other defaults."""

    slot_seconds: float = 4.0
    distribution: bool = False
    over_estimates: OverEstimates = "off"
    preemption: bool = False
    reservations: Literal["off", "latest", "earliest"] = "latest"
    cycle_seconds: float = 4.0
    solver_share: float = 0.5
    relative_gap: float = 0.1


@register("scheduler", "tetrisched", parameters=TetriSchedParameters)
class TetriSched(PlanAhead):
    """Plans ahead with points: space, time, all jobs; preempts none; a cycle: O(waiting jobs)."""
