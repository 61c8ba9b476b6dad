"""Time and cost of a synchronisation model against the number of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from foresail.cloud.synchronization.models import BarrierRules, Model
from foresail.cloud.synchronization.setting import BarrierProgram
from foresail.cloud.synchronization.speeds import RankedSpeeds, UniformSpeeds
from foresail.model.arrays import Floats, Integers
from foresail.model.errors import InputError


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
        """Where, among the numbers of workers, the speed-up is largest."""
        return int(np.argmax(self.speedup))

    @property
    def best_value(self) -> int:
        """Where, among the numbers of workers, speed-up over cost is largest."""
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

    Raises
    ------
    InputError
        If a number of workers is below 1.
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
