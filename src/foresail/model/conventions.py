"""Conventions: what happens first when several things happen at the same instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from foresail.model.renamed import DEPRECATED


@dataclass(frozen=True, slots=True)
class Conventions:
    """How events of the same instant are ordered, and what counts as free then."""

    name: str
    """What a user calls them."""
    passes: Literal["per_instant", "per_event", "per_tick"]
    """``per_instant``: one scheduling pass after all events of an instant. ``per_event``: one after
    every single submission, end, cancellation and tick. ``per_tick``: one after a tick, for
    schedulers that plan in cycles."""
    ties: Literal["ends_first", "submissions_first"]
    """``ends_first``: ends, expired estimates, cancellations, submissions, ticks.
    ``submissions_first``: expired estimates, cancellations, submissions, ends, ticks. Ends of an
    instant come in order of start, submissions in the order given."""
    free: Literal["actual", "expected"]
    """``actual``: all that no running job holds. ``expected``: also what running jobs hold whose
    expected end is not after now; those jobs are not shown to the scheduler as running."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", recorded_name(self.name))

    def in_cycles(self) -> Conventions:
        """The same, but that there is a pass after a tick alone."""
        if self.passes == "per_tick":
            return self
        name = IN_CYCLES.name if self == STANDARD else f"{self.name}_{IN_CYCLES.name}"
        return replace(self, name=name, passes="per_tick")


def recorded_name(name: str) -> str:
    """The name that conventions have now which a record of an earlier version names."""
    return DEPRECATED["--conventions"].get(name, name)


STANDARD: Final = Conventions("standard", "per_instant", "ends_first", "actual")

PREDICTSIM: Final = Conventions("predictsim", "per_event", "submissions_first", "expected")
"""The published study's simulator (spec section 2a). ``expected`` is a mistake of it, kept by name:
it may start a job on processors whose job ends later in the same second."""

IN_CYCLES: Final = Conventions("in_cycles", "per_tick", "ends_first", "actual")

CONVENTIONS: Final = {each.name: each for each in (STANDARD, PREDICTSIM)}
