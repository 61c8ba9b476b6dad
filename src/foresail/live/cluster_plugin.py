"""What the plug-in of a cluster is: the way to its adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from foresail.live.command_job import CommandJob
from foresail.model.adapter import Capabilities, ClusterAdapter, ClusterTrial


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run has for the adapter of its cluster.

    Parameters
    ----------
    attempts
        A folder for what is to be known of attempts after the adapter has gone.
    logs
        The folder of what commands write.
    commands
        The accepted jobs by id; there are more of them as the run goes on.
    note
        Is given sentences that people should read.
    """

    attempts: Path
    logs: Path
    commands: Mapping[str, CommandJob]
    note: Callable[[str], None]


class ClusterPlugin(Protocol):
    """A cluster as it was named and set: what a plug-in of the family ``cluster`` builds."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    def connect(self, run: RunContext) -> ClusterAdapter:
        """Its adapter for one run."""
        ...

    def trial(self, folder: Path) -> ClusterTrial:
        """Such a cluster to try the adapter on, with an empty folder of its own."""
        ...
