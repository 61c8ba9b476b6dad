"""Time and cost of a synchronisation model with speeds that are drawn, not expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from foresail.cloud.synchronization.costing import Costs, check_workers, costed
from foresail.cloud.synchronization.models import BarrierRules, Model
from foresail.cloud.synchronization.setting import BarrierProgram
from foresail.model.arrays import Floats, Integers
from foresail.model.distribution import Distribution
from foresail.model.errors import InputError

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

    Parameters
    ----------
    name, model, setting, workers
        As for ``foresail.cloud.synchronization.costing.costs``.
    speeds
        Of a transient worker, above 0; 1 is the speed of an on-demand worker.
    runs
        How often, at least 2 and at most ten million.
    random
        Source of the speeds.
    intervals_per_draw
        How long a worker keeps its speed.

    Raises
    ------
    InputError
        If a number is out of its range, or a speed is 0.
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
