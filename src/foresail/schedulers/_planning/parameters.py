"""What can be set of a scheduler that plans ahead, with 3Sigma's defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from foresail.model.errors import InputError

OverEstimates = Literal["off", "on", "adaptive"]


@dataclass(frozen=True, slots=True)
class PlanAheadParameters:
    """Parameters of the schedulers that plan ahead.

    Parameters
    ----------
    window_slots, slot_seconds
        How many starts a plan considers, the first of them now, and from one to the next. One slot
        means no planning ahead.
    distribution
        Plan with the whole belief about a runtime; otherwise with its mean alone.
    over_estimates
        What a job with a deadline is worth after it: nothing (``off``), less and less (``on``), or
        less and less if its belief gives it hardly a chance anyway (``adaptive``).
    hopeless_below
        That chance: the probability to run no longer than from submission to deadline.
    preemption
        Jobs without a deadline (or past it) may be stopped for others.
    preemption_cost
        What stopping one costs at least, in jobs without a deadline: what is gained by it has to
        be worth that much. If that is little, jobs are stopped for a thousandth of a chance.
    soft_constraints
        Know where a job runs best; otherwise every job is planned as if it ran elsewhere.
    placing
        ``globally``: all jobs at once. ``in_order``: one after the other, those with a deadline
        first, by arrival.
    slo_value, best_effort_value
        What a job with a deadline is worth until then, and one without at its submission.
    best_effort_horizon_seconds
        How long after its submission a job without a deadline is worth nothing.
    leftover_value
        What a job is worth that has lost its worth, as a share of ``best_effort_value``: it is run
        on nodes that nobody else wants. 0: never.
    cycle_seconds, solver_share
        How often the scheduler is asked, and for what share of that it may plan.
    relative_gap
        When a plan is good enough: by what share of its value the best one may be better.
    solver
        Name of the solver.
    """

    window_slots: int = 24
    slot_seconds: float = 60.0
    distribution: bool = True
    over_estimates: OverEstimates = "adaptive"
    hopeless_below: float = 0.05
    preemption: bool = True
    preemption_cost: float = 10.0
    soft_constraints: bool = True
    placing: Literal["globally", "in_order"] = "globally"
    slo_value: float = 1000.0
    best_effort_value: float = 1.0
    best_effort_horizon_seconds: float = 18_000.0
    leftover_value: float = 0.001
    cycle_seconds: float = 2.0
    solver_share: float = 0.25
    relative_gap: float = 0.02
    solver: str = "highs"

    def __post_init__(self) -> None:
        self._require(1 <= self.window_slots <= 1000, "window_slots", "from 1 to 1000")
        for name in (
            "slot_seconds",
            "slo_value",
            "best_effort_value",
            "best_effort_horizon_seconds",
            "cycle_seconds",
        ):
            self._require(0.0 < getattr(self, name) < math.inf, name, "above 0")
        for name in ("hopeless_below", "preemption_cost", "leftover_value", "relative_gap"):
            self._require(0.0 <= getattr(self, name) < math.inf, name, "0 or above")
        self._require(0.0 < self.solver_share <= 1.0, "solver_share", "above 0, at most 1")

    def _require(self, holds: bool, field: str, expected: str) -> None:
        if not holds:
            raise InputError(
                "parameter out of range",
                field=field,
                value=getattr(self, field),
                expected=expected,
            )
