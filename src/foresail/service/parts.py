"""Parts of a service, as they are handed on to those who answer callers and those who decide."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from foresail.control.policy import Policy, parse_policy
from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster
from foresail.model.free_resources import FreeResources
from foresail.scenario.own_requests import places_of_requests
from foresail.service.configuration import ServiceConfiguration
from foresail.service.exchange import Acceptance, Inbox
from foresail.service.feed import Feed
from foresail.service.metrics import ServiceMetrics
from foresail.service.slow_answers import JobCounts, Overview, QueueForecaster
from foresail.service.snapshots import SnapshotCache
from foresail.service.state_folder import GivenNumbers, StateFolder
from foresail.service.store.sql_store import SqlStore
from foresail.service.tokens import ServedAccounts, Tokens
from foresail.service.upkeep import Retention


class ClusterLimits:
    """Limits that a cluster under a policy sets to all jobs: how much each may ask for, and where.

    ``places`` is what requests in STRL may name; None where the scheduler takes none.
    """

    def __init__(self, cluster: Cluster, policy: Policy | None = None) -> None:
        self.room = FreeResources(cluster)
        self.places = None if policy is None else places_of_requests(policy, cluster)


class LimitsCache:
    """Keeps the limits of the latest cluster and policy, which seldom change."""

    def __init__(self) -> None:
        self._latest: tuple[Cluster, str, ClusterLimits] | None = None

    def get(self, cluster: Cluster, policy: str) -> ClusterLimits:
        """Return the limits of this cluster under a policy (in short form)."""
        latest = self._latest
        if latest is None or latest[0] is not cluster or latest[1] != policy:
            latest = cluster, policy, ClusterLimits(cluster, parse_policy(policy))
            self._latest = latest
        return latest[2]


_DIRECTORY_SECONDS: Final = 5.0
_MOST_DIRECTORIES: Final = 10_000
"""Time for which a directory is taken to be there once it was, and most that are known."""


class KnownDirectories:
    """Directories that were there some seconds ago: a disk that is asked may take long."""

    def __init__(self) -> None:
        self._seen_monotonic: dict[Path, float] = {}

    def knows(self, path: Path) -> bool:
        """Return whether a directory was there some seconds ago."""
        return time.monotonic() - self._seen_monotonic.get(path, -math.inf) < _DIRECTORY_SECONDS

    def has(self, path: Path) -> bool:
        """Return whether a directory is there, or was some seconds ago."""
        if self.knows(path):
            return True
        is_there = path.is_dir()
        if is_there:
            if len(self._seen_monotonic) >= _MOST_DIRECTORIES:
                self._seen_monotonic.clear()
            self._seen_monotonic[path] = time.monotonic()
        return is_there


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a service.

    ``problems`` are what keeps it from working; ``remarks`` what people should know though it does.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """Parts of a service."""

    configuration: ServiceConfiguration
    folder: StateFolder
    """Folder of the service as it was begun."""
    store: SqlStore
    tokens: Tokens
    """Tokens, which are durable."""
    served: ServedAccounts
    numbers: GivenNumbers
    """Numbers given to jobs."""
    retention: Retention
    """Lets jobs leave the store."""
    inbox: Inbox
    acceptance: Acceptance
    snapshots: SnapshotCache
    feed: Feed
    """The ways to the daemon and from it."""
    forecaster: QueueForecaster
    """Forecasts of waiting and running jobs."""
    metrics: ServiceMetrics
    counts: JobCounts
    overview: Overview
    """Counts of jobs and their overview."""
    capabilities: Capabilities
    """Capabilities of the cluster."""
    policy: Callable[[], str]
    """Short form of what decides now."""
    reload: Callable[[str | None], str]
    """Goes over to another policy, or to that of the configuration file read anew for None. Raises
    ``ForesailError`` where that cannot be used."""
    condition: Callable[[], Condition]
    """Present condition."""
    now: Callable[[], float]
    """The time, by the clock of all times of jobs."""
    limits: LimitsCache = field(default_factory=LimitsCache)
    directories: KnownDirectories = field(default_factory=KnownDirectories)
    """Limits of the cluster, and directories that were there, as they were looked up last."""
