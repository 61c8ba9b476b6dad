"""Synchronisation models, whom a barrier waits for, and the speeds of transient workers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np

from foresail.distributions.empirical import Empirical
from foresail.model.arrays import Floats, Integers
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError, UnknownNameError, require, require_at_least
from foresail.model.registry import Entry
from foresail.model.short_form import PlugIn, make_part, name_and_settings, said

_MOST_BARRIERS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BarrierProgram:
    """A parallel program with barriers (spec section 3, Tables 4.1 and 4.2)."""

    operations: float = 8_000.0
    """All work, W; an on-demand worker does one in a unit of time."""
    barriers: int = 500
    """How often all workers synchronise, b."""
    network_seconds: float = 0.175
    """Time that one worker's messages take at a barrier, n."""
    transient_discount: float = 0.9
    """By how much transient workers are cheaper than on-demand ones, f."""

    def __post_init__(self) -> None:
        require(1e-9 <= self.operations <= 1e18, self, "operations", "1e-9 to 1e18")
        require(1 <= self.barriers <= _MOST_BARRIERS, self, "barriers", "1 to 1,000,000")
        require(0.0 <= self.network_seconds <= 1e9, self, "network_seconds", "0 to 1e9")
        sensible = 0.0 <= self.transient_discount < 1.0
        require(sensible, self, "transient_discount", "0 or more, below 1")


_AMOUNT: Final = re.compile(r"(\d+)|k(?:([-/])(\d+))?")
"""Workers that may depend on how many there are: ``4``, ``k``, ``k-1``, ``k/2``."""


@dataclass(frozen=True)
class BarrierRules:
    """Rules of a model at each number of workers k; shapes are (numbers of workers,)."""

    rented: Integers
    """Workers that are paid for: k, and backups."""
    release_rank: Integers
    """A barrier is released at the pace of the worker with this rank among the rented, slowest
    1."""
    last_rank: Integers
    """The same for the last barrier, which waits for all tasks."""
    dropped: Integers
    """Tasks of an interval that the barrier does not wait for; what they leave is spread over the
    next interval."""
    keeps_partial_work: bool = False
    """Whether a dropped task leaves only what is unfinished of it."""
    intervals_per_message: int = 1
    """Intervals that workers may be apart, and between two exchanges."""
    transient: bool = True
    """Whether workers are transient: cheap, and of differing speed."""


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Bulk-synchronous on workers of the same speed (equations 4.3 and 4.4)."""

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        ones = np.ones_like(workers)
        return BarrierRules(workers, ones, ones, np.zeros_like(workers), transient=False)


@dataclass(frozen=True, slots=True)
class TransientWorkers:
    """Bulk-synchronous on transient workers: every barrier waits for the slowest (4.5)."""

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        ones = np.ones_like(workers)
        return BarrierRules(workers, ones, ones, np.zeros_like(workers))


@dataclass(frozen=True, slots=True)
class Replicas:
    """Backup workers: a barrier waits for the k fastest of k + ``count`` (4.6 to 4.8)."""

    count: str = "1"

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        more = amount(self.count, workers, "count")
        return BarrierRules(workers + more, 1 + more, 1 + more, np.zeros_like(workers))


@dataclass(frozen=True, slots=True)
class Staleness:
    """Bounded staleness: workers exchange only every so many ``intervals`` (4.9)."""

    intervals: int = 10

    def __post_init__(self) -> None:
        require_at_least(self, 1, "intervals")

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        ones = np.ones_like(workers)
        return BarrierRules(
            workers,
            ones,
            ones,
            np.zeros_like(workers),
            intervals_per_message=self.intervals,
        )


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial barriers: the ``dropped`` slowest tasks are done again later, from scratch (4.10)."""

    dropped: str = "k/2"

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        dropped = _dropped(self.dropped, workers)
        return BarrierRules(workers, 1 + dropped, np.ones_like(workers), dropped)


@dataclass(frozen=True, slots=True)
class Flexible:
    """Flexible synchronisation: only the unfinished part of ``dropped`` tasks is put off (4.11).

    With ``replicas``, the hybrid of both.
    """

    dropped: str = "k-1"
    replicas: str = "0"

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        dropped = _dropped(self.dropped, workers)
        more = amount(self.replicas, workers, "replicas")
        return BarrierRules(
            workers + more, 1 + dropped + more, 1 + more, dropped, keeps_partial_work=True
        )


@dataclass(frozen=True, slots=True)
class Hybrid(Flexible):
    """Flexible synchronisation with backup workers; its formula is ours (spec section 3)."""

    replicas: str = "1"


Model = OnDemand | TransientWorkers | Replicas | Staleness | Partial | Flexible
"""A way to synchronise."""


def amount(text: str, workers: Integers, field: str) -> Integers:
    """Read a number that may depend on that of workers; rounded down, never below 0."""
    match = _AMOUNT.fullmatch(text.replace(" ", ""))
    if match is None or (match[2] == "/" and int(match[3]) == 0):
        raise InputError(
            "no number of workers",
            field=field,
            value=text,
            expected="a whole number, k, k-1, k/2 or the like",
        )
    if match[1] is not None:
        return np.full_like(workers, int(match[1]))
    if match[2] is None:
        return workers.copy()
    other = int(match[3])
    return np.maximum(workers - other, 0) if match[2] == "-" else workers // other


def _dropped(text: str, workers: Integers) -> Integers:
    """Tasks that are dropped; a plain number of them leaves one where there are fewer workers."""
    dropped = amount(text, workers, "dropped")
    if "k" in text and (dropped >= workers).any():
        raise InputError(
            "all workers are dropped",
            field="dropped",
            value=text,
            expected="fewer than k, such as k-1",
        )
    return np.minimum(dropped, workers - 1)


_MODELS: Final[dict[str, type[Any]]] = {
    "on_demand": OnDemand,
    "transient": TransientWorkers,
    "replicas": Replicas,
    "staleness": Staleness,
    "partial": Partial,
    "fsp": Flexible,
    "hybrid": Hybrid,
}


def label(part: PlugIn) -> str:
    """Name of a model, defaults too: ``fsp(dropped=k-1)``; only no replicas are left out."""
    values = {each.name: getattr(part.parameters, each.name) for each in fields(part.parameters)}
    shown = [
        f"{name}={said(value)}"
        for name, value in values.items()
        if (name, value) != ("replicas", "0")
    ]
    return f"{part.entry.name}({','.join(shown)})" if shown else part.entry.name


def model_of(text: str) -> PlugIn:
    """The model that a short form names, such as ``fsp(dropped=k/2)``.

    Raises ``InputError`` if the text is malformed, or a parameter's value does not fit;
    ``UnknownNameError`` if there is no such model or parameter.
    """
    name, settings = name_and_settings(text)
    if name not in _MODELS:
        raise UnknownNameError("synchronisation model", name, _MODELS)
    kind = _MODELS[name]
    return make_part(Entry("synchronisation model", name, lambda model: model, kind), settings)


_LEVELS: Final = 4096


@dataclass(frozen=True, slots=True)
class UniformSpeeds:
    """Speeds between 0 and 1, each as likely as any other: the thesis' transient workers."""

    def expected(self, rank: Integers, workers: Integers) -> Floats:
        """Expected speed of the worker with this rank among so many, the slowest having rank 1."""
        return rank / (workers + 1.0)

    def unfinished(self, slower: Integers, workers: Integers) -> Floats:  # noqa: ARG002 - as others have it
        """Mean share of their tasks that so many slowest have not done when the next one has."""
        return np.full(slower.shape, 0.5)


@dataclass(frozen=True)
class AnySpeeds:
    """Speeds of any distribution, by its quantiles.

    Raises ``InputError`` if workers may have no speed at all: use ``at_least``.
    """

    distribution: Distribution

    def __post_init__(self) -> None:
        if not self._quantiles[0] > 0.0:
            raise InputError(
                "some workers never get anything done",
                field="speeds",
                value=float(self._quantiles[0]),
                expected="speeds above 0; raise the lowest speed",
            )

    @cached_property
    def _levels(self) -> Floats:
        return (np.arange(_LEVELS) + 0.5) / _LEVELS

    @cached_property
    def _quantiles(self) -> Floats:
        return np.array([self.distribution.quantile(float(level)) for level in self._levels])

    def expected(self, rank: Integers, workers: Integers) -> Floats:
        """Expected speed of the worker with this rank among so many, the slowest having rank 1."""
        return np.array(
            [
                self._weights(at, of) @ self._quantiles
                for at, of in zip(rank.tolist(), workers.tolist(), strict=True)
            ]
        )

    def unfinished(self, slower: Integers, workers: Integers) -> Floats:
        """Mean share of their tasks that so many slowest have not done when the next one has.

        Given its speed v, the slower ones are independent draws from below v.
        """
        below = np.cumsum(self._quantiles) - 0.5 * self._quantiles
        left = 1.0 - below / (_LEVELS * self._levels) / self._quantiles
        return np.array(
            [
                self._weights(some + 1, of) @ left
                for some, of in zip(slower.tolist(), workers.tolist(), strict=True)
            ]
        )

    def _weights(self, rank: int, workers: int) -> Floats:
        """Density of the level of the worker with a rank, a beta distribution, on the levels."""
        log = (rank - 1) * np.log(self._levels) + (workers - rank) * np.log1p(-self._levels)
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum())


RankedSpeeds = UniformSpeeds | AnySpeeds
"""What the formulas need to know of workers' speeds; 1 is the speed of an on-demand worker."""


def at_least(distribution: Distribution, lowest: float) -> Empirical:
    """A distribution of speeds, with those below the lowest raised to it, as equally likely atoms.

    Raises ``InputError`` if the lowest is not above 0.
    """
    if not 0.0 < lowest < math.inf:
        raise InputError("no speed", field="lowest", value=lowest, expected="above 0")
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return Empirical([max(distribution.quantile(float(level)), lowest) for level in levels])
