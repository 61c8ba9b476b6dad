"""Parameters of a scheduler that plans ahead, with 3Sigma's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from foresail.model.errors import require, require_at_least, require_positive

OverEstimates = Literal["off", "on", "adaptive"]
HopelessJobs = Literal["run_on_leftovers", "drop"]


@dataclass(frozen=True, slots=True)
class PlanAheadParameters:
    """Parameters of the schedulers that plan ahead."""

    window_slots: int = 24
    slot_seconds: float = 60.0
    """How many starts a plan considers, the first of them now, and from one to the next. One slot
    means no planning ahead."""
    distribution: bool = True
    """Plan with the whole belief about a runtime; otherwise with its mean alone."""
    over_estimates: OverEstimates = "adaptive"
    """What a job with a deadline is worth after it: nothing (``off``), less and less (``on``), or
    less and less if the probability to run no longer than from submission to deadline is below 0.05
    (``adaptive``)."""
    preemption: bool = True
    """Jobs without a deadline (or past it) may be stopped for others."""
    soft_constraints: bool = True
    """Know where a job runs best; otherwise every job is planned as if it ran elsewhere."""
    placing: Literal["globally", "in_order"] = "globally"
    """``globally``: all jobs at once. ``in_order``: one after the other by arrival, those with a
    deadline first, of these the ones whose reservation was rejected last."""
    reservations: Literal["off", "latest", "earliest"] = "off"
    """Whether a job with a deadline asks for a reservation at its submission, and when it is
    promised nodes: as late as its deadline allows, or as early as nodes can be promised."""
    slo_value: float = 1000.0
    best_effort_value: float = 1.0
    """What a job with a deadline is worth until then, but for 25 if its request for a reservation
    was rejected; one without a deadline at its submission."""
    best_effort_horizon_seconds: float = 18_000.0
    """How long after its submission a job without a deadline is worth nothing."""
    hopeless_jobs: HopelessJobs = "run_on_leftovers"
    """What becomes of a job that can gain nothing any more, its deadline being out of reach or its
    own value spent: it runs on nodes that no other job wants (``run_on_leftovers``), or it is
    withdrawn and never starts (``drop``), as in the published systems."""
    cycle_seconds: float = 2.0
    solver_share: float = 0.25
    """How often the scheduler is asked, and for what share of that it may plan: as much work as a
    usual machine does in that time."""
    relative_gap: float = 0.02
    """When a plan is good enough: by what share of its value the best one may be better."""
    solver: str = "highs"
    """Name of the solver."""
    end_to_end: bool = False
    """A job that others wait for is also worth what these are worth, if it lets them be in time."""
    fair_share: float = 0.0
    """How much less a user's jobs are worth the more of the cluster the user has had lately: their
    worth is divided by one plus this times what the user has had, as a multiple of an equal share.
    0: not at all."""
    share_half_life_seconds: float = 86_400.0
    """How long ago what a user has had counts for half."""

    def __post_init__(self) -> None:
        require(1 <= self.window_slots <= 1000, self, "window_slots", "from 1 to 1000")
        require_positive(self, "slot_seconds", "cycle_seconds", "share_half_life_seconds")
        require_positive(self, "slo_value", "best_effort_value")
        require_positive(self, "best_effort_horizon_seconds")
        require_at_least(self, 0, "relative_gap", "fair_share")
        require(0.0 < self.solver_share <= 1.0, self, "solver_share", "above 0, at most 1")

    @property
    def work_seconds(self) -> float:
        """Return how much work a cycle may take."""
        return self.cycle_seconds * self.solver_share
