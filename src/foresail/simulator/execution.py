"""Execution models: how long allocations run, each by itself or slowed by others beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from foresail.model.cluster import Cluster
from foresail.model.construction import quickly_made
from foresail.model.decision import Placement
from foresail.model.free_resources import Slowdowns
from foresail.model.job import Job
from foresail.model.outcome import Allocation, EndedBecause
from foresail.simulator.conditions import ClusterConditions


@quickly_made
@dataclass(frozen=True, slots=True)
class ComingEnd:
    """When (seconds) and why an allocation will end, unless something moves that."""

    allocation: Allocation
    end_seconds: float
    ended_because: EndedBecause = EndedBecause.COMPLETED


class ExecutionModel(Protocol):
    """Knows the truth of how long allocations run, and may tell it anew while they do."""

    def started(
        self, allocation: Allocation, placement: Placement, now: float
    ) -> Sequence[ComingEnd]:
        """An allocation begins to hold its place: its end, and those of others that this moves."""
        ...

    def ended(self, allocation: Allocation, now: float) -> Sequence[ComingEnd]:
        """An allocation has let go of its place, for whatever reason: the ends that this moves."""
        ...

    def nodes_changed(self, cluster: Cluster, now: float) -> None:
        """There are other nodes from now on; what runs has its end."""
        ...

    def used(self, allocation: Allocation, now: float) -> Mapping[str, float]:
        """What is measured of an allocation that is about to end (``Outcome.used``)."""
        ...

    @property
    def next_seconds(self) -> float:
        """When something happens that may end or move what was not told; infinity if nothing."""
        ...

    def advanced(self, now: float) -> Sequence[ComingEnd]:
        """It is that time: the ends that this brings or moves."""
        ...


class FixedRuntimes:
    """Every allocation runs for as long as the truth has it, whatever runs beside it.

    Parameters
    ----------
    runtime_seconds
        The truth: how long an allocation runs where its job runs best.
    job_of
        The specification of the job with an id.
    cluster
        Jobs run longer, by their slowdown, on nodes of it that they do not prefer.
    conditions
        Delays and noise.
    enforces_limits
        Whether allocations are killed at their job's requested time.
    """

    def __init__(
        self,
        runtime_seconds: Callable[[Allocation], float],
        job_of: Callable[[str], Job],
        cluster: Cluster,
        conditions: ClusterConditions,
        *,
        enforces_limits: bool = False,
    ) -> None:
        self._runtime_seconds = runtime_seconds
        self._job_of = job_of
        self._slowdowns = Slowdowns(cluster)
        self._conditions = conditions
        self._enforces_limits = enforces_limits

    next_seconds: float = math.inf
    counters: Mapping[str, float] = MappingProxyType({})

    def started(
        self, allocation: Allocation, placement: Placement, now: float
    ) -> Sequence[ComingEnd]:
        """Its own end alone."""
        job = self._job_of(allocation.job_id)
        slowdown = self._slowdowns.of(job, placement)
        delay, runtime = self._conditions.delay_and_runtime(
            allocation, self._runtime_seconds(allocation) * slowdown
        )
        because = EndedBecause.COMPLETED
        limit = math.inf if job.requested_seconds is None else job.requested_seconds
        if self._enforces_limits and runtime > limit:
            runtime, because = limit, EndedBecause.LIMIT
        return (ComingEnd(allocation, now + (delay + runtime), because),)

    def ended(self, allocation: Allocation, now: float) -> Sequence[ComingEnd]:  # noqa: ARG002 - nothing depends on it
        """No other's."""
        return ()

    def nodes_changed(self, cluster: Cluster, now: float) -> None:  # noqa: ARG002 - the time is no matter
        """What starts from now on runs longer on those of these nodes that it does not prefer."""
        self._slowdowns = Slowdowns(cluster)

    def used(self, allocation: Allocation, now: float) -> Mapping[str, float]:  # noqa: ARG002 - unknown
        """Nothing is measured."""
        return {}

    def advanced(self, now: float) -> Sequence[ComingEnd]:  # noqa: ARG002 - nothing happens
        """None: all are told at the start."""
        return ()
