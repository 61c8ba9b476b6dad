"""3Sigma's scheduler: plans ahead with whole distributions of runtimes."""

from __future__ import annotations

from foresail.model.registry import register
from foresail.schedulers._planning.core import PlanAhead
from foresail.schedulers._planning.parameters import PlanAheadParameters


@register("scheduler", "3sigma", parameters=PlanAheadParameters)
class ThreeSigma(PlanAhead):
    """Plans ahead with distributions: expected value, expected consumption, preemption."""
