"""Study ``synchronization-models``: what barriers cost on transient workers, and what helps.

A model says whom a barrier waits for; time and cost follow by workers and their speeds, by formula
or with speeds that are drawn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import load_histories
from foresail.distributions.basic import Uniform
from foresail.distributions.empirical import Empirical
from foresail.model.distribution import Distribution, Floats, Integers
from foresail.model.errors import InputError, require, require_at_least
from foresail.model.registry import register
from foresail_studies.declaring import Rows, declared
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters


@dataclass(frozen=True, slots=True)
class BarrierProgram:
    """A parallel program with barriers (Ambati's thesis, tables 4.1 and 4.2)."""

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
        require(1 <= self.barriers <= 1_000_000, self, "barriers", "1 to 1,000,000")
        require(0.0 <= self.network_seconds <= 1e9, self, "network_seconds", "0 to 1e9")
        sensible = 0.0 <= self.transient_discount < 1.0
        require(sensible, self, "transient_discount", "0 or more, below 1")


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
    """Way to synchronise: bulk-synchronous on transient workers (4.5), unless a field differs.

    Numbers of workers are whole, or depend on how many there are: ``k``, ``k-1``, ``k/2`` (rounded
    down).
    """

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
        """Rules at each number of workers; a plain number of dropped tasks leaves at least one.

        Raises ``InputError`` if a number of workers is none, or one by k drops all tasks.
        """
        more = _amount(self.replicas, workers, "replicas")
        dropped = _amount(self.dropped, workers, "dropped")
        if "k" in self.dropped and (dropped >= workers).any():
            raise InputError(
                "all workers are dropped",
                field="dropped",
                value=self.dropped,
                expected="fewer than k, such as k-1",
            )
        dropped = np.minimum(dropped, workers - 1)
        return BarrierRules(
            rented=workers + more,
            release_rank=1 + dropped + more,
            last_rank=1 + more,
            dropped=dropped,
            keeps_partial_work=self.keeps_partial_work,
            intervals_per_message=self.intervals,
            transient=self.transient,
        )


_AMOUNT: Final = re.compile(r"(\d+)|k(?:-(\d+)|/(0*[1-9]\d*))?")


def _amount(text: str, workers: Integers, field: str) -> Integers:
    match = _AMOUNT.fullmatch(text.replace(" ", ""))
    if match is None:
        expected = "a whole number, k, k-1, k/2 or the like"
        raise InputError("no number of workers", field=field, value=text, expected=expected)
    whole, less, part = match.groups()
    if whole is not None:
        return np.full_like(workers, int(whole))
    return np.maximum(workers - int(less or 0), 0) // int(part or 1)


def flexible(dropped: str, replicas: str = "0") -> BarrierModel:
    """Flexible synchronisation; with backups the hybrid, whose formula is ours."""
    return BarrierModel(replicas, dropped, keeps_partial_work=True)


class Costs(NamedTuple):
    """A model at several numbers of workers; all arrays of shape (numbers of workers,)."""

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


def costs(model: BarrierModel, setting: BarrierProgram, workers: Integers) -> Costs:
    """Time and cost by the model's formula (equations 4.3 to 4.11).

    All of them are one recurrence: an interval has its own share of the work and what the one
    before has left, and is done at the pace of the worker that the barrier waits for. Expected
    speeds stand for speeds, as in the thesis; ``drawn_costs`` draws them.

    ``workers`` are numbers of them, each at least 1; transient ones have speeds between 0 and 1,
    each as likely as any other.
    """
    rules = model.rules(workers)
    release, left = rules.pace(rules.release_rank), rules.left()
    share = setting.operations / setting.barriers
    waiting = np.full(workers.shape, share)
    busy = np.zeros(workers.shape)
    for _ in range(setting.barriers - 1):
        busy += waiting / (workers * release)
        waiting = share + left * waiting
    busy += waiting / (workers * rules.pace(rules.last_rank))
    return _costed(rules, setting, workers, busy)


def _costed(rules: BarrierRules, setting: BarrierProgram, workers: Integers, busy: Floats) -> Costs:
    """Costs of workers that compute (and wait) for so long; shape of ``busy`` as of ``workers``."""
    messages = setting.barriers / rules.intervals_per_message
    seconds = busy + setting.network_seconds * messages * workers
    price = 1.0 - setting.transient_discount if rules.transient else 1.0
    return Costs(
        seconds=seconds,
        speedup=setting.operations / seconds,
        cost=np.asarray(price * rules.rented * seconds / setting.operations, np.float64),
    )


_LEVELS: Final = 4096


def at_least(distribution: Distribution, lowest: float) -> Empirical:
    """A distribution of speeds, with those below the lowest raised to it: equally likely atoms.

    Raises ``InputError`` if the lowest is not above 0.
    """
    if not 0.0 < lowest < math.inf:
        raise InputError("no speed", field="lowest", value=lowest, expected="above 0")
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return Empirical([max(distribution.quantile(float(level)), lowest) for level in levels])


_MOST_RUNS: Final = 10_000_000
_MOST_AT_ONCE: Final = 20_000_000
"""Speeds that are held at once."""


def drawn_costs(
    model: BarrierModel,
    setting: BarrierProgram,
    workers: Integers,
    speeds: Distribution,
    runs: int,
    random: np.random.Generator,
) -> Costs:
    """Costs by the mean time of runs with workers whose speeds are drawn anew in every interval.

    The thesis divides work by expected speeds; the mean of work over speed is larger, and without
    end where speeds may be near 0: give speeds a lower bound. With
    bounded staleness workers really run apart here, by as many intervals as they may.

    ``speeds`` are those of a transient worker, above 0; 1 is that of an on-demand worker.

    Raises ``InputError`` if there are fewer than 2 ``runs``, or more than ten million.
    """
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
    return _costed(rules, setting, workers, busy.mean(axis=1))


def _speeds(
    speeds: Distribution,
    shape: tuple[int, int, int],
    random: np.random.Generator,
    rules: BarrierRules,
) -> Floats:
    if not rules.transient:
        return np.ones(shape)
    return speeds.sample(random, math.prod(shape)).reshape(shape)


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


_MEASURES: Final = (
    Measure("speedup", "speed-up over one on-demand worker"),
    Measure("cost", "cost of one on-demand worker"),
    Measure("ratio", "speed-up / cost"),
    Measure("pace", "pace of a barrier"),
    Measure("left", "work left for the next interval", "share"),
)

COMPARED: Final = {
    "on demand": BarrierModel(transient=False),
    "transient": BarrierModel(),
    "backups": BarrierModel(replicas="k"),
    "staleness": BarrierModel(intervals=10),
    "partial": BarrierModel(dropped="k/2"),
    "flexible": flexible("k-1"),
}
_DROPPED: Final = ("0", "1", "2", "4", "k/2", "k-1")
_FORMULAS: Final[Mapping[str, Mapping[str, BarrierModel]]] = {
    "all": COMPARED,
    "backups": {f"r={r}": BarrierModel(replicas=r) for r in ("0", "1", "2", "4", "8", "k")},
    "staleness": {f"d={d}": BarrierModel(intervals=d) for d in (1, 10, 100, 500)},
    "partial": {f"N={n}": BarrierModel(dropped=n) for n in _DROPPED},
    "flexible": {f"N={n}": flexible(n) for n in _DROPPED},
    "hybrid": {f"r={r}": flexible("k-1", r) for r in ("0", "1", "2", "4")},
}
_WORKERS: Final = (1, 2, 4, 6, 8, 9, 10, 13, 16, 24, 32, 40)
_FEWER: Final = (1, 2, 4, 8, 10, 14, 16, 18, 32)
"""Where one technique's settings are compared."""
_SIMULATED: Final = (2, 4, 8, 16, 32)
_LEFT_OUT: Final = (
    "Left out for want of price histories (`--set prices=FILE`): speeds of real markets."
)
_BASELINE: Final = BarrierProgram()
_INTERVAL_SECONDS: Final = 600.0
"""Between two barriers, where speeds are those of markets: long enough to meet a revocation."""


def measured_speeds(history: MarketHistory, interval_seconds: float) -> Empirical:
    """Speeds of a worker that works only while its market is up, by a measured series.

    The share of each interval that it was up is its speed there; 0 where it was down throughout.

    An interval between barriers lasts ``interval_seconds`` on a worker that is always up.

    Raises ``InputError`` if the history is shorter than an interval.
    """
    if not 0.0 < interval_seconds <= history.span_seconds:
        raise InputError(
            "no interval of this history",
            source=history.market,
            field="interval_seconds",
            value=interval_seconds,
            expected=f"above 0, at most {history.span_seconds:g}",
        )
    seconds = history.step_seconds()
    up = history.up().astype(np.float64)
    if history.units is not None:
        up = np.minimum(history.units / history.requested_units, 1.0)
    edges = np.concatenate(([0.0], np.cumsum(seconds)))
    done = np.concatenate(([0.0], np.cumsum(seconds * up)))
    at = np.arange(0.0, history.span_seconds, interval_seconds)
    shares = np.diff(np.interp(at, edges, done)) / interval_seconds
    values, counts = np.unique(np.round(shares, 9), return_counts=True)
    return Empirical(np.clip(values, 0.0, 1.0), counts)


@dataclass(frozen=True, slots=True)
class BarrierFormula:
    """A model at one number of workers."""

    model: BarrierModel
    workers: int

    def measure(self) -> Mapping[str, float]:
        """Time and money by the model's formula."""
        workers = np.array([self.workers])
        return _figures(costs(self.model, _BASELINE, workers))


@dataclass(frozen=True, slots=True)
class ModelBarrier:
    """Rule of which workers a barrier of a model waits for."""

    model: BarrierModel
    workers: int

    def measure(self) -> Mapping[str, float]:
        """Expected pace, and how much of an interval's work is left."""
        rules = self.model.rules(np.array([self.workers]))
        pace = rules.pace(rules.release_rank)
        return {"pace": float(pace[0]), "left": float(rules.left()[0])}


@dataclass(frozen=True, slots=True)
class Draw:
    """A model at one number of workers, with speeds that are drawn."""

    model: BarrierModel
    workers: int

    lowest: float
    """Least speed of a worker."""
    runs: int
    """Of the program."""
    seed: int

    prices: str = ""
    """Reference of spot histories whose markets' speeds are drawn; empty: uniform speeds."""

    def measure(self) -> Mapping[str, float]:
        """Mean time and money of the runs."""
        speeds = _measured(self.prices, self.lowest) if self.prices else _uniform(self.lowest)
        random, workers = np.random.default_rng(self.seed), np.array([self.workers])
        return _figures(drawn_costs(self.model, _BASELINE, workers, speeds, self.runs, random))


def _figures(found: Costs) -> Mapping[str, float]:
    return {
        **{name: float(each[0]) for name, each in found._asdict().items()},
        "ratio": float(found.ratio[0]),
    }


@lru_cache(maxsize=4)
def _uniform(lowest: float) -> Empirical:
    return at_least(Uniform(0.0, 1.0), lowest)


@lru_cache(maxsize=1)
def _measured(prices: str, lowest: float) -> Empirical:
    """Every market as likely as any other, at any time."""
    speeds = [measured_speeds(each, _INTERVAL_SECONDS) for each in load_histories(prices)]
    levels = (np.arange(256) + 0.5) / 256
    drawn = [each.quantile(float(level)) for each in speeds for level in levels]
    return at_least(Empirical(drawn), lowest)


@dataclass(frozen=True, slots=True)
class SynchronizationParameters(StudyParameters, quick="seeds=4 runs=20", minutes=(0.5, 3)):
    """Parameters of ``synchronization-models``."""

    FILES: ClassVar[tuple[str, ...]] = ("prices",)

    seeds: int = 10

    runs: int = 200
    """Of the program, per seed, where speeds are drawn."""
    lowest: float = 0.05
    """Least speed of a worker there: without one the mean time has no end."""
    prices: Path | None = None
    """Spot histories, for speeds of real markets."""


@register("study", "synchronization-models", parameters=SynchronizationParameters)
def synchronization_models(parameters: SynchronizationParameters) -> Study:
    """Measure the cost of barriers on transient workers, and remedies (figures 4.1 to 4.14)."""
    cases = [case for seed in range(parameters.seeds) for case in _cases(parameters, seed)]
    others = [system for system in COMPARED if system != "flexible"]
    groups = ("drawn", "measured") if parameters.prices else ("drawn",)
    rows: dict[str, Rows] = {
        "worse": [{"system": system} for system in others],
        "hybrid": [{"r": r} for r in (1, 2, 4)],
        "drawn": [{"system": system, "group": group} for group in groups for system in others],
        "staleness": [{"group": group} for group in groups],
    }
    left_out = () if parameters.prices else (_LEFT_OUT,)
    name, lowest = "synchronization-models", parameters.lowest
    return declared(name, _MEASURES, cases, rows, left_out, lowest=lowest)


def _cases(parameters: SynchronizationParameters, seed: int) -> list[GridPoint]:
    lowest, runs = parameters.lowest, parameters.runs
    cases = [
        GridPoint(group, k, system, seed, BarrierFormula(model, k))
        for group, models in _FORMULAS.items()
        for system, model in models.items()
        for k in (_WORKERS if group == "all" else _FEWER)
    ]
    illustrated = COMPARED | {
        "backups": BarrierModel(replicas="1"),
        "partial": BarrierModel(dropped="1"),
        "flexible": flexible("1"),
    }
    cases += [
        GridPoint("four", None, system, seed, ModelBarrier(model, 4))
        for system, model in illustrated.items()
    ]
    for system, model in COMPARED.items():
        for k in _SIMULATED:
            task = Draw(model, k, lowest, runs, seed)
            cases.append(GridPoint("drawn", k, system, seed, task))
            if parameters.prices is not None:
                task = Draw(model, k, lowest, runs, seed, str(parameters.prices))
                cases.append(GridPoint("measured", k, system, seed, task))
    return cases
