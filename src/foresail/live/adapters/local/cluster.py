"""The plug-in of the cluster that this machine is."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.live.adapters.local.adapter import LocalAdapter
from foresail.live.adapters.local.cpu_slots import machine_cpus
from foresail.live.adapters.local.job_cgroups import permitted_cgroups
from foresail.live.adapters.local.trial import LocalTrial
from foresail.live.cluster_plugin import RunContext
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster, Node, Partition
from foresail.model.errors import InputError
from foresail.model.limits import require, require_at_least
from foresail.model.registry import register
from foresail.model.resources import Resources


@dataclass(frozen=True, slots=True)
class LocalParameters:
    """Parameters of the local cluster.

    Parameters
    ----------
    cpus
        How many cpus it has; none: as many as this process may use.
    grace_seconds
        Time between the gentle and the firm signal to a job that has to end.
    nodes
        Into how many nodes they are divided, evenly; 0: they are not told apart.
    sample_seconds
        Time between two looks at what jobs use.
    cgroups
        Whether each job gets a cgroup of its own, where the machine permits that.
    """

    cpus: int | None = None
    grace_seconds: float = 10.0
    nodes: int = 0
    sample_seconds: float = 5.0
    cgroups: bool = True

    def __post_init__(self) -> None:
        require_at_least(self, 0, "nodes")
        require(self.sample_seconds > 0, self, "sample_seconds", "seconds above 0")


@register("cluster", "local", parameters=LocalParameters)
class LocalCluster:
    """Commands on this machine's cpus, each with a process that watches it."""

    capabilities: Final[Capabilities] = LocalAdapter.capabilities

    def __init__(self, parameters: LocalParameters) -> None:
        self._cpus = len(machine_cpus()) if parameters.cpus is None else parameters.cpus
        self._parameters = parameters

    def connect(self, run: RunContext) -> LocalAdapter:
        """Its adapter for one run."""
        chosen = self._parameters
        cluster = _divided(self._cpus, chosen.nodes)
        cgroups = permitted_cgroups() if chosen.cgroups else None
        return LocalAdapter(cluster, chosen.grace_seconds, chosen.sample_seconds, cgroups, run)

    def trial(self, folder: Path) -> LocalTrial:
        """The machine, with commands that sleep."""
        return LocalTrial(self.connect, folder)


def _divided(cpus: int, count: int) -> Cluster:
    """The machine as one partition: of so many nodes with equal shares, if that is wished.

    Raises
    ------
    InputError
        If there are fewer cpus than nodes.
    """
    if not count:
        return Cluster.of_processors(cpus)
    if cpus < count:
        raise InputError(
            "more nodes than cpus", field="nodes", value=count, expected=f"at most {cpus}"
        )
    host = socket.gethostname().partition(".")[0] or "localhost"
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    nodes = tuple(
        Node(name, Resources(float(cpus // count + (at < cpus % count)), float(memory // count)))
        for at, name in enumerate(names)
    )
    return Cluster((Partition("all", sum((each.total for each in nodes), Resources()), nodes),))
