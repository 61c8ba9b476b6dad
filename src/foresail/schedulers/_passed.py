"""What a pass over the queue of a partition has come to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from foresail.model.construction import quickly_made
from foresail.model.decision import Placement


@quickly_made
@dataclass(frozen=True, slots=True)
class Passed:
    """What a pass has come to.

    Slots to start, how many cpus were free before, and planned starts (seconds) by slot of the
    reservations, in queue order. Of jobs that wait for other partitions too: slots of those that
    start in another, and planned starts of those that are promised to another. Where a job that
    waits asks for memory or gpus: how much of these is left.
    """

    starts: list[int]
    free: float
    reserved: Mapping[int, float]
    started_elsewhere: Collection[int] = ()
    promised_elsewhere: Mapping[int, float] = field(default_factory=dict)
    left: tuple[float, float] | None = None
    placements: Mapping[int, Placement] = field(default_factory=dict)
    """Of starts, by slot, where the partition shares nodes with others."""

    @property
    def started(self) -> set[int]:
        """Slots of jobs that start, here or elsewhere."""
        return {*self.starts, *self.started_elsewhere}

    @property
    def elsewhere(self) -> Collection[int]:
        """Slots of jobs that start, or are promised to, elsewhere."""
        started, promised = self.started_elsewhere, self.promised_elsewhere
        return {*started, *promised} if started or promised else ()
