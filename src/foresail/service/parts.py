"""The parts of a service, as its HTTP interface speaks to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foresail.service.acceptance import Acceptance
from foresail.service.api.submissions import LimitsCache
from foresail.service.configuration import ServiceConfiguration
from foresail.service.feed import Feed
from foresail.service.forecasts import QueueForecaster
from foresail.service.metrics import ServiceMetrics
from foresail.service.overview import JobCounts, Overview
from foresail.service.picture import Gallery
from foresail.service.session import ServedAccounts, StateFolder
from foresail.service.store.sql_store import SqlStore
from foresail.service.tokens import SqlAccess, Tokens


@dataclass(frozen=True, slots=True)
class Condition:
    """How a service is.

    ``problems`` are what keeps it from working; ``remarks`` what people should know though it does.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """What a service consists of."""

    configuration: ServiceConfiguration
    folder: StateFolder
    """As it was begun."""
    store: SqlStore
    access: SqlAccess
    tokens: Tokens
    """What is durable."""
    served: ServedAccounts
    limits: LimitsCache
    acceptance: Acceptance
    gallery: Gallery
    feed: Feed
    """The ways to the daemon and from it."""
    forecaster: QueueForecaster
    """Tells what is to be expected."""
    metrics: ServiceMetrics
    counts: JobCounts
    overview: Overview
    """What is counted."""
    policy: Callable[[], str]
    """Short form of what decides now."""
    reload: Callable[[str | None], str]
    """Goes over to another policy, or to that of the configuration file read anew for None. Raises
    ``ForesailError`` where that cannot be used."""
    condition: Callable[[], Condition]
    """How it is now."""
    now: Callable[[], float]
    """The time, by the clock that all times of jobs are told by."""
