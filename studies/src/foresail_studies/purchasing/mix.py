"""Study ``purchasing-mix``: options in hindsight, and by a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import polars as pl

from foresail.cloud.prices import GIB
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.demand import HOURS_PER_YEAR
from foresail.cloud.purchasing.mix import MixReport, MixRequest, mix
from foresail.cloud.purchasing.offline import OfflineSettings
from foresail.cloud.purchasing.terms import ExponentialRevocation, TransientTerms
from foresail.model.errors import require
from foresail.model.registry import register
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.declaring import declared
from foresail_studies.generators.university import YEAR_SECONDS, university_year
from foresail_studies.purchasing.practice import OnlineOutcome, practise
from foresail_studies.purchasing.retired_offers import published_terms
from foresail_studies.study import GridPoint, Measure, Study, StudyParameters, log_of

_NAMES: Final = {
    "reserved": "reserved",
    "transient": "transient",
    "spot-block": "blocks",
    "scheduled-reserved": "scheduled",
    "on-demand": "on demand",
}
_MEASURES: Final = (
    Measure("optimum", "optimum, of on-demand", "share"),
    Measure("policy", "policy, of on-demand", "share"),
    Measure("ratio", "policy / optimum"),
    Measure("to_reserved", "policy, of reserved only", "share"),
    *(
        Measure(f"{where}_{option}", f"{where}: {said}", "share")
        for where in ("optimum", "policy")
        for option, said in _NAMES.items()
    ),
)

_PROVIDERS: Final = ("microsoft", "amazon", "google", "google-customised")
_APART: Final = 1000
_TRAINED_SHARE: Final = 1.0 / 3.0
_PRICES: Final = "thesis"
_TRANSIENT_PRICE: Final = 0.3
_GIB_PER_CORE: Final = (1.0, 2.0, 4.0, 8.0)
_SETTINGS: Final = OfflineSettings(amounts="of-machines", level_units=2.0)
_WEEK: Final = "transient machines live a week"
_DAY: Final = "transient machines live a day"
_NEVER: Final = "no transient machines"
_LIVES: Final = {_WEEK: 168.0, _DAY: 24.0, _NEVER: None}


@dataclass(frozen=True, slots=True)
class Purchase:
    """The options of a provider for a demand."""

    log: str
    """Path of a log, of which the policy learns from the first third; empty: two generated years,
    of which it learns from the first."""
    share: float
    """Of the generated jobs that are bought for."""
    seed: int
    """Of the years."""
    provider: str

    lifetime_hours: float | None
    """Mean life of a transient machine; None: none are sold."""

    def measure(self) -> Mapping[str, float]:
        """Measure what the optimum and the policy pay, and what they use."""
        workload, training_hours = _demand(self.log, self.share, self.seed)
        terms = None
        if self.lifetime_hours is not None:
            lives = ExponentialRevocation(self.lifetime_hours)
            terms = TransientTerms(_TRANSIENT_PRICE, lives)
        request = MixRequest(
            self.provider,
            transient=terms is not None,
            transient_terms=terms,
            settings=_SETTINGS,
            demand_errors=(),
        )
        prices = load_prices(_PRICES)
        sold = published_terms(prices, request)
        outcome, least = practise(workload, prices, request, training_hours)
        return _figures(mix(workload, prices, request, sold), outcome, least)


def _figures(report: MixReport, outcome: OnlineOutcome, least: float) -> Mapping[str, float]:
    policy = outcome.cost / outcome.all_on_demand_cost
    found = {
        "optimum": report.share("optimum"),
        "policy": policy,
        "ratio": outcome.cost / least,
        "to_reserved": policy / report.share("all reserved"),
    }
    for where, hours in (("optimum", _hours(report.options)), ("policy", outcome.used_hours)):
        total = sum(hours.values())
        found |= {f"{where}_{option}": hours.get(option, 0.0) / total for option in _NAMES}
    return found


def _hours(table: pl.DataFrame) -> dict[str, float]:
    """Core hours by option, all terms of reservations together."""
    short = pl.col("option").str.replace(r"^reserved-\d+y$", "reserved")
    hours = table.group_by(short.replace("further", "spot-block")).agg(pl.col("used_hours").sum())
    return dict(hours.iter_rows())


@lru_cache(maxsize=1)
def _demand(log: str, share: float, seed: int) -> tuple[Workload, float]:
    """Jobs, and the hours that the policy learns from."""
    if log:
        workload = log_of(log, 0)
        submit = workload.jobs["submit_seconds"].to_numpy()
        return workload, float(submit[-1] - submit[0]) / 3600.0 * _TRAINED_SHARE
    parts = []
    for place, of_year in enumerate((seed + _APART, seed)):
        jobs = university_year(seed=of_year)
        # Single jobs are left out, so that bursts and weeks stay what they are.
        random = np.random.default_rng(of_year)
        kept = random.random(len(jobs)) < share
        cores = jobs.cores[kept].astype(np.float64)
        gib = random.choice(_GIB_PER_CORE, cores.size) * cores
        parts.append(
            {
                "submit_seconds": jobs.submit_seconds[kept] + place * YEAR_SECONDS,
                "runtime_seconds": jobs.runtime_seconds[kept],
                "cpus_per_task": cores,
                "memory_bytes_per_task": gib * GIB,
            }
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    count = columns["submit_seconds"].size
    table = jobs_table(
        {"job_id": np.arange(count).astype(str), "tasks": np.ones(count, dtype=np.int64), **columns}
    )
    return Workload(table, WorkloadMeta("two generated years", "year")), HOURS_PER_YEAR


@dataclass(frozen=True, slots=True)
class PurchasingParameters(StudyParameters, quick="seeds=4 share=0.02", minutes=(4, 60)):
    """Parameters of ``purchasing-mix``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)

    seeds: int = 5

    share: float = 0.3
    """Of the generated jobs that are bought for."""
    log: Path | None = None
    """A log to buy for as well."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require(0.0 < self.share <= 1.0, self, "share", "above 0 to 1")


@register("study", "purchasing-mix", parameters=PurchasingParameters)
def purchasing_mix(parameters: PurchasingParameters) -> Study:
    """Find the cheapest mix of purchasing options, and a policy's share of it (5.4 to 5.8)."""
    sources = [("", "")]
    if parameters.log is not None:
        sources.append((str(parameters.log), f", {parameters.log.name}"))
    cases = [
        # A log is the same in every seed, and run once.
        GridPoint(
            lives + called,
            None,
            provider,
            seed,
            Purchase(log, parameters.share, 0 if log else seed, provider, hours),
        )
        for seed in range(parameters.seeds)
        for log, called in sources
        for lives, hours in _LIVES.items()
        for provider in _PROVIDERS
    ]
    sources_of_claims = [
        {
            "week": _WEEK + called,
            "group": _WEEK + called,
            "never": _NEVER + called,
            "log": f" ({called[2:]})" if called else "",
        }
        for _, called in sources
    ]
    share = f"{100.0 * parameters.share:g}"
    return declared("purchasing-mix", _MEASURES, cases, {"source": sources_of_claims}, share=share)
