"""What is asked by who pays for machines, and the rules of waiting that are considered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from foresail.cloud.prices import checked_price
from foresail.cloud.waiting.policies import QUEUES, Queue, WaitingPolicy, waiting_policy
from foresail.model.errors import (
    UnknownNameError,
    require,
    require_at_least,
    require_each_at_least,
    require_positive,
)

_HOUR: Final = 3600.0
LIMITED: Final = ("all-jobs-wait-threshold", "compound", "speculative")
"""Rules under which a wait has a limit, so that it may help to know what would wait for longer."""

Waits = Literal["unknown", "learned"]
Trials = Literal["on demand", "transient"]


@dataclass(frozen=True, slots=True)
class WaitingRule:
    """A waiting policy by its long name, with the thresholds that it has."""

    name: str
    """As for ``waiting_policy``."""
    waiting_seconds: float = math.inf
    """How long a job waits before it is rented a machine; inf where it never is."""
    short_seconds: float = 0.0
    """A job that is believed to run for less is rented one at once, or, under ``speculative``, for
    how long every job is tried on one."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    waits: Waits = "unknown"
    """Whether a job that is expected to wait for longer is rented a machine at once, by what the
    first third of the log taught; until then none is. With it, AJW-T is called SWW."""
    trials: Trials = "on demand"
    """What jobs are tried on under ``speculative``."""

    @property
    def policy(self) -> WaitingPolicy:
        """The setting that is simulated."""
        return waiting_policy(self.name, self.waiting_seconds, self.short_seconds, self.queue)

    @property
    def goes_by_runtimes(self) -> bool:
        """Whether it needs to be told runtimes, which are not known on submission."""
        return self.name == "compound" or (self.queue == "sjf" and self.name != "no-jobs-wait")

    def better_told(self, *, transient: bool) -> Iterator[WaitingRule]:
        """The same rule with learned waits, and tried on transient machines if there are some."""
        if self.name not in LIMITED:
            return
        yield replace(self, waits="learned")
        if transient and self.name == "speculative":
            yield replace(self, trials="transient")
            yield replace(self, waits="learned", trials="transient")


@dataclass(frozen=True, slots=True)
class AdviceQuestion:
    """What is asked; money is in the catalogue's currency.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    owned: int | None = None
    """Nodes that there are today; None: those that the prices say are committed already, or as many
    as the log's machine makes, if it says."""
    node: str | None = None
    """Name of the type to own or reserve; None: the cheapest by the core of a suitable size."""
    term_years: int = 3
    """For how long nodes are reserved."""
    node_price_per_hour: float | None = None
    """What a node costs that is owned, used or not; None: the reserved price."""
    wait_price_per_hour: float | None = None
    """What an hour that one job waits is worth; None: ``usual_hour_value``."""
    most_wait_seconds: float | None = None
    most_cost_per_month: float | None = None
    """Targets: of the mean wait over all jobs, and of the cost."""
    waiting_seconds: tuple[float, ...] = (_HOUR, 4.0 * _HOUR, 24.0 * _HOUR)
    short_seconds: tuple[float, ...] = (180.0, 900.0)
    """Thresholds that are tried."""
    queue: Queue = "fcfs"
    """Order of the waiting jobs."""
    risk: float | None = None
    """A node is advised only if the chance that it does not pay is at most this; None: as many are
    as come to least in expectation."""
    growth: float = 1.0
    growth_spread: float = 0.2
    """Factor by which demand grows until the nodes serve, and standard deviation of its
    logarithm."""
    futures: int = 400
    """How many futures are drawn: weeks of the log, put together anew."""
    seed: int = 0
    """Of the draws."""
    workers: int = 1
    """Simulations at once."""

    def __post_init__(self) -> None:
        if self.queue not in QUEUES:
            raise UnknownNameError("queue", self.queue, QUEUES)
        require_at_least(self, 0, "owned", "node_price_per_hour", "wait_price_per_hour")
        for name in ("node_price_per_hour", "wait_price_per_hour"):
            if getattr(self, name):
                checked_price(getattr(self, name), name)
        require_at_least(self, 0, "most_wait_seconds", "most_cost_per_month", "growth_spread")
        require_at_least(self, 1, "futures", "workers")
        require_each_at_least(self, 0, "waiting_seconds", "short_seconds")
        require_positive(self, "growth")
        require(self.term_years in (1, 3), self, "term_years", "1 or 3")
        sensible = self.risk is None or 0.0 < self.risk < 1.0
        require(sensible, self, "risk", "above 0 and below 1")

    @property
    def has_targets(self) -> bool:
        """Whether the cost or the wait is limited."""
        return self.most_cost_per_month is not None or self.most_wait_seconds is not None

    def rules(self) -> Iterator[WaitingRule]:
        """The rules to begin with; none needs to know what it could not know live."""
        # Of rules that come to the same, the first is advised.
        yield WaitingRule("no-jobs-wait", waiting_seconds=0.0, queue=self.queue)
        yield WaitingRule("all-jobs-wait", queue=self.queue)
        for waiting in self.waiting_seconds:
            yield WaitingRule("all-jobs-wait-threshold", waiting, queue=self.queue)
        for name in ("compound", "speculative"):
            for short in self.short_seconds:
                for waiting in self.waiting_seconds:
                    yield WaitingRule(name, waiting, short, self.queue)
