"""How many times longer a job runs where it is placed than where it runs best."""

from __future__ import annotations

from typing import Final

from foresail.model.cluster import Cluster
from foresail.model.decision import Placement
from foresail.model.job import Job
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

    def of(self, job: Job, placement: Placement) -> float:
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
            held = all(name in job.preference.names for name, _ in placement.tasks_by_partition)
        else:
            held = bool(placed) and job.preference.holds(placed)
        return 1.0 if held else job.preference.slowdown
