"""How many times longer a job runs where it is placed than where it runs best, at speed 1."""

from __future__ import annotations

from typing import Final

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.named_partitions import belongs
from foresail.model.option import option_of
from foresail.model.preference import PreferenceKind


class Slowdowns:
    """The slowdowns of placements on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._nodes: Final = {
            node.name: (node, partition.name)
            for partition in cluster.partitions
            for node in partition.nodes
        }
        self._slowest: Final = {
            partition.name: min([node.speed for node in partition.nodes] or [partition.speed])
            for partition in cluster.partitions
        }
        self._has_speeds: Final = cluster.has_speeds

    def of(self, job: Job, placement: Placement) -> float:
        """What the place does to the job, over the speed of the slowest machine that it is given.

        A gang waits for its slowest task. What has a place in a partition, and on no particular
        nodes, is taken to be on the slowest of them.
        """
        likes_some = job.options or job.preference is not None
        own = self._of_place(job, placement) if likes_some else 1.0
        return own * (1.0 / self._speed(placement)) if self._has_speeds else own

    def _speed(self, placement: Placement) -> float:
        if placement.tasks_by_node:
            return min(self._nodes[name][0].speed for name, _ in placement.tasks_by_node)
        return min(self._slowest[name] for name, _ in placement.tasks_by_partition)

    def _of_place(self, job: Job, placement: Placement) -> float:
        """The job's own slowdown, or 1 where its preference is given; that of its option if it has.

        A pool of processors without named nodes is all alike to every job.
        """
        if job.options:
            option = option_of(job.options, placement)
            return 1.0 if option is None else option.slowdown
        if job.preference is None or not self._nodes:
            return 1.0
        placed = [(*self._nodes[name], tasks) for name, tasks in placement.tasks_by_node]
        if not placed and job.preference.kind is PreferenceKind.PARTITION:
            held = all(
                belongs(name, job.preference.names) for name, _ in placement.tasks_by_partition
            )
        else:
            held = bool(placed) and job.preference.holds(placed)
        return 1.0 if held else job.preference.slowdown
