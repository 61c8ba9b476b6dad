"""The plug-in of the cluster that this machine is, and trials of its adapter."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.live.adapters.local.adapter import LocalAdapter
from foresail.live.adapters.local.machine import (
    machine_cpus,
    machine_gpus,
    machine_memory_bytes,
    permitted_cgroups,
)
from foresail.live.cluster_plugin import RunContext
from foresail.live.command_job import CommandJob
from foresail.live.job_fields import memory_bytes
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement, Start
from foresail.model.errors import InputError, require, require_at_least
from foresail.model.registry import register


class LocalTrial:
    """The machine and jobs for it, with their files in a folder."""

    def __init__(self, connect: Callable[[RunContext], LocalAdapter], folder: Path) -> None:
        self._connect = connect
        self._commands: dict[str, CommandJob] = {}
        self._marks = folder / "marks"
        self._run = RunContext(folder / "attempts", folder / "logs", self._commands, lambda _: None)
        for each in (self._marks, self._run.attempts, self._run.logs):
            each.mkdir(parents=True)

    def connect(self) -> LocalAdapter:
        """Another adapter to this machine."""
        return self._connect(self._run)

    def start_of(self, seconds: float) -> Start:
        """The start of a new command."""
        job_id = f"sleep-{len(self._commands)}"
        command = f"echo >> {job_id}; sleep {seconds}"
        self._commands[job_id] = CommandJob(job_id, job_id, command, str(self._marks))
        return Start(job_id, Placement.whole("all", 1))

    def times_begun(self, job_id: str) -> int:
        """Count the marks of its begins."""
        mark = self._marks / job_id
        return len(mark.read_text().splitlines()) if mark.exists() else 0


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
        Into how many nodes they are divided, evenly; 0: they are not distinguished.
    sample_seconds
        Time between two looks at what jobs use.
    log_bytes
        Greatest size of a job's log: its end beyond that is kept, what is between is not.
    cgroups
        Whether each job gets a cgroup of its own, where the machine permits that.
    memory
        Memory for jobs that ask for some, such as ``60GiB``; none: the machine's, less a twentieth
        (2 GiB at most) for all that is no job.
    gpus
        How many gpus it has; none: those that ``nvidia-smi`` lists.
    """

    cpus: int | None = None
    grace_seconds: float = 10.0
    nodes: int = 0
    sample_seconds: float = 5.0
    log_bytes: int = 2**30
    cgroups: bool = True
    memory: str | None = None
    gpus: int | None = None

    def __post_init__(self) -> None:
        require_at_least(self, 0, "nodes")
        require_at_least(self, 0, "log_bytes")
        require(self.sample_seconds > 0, self, "sample_seconds", "seconds above 0")
        require(self.gpus is None or self.gpus >= 0, self, "gpus", "0 or more")
        try:
            memory_bytes(self.memory or "1GiB")
        except ValueError as error:
            raise InputError(
                "not usable as memory", field="memory", value=self.memory, expected=str(error)
            ) from error


@register("cluster", "local", parameters=LocalParameters)
class LocalCluster:
    """Commands on this machine's cpus, each with a process that watches it."""

    capabilities: Final[Capabilities] = LocalAdapter.capabilities

    def __init__(self, parameters: LocalParameters) -> None:
        self.parameters = parameters

    def connect(self, run: RunContext) -> LocalAdapter:
        """Its adapter for one run."""
        chosen = self.parameters
        gpus = self._gpus()
        cgroups = permitted_cgroups() if chosen.cgroups else None
        return LocalAdapter(
            _divided(self._total(gpus), chosen.nodes),
            chosen.grace_seconds,
            chosen.sample_seconds,
            chosen.log_bytes,
            cgroups,
            gpus,
            run,
        )

    @property
    def total(self) -> Resources:
        """Return the resources for all jobs together."""
        return self._total(self._gpus())

    def _total(self, gpus: tuple[str, ...]) -> Resources:
        chosen = self.parameters
        cpus = len(machine_cpus()) if chosen.cpus is None else chosen.cpus
        memory = machine_memory_bytes() if chosen.memory is None else memory_bytes(chosen.memory)
        return Resources(float(cpus), memory, float(len(gpus)))

    def _gpus(self) -> tuple[str, ...]:
        """Return the names of gpus; where there are fewer than it was given, numbers."""
        count = self.parameters.gpus
        if count == 0:
            return ()
        found = machine_gpus()
        if count is None:
            return found
        return found[:count] if len(found) >= count else tuple(map(str, range(count)))

    def trial(self, folder: Path) -> LocalTrial:
        """The machine, with commands that sleep."""
        return LocalTrial(self.connect, folder)


def _divided(total: Resources, count: int) -> Cluster:
    """The machine as one partition: of so many nodes with equal shares, if that is wished."""
    if not count:
        return Cluster((Partition("all", total),))
    cpus, gpus = int(total.cpus), int(total.gpus)
    if cpus < count:
        raise InputError(
            "more nodes than cpus", field="nodes", value=count, expected=f"at most {cpus}"
        )
    host = socket.gethostname().partition(".")[0] or "localhost"
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    memory = float(total.memory_bytes // count)
    nodes = tuple(
        Node(name, Resources(_share(cpus, count, at), memory, _share(gpus, count, at)))
        for at, name in enumerate(names)
    )
    return Cluster((Partition("all", sum((each.total for each in nodes), Resources()), nodes),))


def _share(whole: int, count: int, at: int) -> float:
    """Return the share of one of so many; the first ones have what is left over."""
    return float(whole // count + (at < whole % count))
