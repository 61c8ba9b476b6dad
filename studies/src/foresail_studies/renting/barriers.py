"""Synchronisation models: whom a barrier waits for, and time and cost by workers and speeds.

By formula, or with speeds that are drawn.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from foresail.distributions.empirical import Empirical
from foresail.model.distribution import Distribution, Floats, Integers
from foresail.model.errors import InputError, UnknownNameError, require, require_at_least
from foresail.model.short_form import name_and_settings

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

    def pace(self, rank: Integers) -> Floats:
        """Expected speed of the worker with a rank, the slowest having rank 1."""
        expected: Floats = rank / (self.rented + 1.0) if self.transient else np.ones(rank.shape)
        return expected

    def left(self) -> Floats:
        """Expected share of an interval's work that is left: half of each unfinished task."""
        workers = self.rented - self.last_rank + 1
        return self.dropped / workers * (0.5 if self.keeps_partial_work else 1.0)


@dataclass(frozen=True, slots=True)
class BarrierModel:
    """Way to synchronise: bulk-synchronous on transient workers (4.5), unless a field differs."""

    replicas: str = "0"
    """Backup workers: a barrier waits for the k fastest of k and these (4.6 to 4.8)."""
    dropped: str = "0"
    """Slowest tasks that a barrier does not wait for; done again in the next interval (4.10)."""
    intervals: int = 1
    """Bounded staleness: workers exchange only every so many (4.9)."""
    keeps_partial_work: bool = False
    """Flexible synchronisation: only the unfinished part of dropped tasks is put off (4.11)."""
    transient: bool = True
    """Whether workers are transient; else all have the same speed (4.3 and 4.4)."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "intervals")

    def rules(self, workers: Integers) -> BarrierRules:
        """Rules at each number of workers."""
        more = amount(self.replicas, workers, "replicas")
        dropped = _dropped(self.dropped, workers)
        return BarrierRules(
            rented=workers + more,
            release_rank=1 + dropped + more,
            last_rank=1 + more,
            dropped=dropped,
            keeps_partial_work=self.keeps_partial_work,
            intervals_per_message=self.intervals,
            transient=self.transient,
        )


_FLEXIBLE: Final = BarrierModel(dropped="k-1", keeps_partial_work=True)
_MODELS: Final[dict[str, tuple[BarrierModel, tuple[str, ...]]]] = {
    "on_demand": (BarrierModel(transient=False), ()),
    "transient": (BarrierModel(), ()),
    "replicas": (BarrierModel(replicas="1"), ("count",)),
    "staleness": (BarrierModel(intervals=10), ("intervals",)),
    "partial": (BarrierModel(dropped="k/2"), ("dropped",)),
    "fsp": (_FLEXIBLE, ("dropped", "replicas")),
    "hybrid": (replace(_FLEXIBLE, replicas="1"), ("dropped", "replicas")),
}
"""Models by name, and the parameters of each; ``count`` is that of backup workers. The formula of
the hybrid is ours (spec section 3)."""


def model_of(text: str) -> BarrierModel:
    """The model that a short form names, such as ``fsp(dropped=k/2)``.

    Raises ``InputError`` if the text is malformed, or a parameter's value does not fit;
    ``UnknownNameError`` if there is no such model or parameter.
    """
    name, settings = name_and_settings(text)
    if name not in _MODELS:
        raise UnknownNameError("synchronisation model", name, _MODELS)
    model, known = _MODELS[name]
    values: dict[str, Any] = {}
    for setting in settings:
        field, _, value = (each.strip() for each in setting.partition("="))
        if field not in known:
            raise UnknownNameError(f"parameter of {name}", field, known)
        if field == "intervals" and not value.isdigit():
            raise InputError("not a number", field=field, value=value, expected="1 or more")
        own = "replicas" if field == "count" else field
        values[own] = int(value) if field == "intervals" else value
    return replace(model, **values)


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


_LEVELS: Final = 4096


def at_least(distribution: Distribution, lowest: float) -> Empirical:
    """A distribution of speeds, with those below the lowest raised to it, as equally likely atoms.

    Raises ``InputError`` if the lowest is not above 0.
    """
    if not 0.0 < lowest < math.inf:
        raise InputError("no speed", field="lowest", value=lowest, expected="above 0")
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return Empirical([max(distribution.quantile(float(level)), lowest) for level in levels])


@dataclass(frozen=True)
class Costs:
    """A model at several numbers of workers; all arrays of shape (numbers of workers,)."""

    name: str
    """The model's short form."""
    workers: Integers
    """Workers that tasks are made for, k."""
    seconds: Floats
    """Time that the program takes, T."""
    speedup: Floats
    """Over one on-demand worker that meets no barrier."""
    cost: Floats
    """Over what that worker costs."""

    @property
    def ratio(self) -> Floats:
        """Speed-up for the money: speed-up over cost."""
        return self.speedup / self.cost

    @property
    def fastest(self) -> int:
        """Place among the numbers of workers where the speed-up is largest."""
        return int(np.argmax(self.speedup))

    @property
    def best_value(self) -> int:
        """Place among the numbers of workers where speed-up over cost is largest."""
        return int(np.argmax(self.ratio))


def costs(name: str, model: BarrierModel, setting: BarrierProgram, workers: Integers) -> Costs:
    """Time and cost by the model's formula (equations 4.3 to 4.11).

    All of them are one recurrence: an interval has its own share of the work and what the one
    before has left, and is done at the pace of the worker that the barrier waits for. Expected
    speeds stand for speeds, as in the thesis; ``drawn_costs`` draws them.

    ``workers`` are numbers of them, each at least 1; transient ones have speeds between 0 and 1,
    each as likely as any other.

    Raises ``InputError`` if a number of workers is below 1.
    """
    check_workers(workers)
    rules = model.rules(workers)
    release, left = rules.pace(rules.release_rank), rules.left()
    share = setting.operations / setting.barriers
    waiting = np.full(workers.shape, share)
    busy = np.zeros(workers.shape)
    for _ in range(setting.barriers - 1):
        busy += waiting / (workers * release)
        waiting = share + left * waiting
    busy += waiting / (workers * rules.pace(rules.last_rank))
    return costed(name, rules, setting, workers, busy)


def costed(
    name: str, rules: BarrierRules, setting: BarrierProgram, workers: Integers, busy: Floats
) -> Costs:
    """Costs of workers that compute (and wait) for so long; shape of ``busy`` as of ``workers``."""
    messages = setting.barriers / rules.intervals_per_message
    seconds = busy + setting.network_seconds * messages * workers
    price = 1.0 - setting.transient_discount if rules.transient else 1.0
    return Costs(
        name=name,
        workers=workers,
        seconds=seconds,
        speedup=setting.operations / seconds,
        cost=np.asarray(price * rules.rented * seconds / setting.operations, np.float64),
    )


def check_workers(workers: Integers) -> None:
    """Refuse a number of workers below 1."""
    if not workers.size or workers.min() < 1:
        raise InputError(
            "no number of workers",
            field="workers",
            value=int(workers.min()) if workers.size else None,
            expected="1 or more",
        )


_MOST_RUNS: Final = 10_000_000
_MOST_AT_ONCE: Final = 20_000_000
"""Speeds that are held at once."""


def drawn_costs(
    name: str,
    model: BarrierModel,
    setting: BarrierProgram,
    workers: Integers,
    speeds: Distribution,
    *,
    runs: int,
    random: np.random.Generator,
) -> Costs:
    """Costs by the mean time of runs with workers whose speeds are drawn anew in every interval.

    The thesis divides work by expected speeds; the mean of work over speed is larger, and without
    end where speeds may be near 0 (spec section 11, item 12): give speeds a lower bound. With
    bounded staleness workers really run apart here, by as many intervals as they may.

    Raises ``InputError`` if a number is out of its range, or a speed is 0.

    Parameters
    ----------
    name, model, setting, workers
        As for ``costs``.
    speeds
        Of a transient worker, above 0; 1 is the speed of an on-demand worker.
    runs
        How often, at least 2 and at most ten million.
    random
        Source of the speeds.
    """
    check_workers(workers)
    if not 2 <= runs <= _MOST_RUNS:
        expected = f"2 to {_MOST_RUNS:,}"
        raise InputError("no number of runs", field="runs", value=runs, expected=expected)
    rules = model.rules(workers)
    busy = np.empty((workers.size, runs))
    for place, k in enumerate(workers.tolist()):
        rented = int(rules.rented[place])
        together = max(_MOST_AT_ONCE // (setting.barriers * rented), 1)
        for first in range(0, runs, together):
            some = slice(first, min(first + together, runs))
            shape = some.stop - some.start, setting.barriers, rented
            drawn = _speeds(speeds, shape, random, rules)
            if rules.intervals_per_message > 1:
                busy[place, some] = _apart(drawn, setting, rules.intervals_per_message, k)
            else:
                busy[place, some] = _together(drawn, setting, rules, place, k)
    return costed(name, rules, setting, workers, busy.mean(axis=1))


def _speeds(
    speeds: Distribution,
    shape: tuple[int, int, int],
    random: np.random.Generator,
    rules: BarrierRules,
) -> Floats:
    if not rules.transient:
        return np.ones(shape)
    drawn = speeds.sample(random, math.prod(shape)).reshape(shape)
    if not drawn.min() > 0.0:
        raise InputError(
            "some workers never get anything done",
            field="speeds",
            value=float(drawn.min()),
            expected="speeds above 0; raise the lowest speed",
        )
    return drawn


def _together(
    drawn: Floats, setting: BarrierProgram, rules: BarrierRules, place: int, k: int
) -> Floats:
    """Shape (runs,): time until the last barrier, all workers going from barrier to barrier."""
    release, last = int(rules.release_rank[place]) - 1, int(rules.last_rank[place]) - 1
    dropped = int(rules.dropped[place])
    ranked = np.sort(drawn, axis=2)
    pace = ranked[:, :, release]
    left = np.full(pace.shape, dropped / k)
    if rules.keeps_partial_work and dropped:
        slower = ranked[:, :, release - dropped : release]
        left = (1.0 - slower / pace[:, :, np.newaxis]).sum(axis=2) / k
    share = setting.operations / setting.barriers
    work = np.full(drawn.shape[0], share)
    busy = np.zeros(drawn.shape[0])
    for interval in range(setting.barriers - 1):
        busy += work / (k * pace[:, interval])
        work = share + left[:, interval] * work
    return np.asarray(busy + work / (k * ranked[:, -1, last]))


def _apart(drawn: Floats, setting: BarrierProgram, staleness: int, k: int) -> Floats:
    """Shape (runs,): time until all are done, none more than its staleness ahead of the slowest."""
    each = setting.operations / setting.barriers / k / drawn
    done = np.zeros((drawn.shape[0], drawn.shape[2]))
    slowest = np.zeros((drawn.shape[0], setting.barriers))
    for interval in range(setting.barriers):
        begin = done
        if interval >= staleness:
            begin = np.maximum(done, slowest[:, interval - staleness, np.newaxis])
        done = begin + each[:, interval]
        slowest[:, interval] = done.max(axis=1)
    return np.asarray(done.max(axis=1))
