"""The parts of a service, as its HTTP interface speaks to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from foresail.service.acceptance import Acceptance
from foresail.service.configuration import ServiceConfiguration
from foresail.service.feed import Feed
from foresail.service.forecasts import QueueForecaster
from foresail.service.job_counts import JobCounts
from foresail.service.metrics import ServiceMetrics
from foresail.service.picture import Gallery
from foresail.service.session import StateFolder
from foresail.service.store.protocol import Store
from foresail.service.tokens import AccessStore, Tokens


@dataclass(frozen=True, slots=True)
class Condition:
    """How a service is.

    ``problems`` are what keeps it from working; ``remarks`` what people should know though it does.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """What a service consists of.

    Parameters
    ----------
    configuration, folder
        As it was begun.
    store, access, tokens
        What is durable.
    acceptance, gallery, feed
        The ways to the daemon and from it.
    forecaster
        Tells what is to be expected.
    metrics, counts
        What is counted.
    policy
        Short form of what decides now.
    reload
        Goes over to another policy, or to that of the configuration file read anew for None.
        Raises ``ForesailError`` where that cannot be used.
    condition
        How it is now.
    """

    configuration: ServiceConfiguration
    folder: StateFolder
    store: Store
    access: AccessStore
    tokens: Tokens
    acceptance: Acceptance
    gallery: Gallery
    feed: Feed
    forecaster: QueueForecaster
    metrics: ServiceMetrics
    counts: JobCounts
    policy: Callable[[], str]
    reload: Callable[[str | None], str]
    condition: Callable[[], Condition]
