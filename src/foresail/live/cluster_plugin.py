"""Plug-in of a cluster: the way to its adapter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from foresail.live.accounts import Account
from foresail.live.command_job import CommandJob
from foresail.model.adapter import Capabilities, ClusterAdapter, ClusterTrial
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.registry import place_of
from foresail.model.short_form import part_of


@dataclass(frozen=True, slots=True)
class UseSample:
    """Use of an attempt between two samples (Unix seconds)."""

    job_id: str
    attempt: int
    start_seconds: float
    end_seconds: float

    average_cpus: float
    """Cpus in the mean."""
    memory_bytes: float
    """Memory at the second look."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Context that a run has for the adapter of its cluster."""

    attempts: Path
    """A folder for what is to be known of attempts after the adapter has gone."""
    logs: Path
    """The folder of what commands write."""
    commands: Mapping[str, CommandJob]
    """The accepted jobs by id; there are more of them as the run goes on."""
    note: Callable[[str], None]
    """Callback that is given sentences that people should read."""
    keep_samples: Callable[[Sequence[UseSample]], None] = lambda _: None
    """Callback that is given what jobs use, as it is measured; by default nothing is kept."""
    keep_estimates: Callable[[Mapping[str, float]], None] = lambda _: None
    """Callback that is given when the cluster expects jobs to start (Unix seconds), by id."""
    identity: str = ""
    """Owner of these attempts: what another left in the folder is never taken for one's own."""
    account_of_job: Callable[[CommandJob], Account] | None = None
    """Account that each job runs as; None: all as who runs this. Raises ``InputError`` where there
    is no such account."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that commands get of those of who runs this, on top of those of a login."""


class ClusterPlugin(Protocol):
    """A cluster as it was named and set: what a plug-in of the family ``cluster`` builds."""

    @property
    def capabilities(self) -> Capabilities:
        """Return what the cluster can do."""

    def connect(self, run: RunContext) -> ClusterAdapter:
        """Return its adapter for one run."""

    def trial(self, folder: Path) -> ClusterTrial:
        """Such a cluster to try the adapter on, with an empty folder of its own."""


def require_linux() -> None:
    """Refuse any other system: commands are supervised with what only Linux has."""
    if sys.platform != "linux":
        raise InputError("real commands run on Linux only", value=sys.platform, expected="linux")


def cluster_of(text: str) -> Cluster:
    """Return the nodes of a cluster for commands, by its short form; nothing is run.

    Raises ``InputError`` if it is malformed, cannot be reached or runs no commands,
    ``UnknownNameError`` if there is no such cluster.
    """
    plugin: ClusterPlugin = part_of("cluster", text).build()
    if not plugin.capabilities.runs_commands:
        raise InputError("runs no commands of Foresail's", field="cluster", value=text)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        adapter = plugin.connect(RunContext(place, place, {}, note=lambda _: None))
        try:
            if isinstance(adapter.cluster, Cluster):
                return adapter.cluster
            problem = f"its cluster is {adapter.cluster!r}, not a Cluster"
            raise InputError(problem, **place_of(type(adapter)))
        finally:
            adapter.close()
