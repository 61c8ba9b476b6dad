"""Conditions of a simulated cluster that the ideal one lacks: cycles, delays, noise, outages."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.model.cluster import Cluster
from foresail.model.errors import require, require_at_least, require_positive
from foresail.model.event import Allocation, NodeChange


@dataclass(frozen=True, slots=True)
class Outage:
    """A node is down from one time (seconds) until before another."""

    node: str
    down_seconds: float
    up_seconds: float


@dataclass(frozen=True, slots=True)
class ClusterConditions:
    """Behaviour of a simulated cluster; by default it is ideal and reacts to every event.

    Raises ``InputError`` if a number is out of its range, or an outage ends before it begins.
    """

    cycle_seconds: float | None = None
    """The scheduler is asked once in so many seconds, while jobs wait; None: after every instant at
    which anything happened."""
    start_delay_seconds: float = 0.0
    """Mean of the (exponential) time an attempt holds its nodes before it begins to run."""
    runtime_noise: float = 0.0
    """Standard deviation of the logarithm of a factor, of mean 1, on every attempt's runtime."""
    outages: tuple[Outage, ...] = ()
    """Outages of nodes, with their times."""
    node_changes: tuple[NodeChange, ...] = ()
    """Nodes that come, change and go, each at its time."""
    share_nodes: bool = False
    """Tasks share the cpus and the memory of their node by what they really use, from moment to
    moment, and get in each other's way (``shared_nodes`` of ``foresail-studies``)."""
    seed: int = 0
    """Seed of delays, noise and refusals. Those of an allocation depend on the seed and on its name
    alone, so that they are the same under every policy."""
    refused_start_share: float = 0.0
    """Share of starts that are not carried out."""
    refused_for_seconds: float = 30.0
    """Time until such a job may be started again."""

    def __post_init__(self) -> None:
        require_at_least(self, 0.001, "cycle_seconds")
        require_at_least(self, 0, "start_delay_seconds", "runtime_noise", "seed")
        require(self.start_delay_seconds <= 1e9, self, "start_delay_seconds", "at most 1e9 s")
        require(self.runtime_noise <= 10.0, self, "runtime_noise", "at most 10")
        shares = 0.0 <= self.refused_start_share < 1.0
        require(shares, self, "refused_start_share", "0 or more and less than 1")
        require_positive(self, "refused_for_seconds")
        timely = all(0.0 <= change.time < math.inf for change in self.node_changes)
        require(timely, self, "node_changes", "times finite and 0 or more")
        for outage in self.outages:
            require_at_least(outage, 0, "down_seconds")
            lasts = outage.down_seconds < outage.up_seconds
            require(lasts, outage, "up_seconds", "later than down_seconds")

    def delay_and_runtime(
        self, allocation: Allocation, runtime_seconds: float
    ) -> tuple[float, float]:
        """Return how long it holds its nodes before it runs, and how long it then runs (seconds).

        ``runtime_seconds`` is how long it would run on an ideal cluster.
        """
        if self.start_delay_seconds == 0.0 and self.runtime_noise == 0.0:
            return 0.0, runtime_seconds
        random = np.random.default_rng(self._entropy(allocation))
        delay = self.start_delay_seconds * random.exponential()
        sigma = self.runtime_noise
        factor = math.exp(sigma * random.normal() - 0.5 * sigma**2)
        return float(delay), float(runtime_seconds * factor)

    def refuses(self, allocation: Allocation) -> bool:
        """Return whether the start of an allocation is not carried out."""
        if self.refused_start_share == 0.0:
            return False
        random = np.random.default_rng([*self._entropy(allocation), 1])
        return float(random.random()) < self.refused_start_share

    def _entropy(self, allocation: Allocation) -> list[int]:
        job_id, stage, tasks, attempt = allocation
        entropy = [self.seed, zlib.crc32(job_id.encode()), attempt]
        if stage:  # a whole job has the seed that it had before there were parts
            entropy += [zlib.crc32(stage.encode()), *tasks]
        return entropy


IDEAL: Final = ClusterConditions()


def random_outages(
    cluster: Cluster,
    horizon_seconds: float,
    mean_seconds_between: float,
    mean_repair_seconds: float,
    seed: int,
) -> tuple[Outage, ...]:
    """Outages of every named node, by themselves: exponential times up and down.

    None begins after ``horizon_seconds``; ``mean_seconds_between`` and ``mean_repair_seconds`` are
    the mean times that a node is up, and down.
    """
    random = np.random.default_rng(seed)
    nodes = [node.name for partition in cluster.partitions for node in partition.nodes]
    means = (mean_seconds_between, mean_repair_seconds)
    return tuple(
        outage for node in nodes for outage in _outages_of(node, horizon_seconds, means, random)
    )


def _outages_of(
    node: str, horizon_seconds: float, means: Sequence[float], random: np.random.Generator
) -> Iterator[Outage]:
    up = 0.0
    while (down := up + random.exponential(means[0])) < horizon_seconds:
        up = down + random.exponential(means[1])
        yield Outage(node, down, up)
