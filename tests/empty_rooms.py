"""Clusters of one partition without nodes, for what looks at their size alone."""

from foresail.model.cluster import Cluster, Partition, Resources
from foresail.model.free_resources import FreeResources


def empty_room(*amounts: float) -> FreeResources:
    """The room of an empty cluster of these cpus, bytes of memory and gpus."""
    return FreeResources(Cluster((Partition("all", Resources(*amounts)),)))
