"""The scenario: all that says what is run. Which engine carries it out follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from foresail.control.policy import Policy
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.event import STANDARD, Conventions
from foresail.simulator.conditions import IDEAL, ClusterConditions

if TYPE_CHECKING:  # a replay begins sooner without what only some scenarios need
    from foresail.scenario.learned_before import LearnedBefore
    from foresail.traces.workload import Workload


class Commands(Protocol):
    """Real commands: a run of those in a directory, or of those that a service accepts."""

    def origin(self) -> tuple[str, str | None]:
        """Return where they come from, and the digest of that if it is a file."""


Place: TypeAlias = Cluster | Literal["processors", "nodes"]
"""Cluster that jobs run on: a given one, or the workload's processors (one pool) or nodes."""


@dataclass(frozen=True)
class Scenario:
    """Scenario of a run: jobs, cluster and rules."""

    workload: Workload | None
    """Jobs and their truth; None as long as the log is not read, and for real commands."""
    policy: Policy
    """Scheduler, predictor and correction; with the length of cycles, if any."""
    place: Place = "processors"
    """Cluster that the jobs run on; real commands run on the one that their run directory names."""
    conventions: Conventions = STANDARD
    """The order of things at the same instant; with cycles, there is a pass after a tick alone."""
    conditions: ClusterConditions = IDEAL
    """Departures of the cluster from an ideal one."""
    enforce_limits: bool = False
    """Jobs end at their requested time."""
    event_log: Path | None = None
    """File that has the event log once it is whole; None: nothing is logged, but for real commands,
    whose run directory always has one."""
    learned_before: LearnedBefore | None = None
    """Knowledge of predictors before the first job, unless they are oracles."""
    commands: Commands | None = None
    """Real commands, which are what is run then; None: a simulation."""
    engine: str | None = None
    """Name of the engine that is to carry it out; None: the quickest that can."""

    @property
    def jobs(self) -> Workload:
        """The workload.

        Raises ``InputError`` if there is none.
        """
        if self.workload is None:
            raise InputError("there are no jobs", field="workload", expected="a log that is read")
        return self.workload

    @property
    def cluster(self) -> Cluster:
        """Return the cluster that the jobs run on.

        Raises ``InputError`` if the workload does not say which nodes, or how many processors,
        there are.
        """
        if isinstance(self.place, Cluster):
            cluster = self.place
        elif self.place == "processors":
            cluster = processors_of(self.jobs)
        else:
            cluster = nodes_of(self.jobs)
        return replace(cluster, shared=True) if self.conditions.share_nodes else cluster

    @property
    def policy_in_force(self) -> Policy:
        """The policy, with the length of cycles if there are any."""
        cycle = self.conditions.cycle_seconds
        return self.policy if cycle is None else self.policy.in_cycles(cycle)

    @property
    def conventions_in_force(self) -> Conventions:
        """The conventions, or what they are in cycles."""
        cycle = self.conditions.cycle_seconds
        return self.conventions if cycle is None else self.conventions.in_cycles()


def says_speeds(workload: Workload) -> bool:
    """Return whether its nodes table has the column for it."""
    from foresail.traces.schema import SPEED

    return workload.nodes is not None and SPEED in workload.nodes.columns


def processors_of(workload: Workload) -> Cluster:
    """The workload's processors, by partition; or see ``foresail.traces.nodes.processors_of``."""
    if workload.partitions:
        return Cluster.of_partitions(workload.partitions)
    if not says_speeds(workload):
        return Cluster.of_processors(workload.processors)
    from foresail.traces import nodes

    return nodes.processors_of(workload)


def nodes_of(workload: Workload) -> Cluster:
    """The workload's own nodes.

    Raises ``InputError`` if it does not say which there are.
    """
    from foresail.traces.nodes import cluster_of

    if workload.nodes is None:
        raise InputError(
            "the workload does not say which nodes there are",
            source=workload.meta.source,
            expected="a workload folder with a nodes table",
        )
    return cluster_of(workload.nodes)
