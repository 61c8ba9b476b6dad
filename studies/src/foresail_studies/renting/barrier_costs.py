"""Time and cost of a synchronisation model by workers: by formula, and by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.model.arrays import Floats, Integers
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail_studies.renting.barriers import (
    BarrierProgram,
    BarrierRules,
    Model,
    RankedSpeeds,
    UniformSpeeds,
)


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

    def table(self) -> pl.DataFrame:
        """A row per number of workers."""
        return pl.DataFrame(
            {
                "model": [self.name] * self.workers.size,
                "workers": self.workers,
                "seconds": self.seconds,
                "speedup": self.speedup,
                "cost": self.cost,
                "speedup_per_cost": self.ratio,
            }
        )


def costs(
    name: str,
    model: Model,
    setting: BarrierProgram,
    workers: Integers,
    speeds: RankedSpeeds | None = None,
) -> Costs:
    """Time and cost by the model's formula (equations 4.3 to 4.11).

    All of them are one recurrence: an interval has its own share of the work and what the one
    before has left, and is done at the pace of the worker that the barrier waits for. Expected
    speeds stand for speeds, as in the thesis; ``drawn_costs`` draws them.

    ``workers`` are numbers of them, each at least 1; ``speeds`` those of transient ones, by default
    uniform between 0 and 1.

    Raises ``InputError`` if a number of workers is below 1.
    """
    check_workers(workers)
    rules = model.rules(workers)
    release, last, left = _paces(rules, workers, UniformSpeeds() if speeds is None else speeds)
    share = setting.operations / setting.barriers
    waiting = np.full(workers.shape, share)
    busy = np.zeros(workers.shape)
    for _ in range(setting.barriers - 1):
        busy += waiting / (workers * release)
        waiting = share + left * waiting
    busy += waiting / (workers * last)
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


def _paces(
    rules: BarrierRules, workers: Integers, speeds: RankedSpeeds
) -> tuple[Floats, Floats, Floats]:
    """Pace of a released barrier, of the last one, and the share of an interval's work left."""
    left = rules.dropped / workers
    if not rules.transient:
        ones = np.ones(workers.shape)
        return ones, ones, left
    if rules.keeps_partial_work:
        left = left * speeds.unfinished(rules.dropped, workers)
    return (
        speeds.expected(rules.release_rank, rules.rented),
        speeds.expected(rules.last_rank, rules.rented),
        left,
    )


_MOST_RUNS: Final = 10_000_000
_MOST_AT_ONCE: Final = 20_000_000
"""Speeds that are held at once."""
_STANDARD_ERRORS: Final = 1.96


@dataclass(frozen=True)
class DrawnCosts:
    """Costs from drawn speeds: their mean time, and half of its 95 % interval (seconds)."""

    costs: Costs
    half_interval_seconds: Floats


def drawn_costs(
    name: str,
    model: Model,
    setting: BarrierProgram,
    workers: Integers,
    speeds: Distribution,
    *,
    runs: int,
    random: np.random.Generator,
    intervals_per_draw: int = 1,
) -> DrawnCosts:
    """Run the program with workers whose speeds are drawn anew every so many intervals.

    The thesis divides work by expected speeds; the mean of work over speed is larger, and without
    end where speeds may be near 0 (spec section 11, item 12): give speeds a lower bound. With
    bounded staleness workers really run apart here, by as many intervals as they may.

    Raises ``InputError`` if a number is out of its range, or a speed is 0.

    Parameters
    ----------
    name, model, setting, workers
        As for ``foresail_studies.renting.barrier_costs.costs``.
    speeds
        Of a transient worker, above 0; 1 is the speed of an on-demand worker.
    runs
        How often, at least 2 and at most ten million.
    random
        Source of the speeds.
    intervals_per_draw
        How long a worker keeps its speed.
    """
    check_workers(workers)
    for field, value, least in (("runs", runs, 2), ("intervals_per_draw", intervals_per_draw, 1)):
        if value < least:
            raise InputError("too few", field=field, value=value, expected=f"{least} or more")
    if runs > _MOST_RUNS:
        raise InputError("too many", field="runs", value=runs, expected=f"{_MOST_RUNS:,} or fewer")
    rules = model.rules(workers)
    busy = np.empty((workers.size, runs))
    for place, k in enumerate(workers.tolist()):
        rented = int(rules.rented[place])
        together = max(_MOST_AT_ONCE // (setting.barriers * rented), 1)
        for first in range(0, runs, together):
            some = slice(first, min(first + together, runs))
            shape = some.stop - some.start, setting.barriers, rented
            drawn = _speeds(speeds, shape, intervals_per_draw, random, rules)
            if rules.intervals_per_message > 1:
                busy[place, some] = _apart(drawn, setting, rules.intervals_per_message, k)
            else:
                busy[place, some] = _together(drawn, setting, rules, place, k)
    half = _STANDARD_ERRORS * busy.std(axis=1, ddof=1) / np.sqrt(runs)
    return DrawnCosts(costed(name, rules, setting, workers, busy.mean(axis=1)), half)


def _speeds(
    speeds: Distribution,
    shape: tuple[int, int, int],
    intervals: int,
    random: np.random.Generator,
    rules: BarrierRules,
) -> Floats:
    runs, barriers, rented = shape
    if not rules.transient:
        return np.ones(shape)
    draws = -(-barriers // intervals)
    drawn = speeds.sample(random, runs * draws * rented).reshape(runs, draws, rented)
    if not drawn.min() > 0.0:
        raise InputError(
            "some workers never get anything done",
            field="speeds",
            value=float(drawn.min()),
            expected="speeds above 0; raise the lowest speed",
        )
    return np.repeat(drawn, intervals, axis=1)[:, :barriers]


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
