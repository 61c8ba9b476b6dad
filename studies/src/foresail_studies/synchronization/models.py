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
from foresail_studies import cloud as cloud
from foresail_studies.renting.barriers import (
    BarrierProgram,
    Costs,
    at_least,
    costs,
    drawn_costs,
    model_of,
)
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    published,
)

_SPEEDUP: Final = Measure("speedup", "speed-up over one on-demand worker")
_COST: Final = Measure("cost", "cost of one on-demand worker")
_RATIO: Final = Measure("ratio", "speed-up / cost")
_PACE: Final = Measure("pace", "pace of a barrier")
_LEFT: Final = Measure("left", "work left for the next interval", "share")

_COMPARED: Final = {
    "on demand": "on_demand",
    "transient": "transient",
    "backups": "replicas(count=k)",
    "staleness": "staleness(intervals=10)",
    "partial": "partial(dropped=k/2)",
    "flexible": "fsp(dropped=k-1)",
}
_ALL: Final = "all techniques (figures 4.2, 4.4 and 4.13)"
_BACKUPS: Final = "r backup workers (figure 4.6)"
_STALENESS: Final = "staleness of d intervals (figure 4.8)"
_PARTIAL: Final = "partial barriers that drop N (figure 4.10)"
_FLEXIBLE: Final = "flexible synchronisation that drops N (figure 4.12)"
_HYBRID: Final = "flexible with r backup workers (figure 4.14)"
_FOUR: Final = "a barrier of four workers (figures 4.1, 4.3, 4.5, 4.7, 4.9, 4.11)"
_DRAWN: Final = "least speed, drawn"
_MEASURED: Final = "speeds of spot markets, drawn"

_DROPPED: Final = {f"N={n}": n for n in ("0", "1", "2", "4", "k/2", "k-1")}
_FORMULAS: Final[Mapping[str, Mapping[str, str]]] = {
    _ALL: _COMPARED,
    _BACKUPS: {f"r={r}": f"replicas(count={r})" for r in ("0", "1", "2", "4", "8", "k")},
    _STALENESS: {f"d={d}": f"staleness(intervals={d})" for d in (1, 10, 100, 500)},
    _PARTIAL: {name: f"partial(dropped={n})" for name, n in _DROPPED.items()},
    _FLEXIBLE: {name: f"fsp(dropped={n})" for name, n in _DROPPED.items()},
    _HYBRID: {f"r={r}": f"hybrid(dropped=k-1,replicas={r})" for r in ("0", "1", "2", "4")},
}
_WORKERS: Final = (1, 2, 4, 6, 8, 9, 10, 13, 16, 24, 32, 40)
_FEWER: Final = (1, 2, 4, 8, 10, 14, 16, 18, 32)
"""Where one technique's settings are compared."""
_SIMULATED: Final = (2, 4, 8, 16, 32)
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
    left_out = () if parameters.prices else (cloud.LEFT_OUT.format("speeds of real markets"),)
    return Study(
        title="What do barriers cost on transient workers?",
        source=f"{cloud.SOURCE}, figures 4.1 to 4.14",
        axis="workers k",
        measures=(_SPEEDUP, _COST, _RATIO, _PACE, _LEFT),
        drawn=("speedup", "cost", "ratio"),
        cases=tuple(cases),
        claims=published(_claims(measured=parameters.prices is not None)),
        notes=(
            "8,000 operations, 500 barriers, 0.175 s per worker and barrier, transient workers at "
            "a tenth of the price: the published baseline. Formulas are the same in every seed.",
            "The formulas divide work by expected speeds. The mean of work over speed is larger, "
            "and without end for speeds that may be near 0: drawn speeds below "
            f"{parameters.lowest:g} are raised to it. The claim on drawn speeds is the published "
            "one, held to other conditions.",
            "Drawn, workers of bounded staleness really run apart; its formula saves messages.",
            "The formula of flexible synchronisation with backup workers is not published; ours.",
            *left_out,
        ),
    )


def _cases(parameters: SynchronizationParameters, seed: int) -> list[GridPoint]:
    lowest, runs = parameters.lowest, parameters.runs
    cases = [
        GridPoint(group, k, system, seed, BarrierFormula(model, k))
        for group, models in _FORMULAS.items()
        for system, model in models.items()
        for k in (_WORKERS if group == _ALL else _FEWER)
    ]
    illustrated = _COMPARED | {
        "backups": "replicas(count=1)",
        "partial": "partial(dropped=1)",
        "flexible": "fsp(dropped=1)",
    }
    cases += [
        GridPoint(_FOUR, None, system, seed, ModelBarrier(model, 4))
        for system, model in illustrated.items()
    ]
    for system, model in _COMPARED.items():
        for k in _SIMULATED:
            task = Draw(model, k, lowest, runs, seed)
            cases.append(GridPoint(_DRAWN, k, system, seed, task))
            if parameters.prices is not None:
                task = Draw(model, k, lowest, runs, seed, str(parameters.prices))
                cases.append(GridPoint(_MEASURED, k, system, seed, task))
    return cases


def _claims(*, measured: bool) -> dict[str, Bound]:
    def speedup(group: str, system: str, *workers: float) -> Mean:
        return Mean("speedup", system, group, workers)

    def cost(group: str, system: str, *workers: float) -> Mean:
        return Mean("cost", system, group, workers)

    def ratio(system: str, *workers: float, group: str = _ALL) -> Mean:
        return Mean("ratio", system, group, workers)

    usual = (4.0, 8.0, 16.0, 32.0)
    claims = {
        "On demand, more than 10 workers are slower (figure 4.2).": Bound(
            speedup(_ALL, "on demand", 13), speedup(_ALL, "on demand", 10)
        ),
        "... and 10 cost over twice as much as one.": Bound(2.0, cost(_ALL, "on demand", 10)),
        "Transient workers are never faster than one on-demand worker (figure 4.4).": Bound(
            speedup(_ALL, "transient", 10), 1.0
        ),
        "... and cheaper with up to 8 of them.": Bound(cost(_ALL, "transient", 8), 1.0),
        "... not with 9.": Bound(1.0, cost(_ALL, "transient", 9)),
        "One backup worker raises the pace of four from 0.17 to 0.33 (figure 4.5; of five workers "
        "the slowest two: "
        "without it the slowest of four has 0.2).": Bound(0.33, Mean("pace", "backups", _FOUR)),
        "Backup workers make transient ones faster than one on demand (figure "
        "4.6), up to 3.5 times (taken as: 3.4 or more).": Bound(3.4, speedup(_BACKUPS, "r=k", 14)),
        "Four backup workers are cheaper than one.": cost(_BACKUPS, "r=4", 8).against("r=1"),
        "... and than as many as there are workers.": cost(_BACKUPS, "r=4", 8).against("r=k"),
        "Staleness never gives a speed-up, at 500 intervals neither (figure 4.8).": Bound(
            speedup(_STALENESS, "d=500", 32), 1.0
        ),
        "... and costs more than one worker beyond 8.": Bound(1.0, cost(_STALENESS, "d=500", 10)),
        "Partial barriers that drop all but one do nearly as well as those that drop none (figure "
        "4.10; taken as: within 1 %).": speedup(_PARTIAL, "N=k-1", 8).against("N=0", factor=1.01),
        "Dropping half is best.": speedup(_PARTIAL, "N=4", 18).against("N=k/2"),
        "They reach a speed-up of 2.5 (taken as: 2.4 or more).": Bound(
            2.4, speedup(_PARTIAL, "N=k/2", 18)
        ),
        "... at 0.75 of the cost of one worker (taken as: 0.8 or less).": Bound(
            cost(_PARTIAL, "N=k/2", 18), 0.8
        ),
        "Flexible synchronisation is better than partial barriers (figure 4.12).": Bound(
            speedup(_PARTIAL, "N=k/2", *usual), speedup(_FLEXIBLE, "N=k/2", *usual)
        ),
        "... nearly as fast as backup workers (taken as: within 5 %).": Bound(
            speedup(_BACKUPS, "r=k", 14), speedup(_FLEXIBLE, "N=k-1", 14), factor=1.05
        ),
        "... for less.": Bound(cost(_FLEXIBLE, "N=k-1", 14), cost(_BACKUPS, "r=k", 14)),
        **{
            f"For the money nothing is better than flexible "
            f"synchronisation ({system}; figure 4.13).": ratio(system).against("flexible")
            for system in _COMPARED
            if system != "flexible"
        },
        "Transient workers without any technique are "
        "worse for the money than on-demand ones.": ratio("transient", *usual).against("on demand"),
        "With 8 workers backups are better for the money than partial barriers.": ratio(
            "partial", 8
        ).against("backups"),
        "... with 16 it is the other way.": ratio("backups", 16).against("partial"),
        **{
            f"Flexible synchronisation gains nothing from backup workers "
            f"(r = {r}; figure 4.14).": ratio(f"r={r}", *usual, group=_HYBRID).against("r=0")
            for r in (1, 2, 4)
        },
    }
    for group in (_DRAWN, *((_MEASURED,) if measured else ())):
        claims |= {
            f"With drawn speeds too, nothing is better for the money than flexible synchronisation "
            f"({system}; {group}).": ratio(system, *usual, group=group).against("flexible")
            for system in _COMPARED
            if system != "flexible"
        }
        claims |= {
            "... with 32 workers as well (staleness).": ratio("staleness", 32, group=group).against(
                "flexible"
            )
        }
    return claims
