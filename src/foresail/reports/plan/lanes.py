"""Lanes and bands of a picture of a cluster: every cpu is a lane, nodes are bands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.job import Job

Runs = tuple[tuple[int, int], ...]
"""Neighbouring lanes: the first of each run, and the first after it."""


@dataclass(frozen=True, slots=True)
class Band:
    """The lanes of a partition or node: from the first until before ``end``."""

    name: str
    first: int
    end: int

    @property
    def middle(self) -> float:
        """Half way through it."""
        return (self.first + self.end) / 2


class Lanes:
    """The lanes of a cluster, and until when (seconds) each of them is taken."""

    def __init__(self, cluster: Cluster) -> None:
        partitions: list[Band] = []
        nodes: list[Band] = []
        lane = 0
        for partition in cluster.partitions:
            first = lane
            for node in partition.nodes:
                band = Band(node.name, lane, lane + _lanes(node.total.cpus))
                nodes.append(band)
                lane = band.end
            if not partition.nodes:
                lane += _lanes(partition.total.cpus)
            partitions.append(Band(partition.name, first, lane))
        self.count = lane
        self.partitions = tuple(partitions)
        self.nodes = tuple(nodes)
        self._of_partition = {band.name: band for band in partitions}
        self._of_node = {band.name: band for band in nodes}
        self._taken_until = np.full(lane, -math.inf)

    def of_nodes(self, names: Iterable[str]) -> Runs:
        """All lanes of some nodes."""
        bands = [self._of_node[name] for name in names if name in self._of_node]
        return _runs(np.concatenate([np.arange(b.first, b.end) for b in bands])) if bands else ()

    def take(self, job: Job, placement: Placement, start: float, until: float) -> Runs:
        """The lanes of an attempt that started at a time, and keep them taken until another.

        Attempts must come in order of start.
        """
        each = job.cpus / job.tasks
        bands = self._bands(placement)
        found = [self._lowest(band, _lanes(tasks * each), start) for band, tasks in bands]
        lanes = np.concatenate(found) if found else np.zeros(0, np.int64)
        self._taken_until[lanes] = until
        return _runs(lanes)

    def _bands(self, placement: Placement) -> list[tuple[Band, int]]:
        named = [
            (self._of_node[name], tasks)
            for name, tasks in placement.tasks_by_node
            if name in self._of_node
        ]
        return named or [
            (self._of_partition[name], tasks)
            for name, tasks in placement.tasks_by_partition
            if name in self._of_partition
        ]

    def _lowest(self, band: Band, wanted: int, start: float) -> NDArray[np.int64]:
        """The lowest free lanes of a band, or those that are free first."""
        taken = self._taken_until[band.first : band.end]
        free = np.flatnonzero(taken <= start)[:wanted]
        if free.size < wanted:
            free = np.argsort(taken, kind="stable")[:wanted]
        return band.first + free

    def hold(self, runs: Runs, until: float) -> None:
        """Say until when lanes are likely to be taken."""
        for first, end in runs:
            self._taken_until[first:end] = until

    def foresee(self, job: Job, placement: Placement, start: float, until: float) -> Runs:
        """Lanes for a job that is planned: where most are likely to be free by its start.

        First in the partitions that its plan names; where these have no room left and nothing ties
        the job to them, anywhere. A block of neighbours if there is one, the smallest that does.
        """
        wanted = _lanes(job.cpus)
        bands = [band for band, _ in self._bands(placement)]
        found = self._free(bands, wanted, start)
        is_choosy = job.preference is not None or bool(job.options)
        if found.size < wanted and not is_choosy and job.partition is None:
            found = self._free(self.partitions, wanted, start)
        if found.size < wanted:
            inside = _all_of(bands or self.partitions)
            found = inside[np.argsort(self._taken_until[inside], kind="stable")[:wanted]]
        self._taken_until[found] = until
        return _runs(found)

    def _free(self, bands: Sequence[Band], wanted: int, start: float) -> NDArray[np.int64]:
        lanes = _all_of(bands)
        free = lanes[self._taken_until[lanes] <= start]
        blocks = _runs(free)
        fitting = [block for block in blocks if block[1] - block[0] >= wanted]
        if fitting:
            first = min(fitting, key=lambda block: block[1] - block[0])[0]
            return np.arange(first, first + wanted)
        return free[:wanted]


def _all_of(bands: Sequence[Band]) -> NDArray[np.int64]:
    if not bands:
        return np.zeros(0, np.int64)
    return np.concatenate([np.arange(band.first, band.end) for band in bands])


def _lanes(cpus: float) -> int:
    """Whole lanes for a number of cpus, at least one."""
    return max(1, math.ceil(cpus - 1e-9))


def _runs(lanes: NDArray[np.int64]) -> Runs:
    if not lanes.size:
        return ()
    ordered = np.unique(lanes)
    breaks = np.flatnonzero(np.diff(ordered) != 1)
    firsts = ordered[np.concatenate(([0], breaks + 1))]
    lasts = ordered[np.concatenate((breaks, [ordered.size - 1]))]
    return tuple(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))
