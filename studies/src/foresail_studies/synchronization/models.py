"""Study ``synchronization-models``: what barriers cost on transient workers, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.cloud.histories import MarketHistory
from foresail.cloud.prices_reading import load_histories
from foresail.distributions.empirical import Empirical
from foresail.model.errors import InputError
from foresail.model.registry import register
from foresail_studies.declaring import Rows, declared
from foresail_studies.renting.barriers import (
    BarrierProgram,
    Costs,
    at_least,
    costs,
    drawn_costs,
    model_of,
)
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters

_MEASURES: Final = (
    Measure("speedup", "speed-up over one on-demand worker"),
    Measure("cost", "cost of one on-demand worker"),
    Measure("ratio", "speed-up / cost"),
    Measure("pace", "pace of a barrier"),
    Measure("left", "work left for the next interval", "share"),
)

_COMPARED: Final = {
    "on demand": "on_demand",
    "transient": "transient",
    "backups": "replicas(count=k)",
    "staleness": "staleness(intervals=10)",
    "partial": "partial(dropped=k/2)",
    "flexible": "fsp(dropped=k-1)",
}
_DROPPED: Final = {f"N={n}": n for n in ("0", "1", "2", "4", "k/2", "k-1")}
_FORMULAS: Final[Mapping[str, Mapping[str, str]]] = {
    "all": _COMPARED,
    "backups": {f"r={r}": f"replicas(count={r})" for r in ("0", "1", "2", "4", "8", "k")},
    "staleness": {f"d={d}": f"staleness(intervals={d})" for d in (1, 10, 100, 500)},
    "partial": {name: f"partial(dropped={n})" for name, n in _DROPPED.items()},
    "flexible": {name: f"fsp(dropped={n})" for name, n in _DROPPED.items()},
    "hybrid": {f"r={r}": f"hybrid(dropped=k-1,replicas={r})" for r in ("0", "1", "2", "4")},
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

    model: str
    workers: int

    def measure(self) -> Mapping[str, float]:
        """Time and money by the model's formula."""
        workers = np.array([self.workers])
        return _figures(costs(self.model, model_of(self.model), _BASELINE, workers))


@dataclass(frozen=True, slots=True)
class ModelBarrier:
    """Rule of which workers a barrier of a model waits for."""

    model: str
    workers: int

    def measure(self) -> Mapping[str, float]:
        """Expected pace, and how much of an interval's work is left."""
        rules = model_of(self.model).rules(np.array([self.workers]))
        pace = rules.pace(rules.release_rank)
        return {"pace": float(pace[0]), "left": float(rules.left()[0])}


@dataclass(frozen=True, slots=True)
class Draw:
    """A model at one number of workers, with speeds that are drawn."""

    model: str
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
        found = drawn_costs(
            self.model,
            model_of(self.model),
            _BASELINE,
            np.array([self.workers]),
            speeds,
            runs=self.runs,
            random=np.random.default_rng(self.seed),
        )
        return _figures(found)


def _figures(found: Costs) -> Mapping[str, float]:
    return {
        "seconds": float(found.seconds[0]),
        "speedup": float(found.speedup[0]),
        "cost": float(found.cost[0]),
        "ratio": float(found.ratio[0]),
    }


@lru_cache(maxsize=4)
def _uniform(lowest: float) -> Empirical:
    levels = (np.arange(4096) + 0.5) / 4096
    return Empirical(np.maximum(levels, lowest))


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
    others = [system for system in _COMPARED if system != "flexible"]
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
    illustrated = _COMPARED | {
        "backups": "replicas(count=1)",
        "partial": "partial(dropped=1)",
        "flexible": "fsp(dropped=1)",
    }
    cases += [
        GridPoint("four", None, system, seed, ModelBarrier(model, 4))
        for system, model in illustrated.items()
    ]
    for system, model in _COMPARED.items():
        for k in _SIMULATED:
            task = Draw(model, k, lowest, runs, seed)
            cases.append(GridPoint("drawn", k, system, seed, task))
            if parameters.prices is not None:
                task = Draw(model, k, lowest, runs, seed, str(parameters.prices))
                cases.append(GridPoint("measured", k, system, seed, task))
    return cases
