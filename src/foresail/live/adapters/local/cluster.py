"""The plug-in of the cluster that this machine is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.live.adapters.local.adapter import LocalAdapter
from foresail.live.adapters.local.cpu_slots import machine_cpus
from foresail.live.adapters.local.trial import LocalTrial
from foresail.live.cluster_plugin import RunContext
from foresail.model.adapter import Capabilities
from foresail.model.registry import register


@dataclass(frozen=True, slots=True)
class LocalParameters:
    """Parameters of the local cluster.

    Parameters
    ----------
    cpus
        How many cpus it has; none: as many as this process may use.
    grace_seconds
        Time between the gentle and the firm signal to a job that has to end.
    """

    cpus: int | None = None
    grace_seconds: float = 10.0


@register("cluster", "local", parameters=LocalParameters)
class LocalCluster:
    """Commands on this machine's cpus, each with a process that watches it."""

    capabilities: Final[Capabilities] = LocalAdapter.capabilities

    def __init__(self, parameters: LocalParameters) -> None:
        self._cpus = len(machine_cpus()) if parameters.cpus is None else parameters.cpus
        self._grace_seconds = parameters.grace_seconds

    def connect(self, run: RunContext) -> LocalAdapter:
        """Its adapter for one run."""
        return LocalAdapter(self._cpus, self._grace_seconds, run)

    def trial(self, folder: Path) -> LocalTrial:
        """The machine, with commands that sleep."""
        return LocalTrial(self.connect, folder)
