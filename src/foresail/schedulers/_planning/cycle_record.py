"""What one cycle of planning ahead cost and how good its plan is."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.milp.solver import relative_gap


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """One decision of a scheduler that plans ahead."""

    now: float
    """When it was made, in the time of the view."""
    pending: int
    left_out: int
    running: int
    """How many jobs waited, how many of these it did not look at, and how many ran."""
    options: int
    columns: int
    rows: int
    """Starts that were worth something; and the size of the last program, 0 if none was needed."""
    value: float
    bound: float
    greedy_value: float
    """What the plan is worth, what no plan exceeds, and what greedy's was worth."""
    cycle_seconds: float
    """Of the whole decision, on the wall."""
    building_seconds: float
    greedy_seconds: float
    pricing_seconds: float
    search_seconds: float
    solver_seconds: float
    """Of that: from the view to arrays; planning without a solver; linear programs and planning by
    their prices; searching; programs. The rest is for nodes, reasons and the like."""
    solver_failure: str = ""
    """What the solver said if it failed; empty if it did not. The plan is then made without it."""

    @property
    def gap(self) -> float:
        """By what share of its value the best plan may be better."""
        return relative_gap(self.value, self.bound)
