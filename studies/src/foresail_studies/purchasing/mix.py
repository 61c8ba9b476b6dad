"""Study ``purchasing-mix``: options in hindsight, by a policy, and exactly in small cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import polars as pl

from foresail.cloud.prices import GIB
from foresail.cloud.prices_reading import load_prices
from foresail.cloud.purchasing.demand import (
    HOURS_PER_YEAR,
    BoughtJobs,
    JobPrices,
    PricedDemand,
    priced_demand,
)
from foresail.cloud.purchasing.mix import MixReport, MixRequest, mix
from foresail.cloud.purchasing.offline import level_windows
from foresail.cloud.purchasing.offline_plan import OfflineSettings
from foresail.cloud.purchasing.stacked_demand import value_by_slot
from foresail.cloud.purchasing.terms import ExponentialRevocation, TransientTerms
from foresail.milp.solver import Limits, ProgramBuilder, SolveStatus, find_solver
from foresail.model.errors import InputError, require, require_at_least
from foresail.model.registry import register
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies import cloud as cloud
from foresail_studies.generators.university import YEAR_SECONDS
from foresail_studies.purchasing.practice import OnlineReport, PracticeRequest, practise
from foresail_studies.purchasing.retired_offers import published_terms
from foresail_studies.stand_ins import university_year
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    log_of,
    published,
)


def level_cost(
    demand: PricedDemand, terms: Sequence[tuple[int, float]], unit: float = 1.0
) -> float:
    """Cost of demand with the windows of ``level_windows``, in slots of one unit on demand.

    In each slot all windows together cover the dearest demand, whatever level they came from.
    """
    covered = np.zeros(demand.slots)
    paid = 0.0
    for window in level_windows(demand, terms, unit):
        length, price = terms[window.product]
        covered[window.start : window.start + length] += unit
        paid += price * length * unit
    return paid + float(value_by_slot(demand.stacks, covered, demand.price).sum())


def exact_cost(
    demand: PricedDemand,
    terms: Sequence[tuple[int, float]],
    unit: float = 1.0,
    time_limit_seconds: float = 60.0,
) -> float:
    """The least that reservations of whole units, beginning in any slot, make demand cost.

    Windows of different units may share demand in any way. One column counts the windows of every
    term and first slot, one says how much of every segment is covered; in each slot no more is
    covered than is reserved. A term that the last slot cuts off is paid in full.

    ``terms`` are the slots and the price, relative to on demand, of each; so many units (``unit``)
    are reserved at once. The cost is in slots of one unit on demand.

    Raises ``InputError`` if the optimum is not found in time.
    """
    slots, stacks = demand.slots, demand.stacks
    builder = ProgramBuilder()
    rows = builder.add_rows(np.zeros(slots), np.inf)
    for length, price in terms:
        if length <= 0:
            raise InputError("not a term", field="slots", value=length, expected="1 or more")
        windows = builder.add_columns(np.zeros(slots), np.inf, True, -price * length * unit)
        for start in range(slots):
            held = rows[start : start + length]
            builder.add_entries(held, np.full(held.size, windows[start]), unit)
    for slot in range(slots):
        at = slice(stacks.first[slot], stacks.first[slot] + stacks.size[slot])
        price_of = demand.price[stacks.classes[at]]
        covered = builder.add_columns(np.zeros(price_of.size), stacks.units[at], False, price_of)
        if covered.size:
            builder.add_entries(np.full(covered.size, rows[slot]), covered, -1.0)
    solution = find_solver("highs").solve(builder.build(), Limits(time_limit_seconds))
    if solution.status != SolveStatus.OPTIMAL:
        raise InputError(
            "the exact optimum was not found",
            field="time_limit_seconds",
            value=time_limit_seconds,
            expected=f"a smaller case, or more time: the solve {solution.status}",
        )
    everything = float(value_by_slot(stacks, np.zeros(slots), demand.price).sum())
    return everything - solution.objective


_OPTIMUM: Final = Measure("optimum", "optimum, of on-demand", "share")
_POLICY: Final = Measure("policy", "policy, of on-demand", "share")
_RATIO: Final = Measure("ratio", "policy / optimum")
_ABOVE: Final = Measure("above", "above the exact optimum, mean", "share")
_MOST_ABOVE: Final = Measure("most_above", "... at most", "share")
_TO_RESERVED: Final = Measure("to_reserved", "policy, of reserved only", "share")
_NAMES: Final = {
    "reserved": "reserved",
    "transient": "transient",
    "spot-block": "blocks",
    "scheduled-reserved": "scheduled",
    "on-demand": "on demand",
}
_MIX: Final = tuple(
    Measure(f"{where}_{option}", f"{where}: {said}", "share")
    for where in ("optimum", "policy")
    for option, said in _NAMES.items()
)

_PROVIDERS: Final = ("microsoft", "amazon", "google", "google-customised")
_APART: Final = 1000
_TRAINED_SHARE: Final = 1.0 / 3.0
_PRICES: Final = "thesis"
_TRANSIENT_PRICE: Final = 0.3
_TRANSIENT_PRICES: Final = (0.2, 0.3, 0.4)
"""The published range."""
_SWEPT_HOURS: Final = (12.0, 24.0, 72.0, 168.0, 720.0)
_SWEPT: Final = ("amazon", "google")
_SWEPT_SEEDS: Final = 2
_GIB_PER_CORE: Final = (1.0, 2.0, 4.0, 8.0)
_SETTINGS: Final = OfflineSettings(amounts="of-machines", level_units=2.0)
_SMALL: Final = "random small cases, against the exact optimum"
_SMALL_SLOTS: Final = 24
_SMALL_JOBS: Final = 15
_SMALL_PRICES: Final = (0.3, 0.6, 1.0)
_SMALL_TERMS: Final = {
    "one term, as long as demand": ((_SMALL_SLOTS, 0.5),),
    "one term, a quarter as long": ((_SMALL_SLOTS // 4, 0.6),),
    "two terms": ((_SMALL_SLOTS // 4, 0.6), (_SMALL_SLOTS // 2, 0.4)),
}
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
    transient_price: float = _TRANSIENT_PRICE
    """Of it, relative to on demand."""

    def measure(self) -> Mapping[str, float]:
        """Measure what the optimum and the policy pay, and what they use."""
        workload, training_hours = _demand(self.log, self.share, self.seed)
        terms = None
        if self.lifetime_hours is not None:
            lives = ExponentialRevocation(self.lifetime_hours)
            terms = TransientTerms(self.transient_price, lives)
        request = MixRequest(
            self.provider,
            transient=terms is not None,
            transient_terms=terms,
            settings=_SETTINGS,
            demand_errors=(),
        )
        prices = load_prices(_PRICES)
        sold = published_terms(prices, request)
        practice = PracticeRequest(training_hours, runtime_errors=())
        return _figures(
            mix(workload, prices, request, sold), practise(workload, prices, request, practice)
        )


@dataclass(frozen=True, slots=True)
class SmallCases:
    """Random demands that are small enough for the exact optimum."""

    terms: str
    """Name of the terms on sale."""
    draws: int
    """How many demands."""
    seed: int
    """Of them."""

    def measure(self) -> Mapping[str, float]:
        """Measure how much more the levels cost than they must."""
        random = np.random.default_rng(self.seed)
        terms = _SMALL_TERMS[self.terms]
        above = []
        for _ in range(self.draws):
            demand = _small_demand(random)
            above.append(level_cost(demand, terms) / exact_cost(demand, terms) - 1.0)
        return {"above": float(np.mean(above)), "most_above": float(np.max(above))}


def _small_demand(random: np.random.Generator) -> PricedDemand:
    """Some jobs of a few units, at prices of transient machines, blocks and on demand."""
    count = _SMALL_JOBS
    units = random.integers(1, 4, count).astype(np.float64)
    jobs = BoughtJobs(
        row=np.arange(count),
        start_hours=np.sort(random.uniform(0.0, _SMALL_SLOTS - 1.0, count)),
        hours=random.exponential(_SMALL_SLOTS / 4.0, count),
        tasks=np.ones(count, np.int64),
        cores_per_task=units,
        gib_per_task=units,
        gpus_per_task=np.zeros(count),
        left_out=0,
        memory_known=False,
        first_hour_of_week=0.0,
    )
    price = random.choice(_SMALL_PRICES, count)
    prices = JobPrices(np.zeros(count, np.int8), price, np.ones(count))
    return priced_demand(jobs, units, prices, 1.0, _SMALL_SLOTS, _SMALL_SLOTS)


def _figures(report: MixReport, online: OnlineReport) -> Mapping[str, float]:
    outcome = online.outcome
    policy = outcome.cost / outcome.all_on_demand_cost
    found = {
        "optimum": report.share("optimum"),
        "policy": policy,
        "ratio": outcome.cost / online.optimum_cost,
        "to_reserved": policy / report.share("all reserved"),
    }
    tables = {"optimum": report.options, "policy": outcome.over_time}
    for where, table in tables.items():
        hours = _hours(table)
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
class PurchasingParameters(StudyParameters, quick="seeds=4 share=0.02 small=20", minutes=(4, 60)):
    """Parameters of ``purchasing-mix``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)

    seeds: int = 5

    share: float = 0.3
    """Of the generated jobs that are bought for."""
    small: int = 100
    """Random small cases of each seed, held against the exact optimum."""
    log: Path | None = None
    """A log to buy for as well."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        require(0.0 < self.share <= 1.0, self, "share", "above 0 to 1")
        require_at_least(self, 1, "small")


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
    cases += [
        GridPoint(
            f"transient machines at {100.0 * price:g} % of on demand",
            hours,
            provider,
            seed,
            Purchase("", parameters.share, seed, provider, hours, price),
        )
        for seed in range(min(parameters.seeds, _SWEPT_SEEDS))
        for price in _TRANSIENT_PRICES
        for hours in _SWEPT_HOURS
        for provider in _SWEPT
    ]
    cases += [
        GridPoint(_SMALL, None, terms, seed, SmallCases(terms, parameters.small, seed))
        for seed in range(parameters.seeds)
        for terms in _SMALL_TERMS
    ]
    return Study(
        title="Which mix of purchasing options is cheapest?",
        source=f"{cloud.SOURCE}, figures 5.4 to 5.8",
        axis="mean life of a transient machine (h)",
        measures=(_OPTIMUM, _POLICY, _RATIO, _TO_RESERVED, *_MIX, _ABOVE, _MOST_ABOVE),
        drawn=(
            *(_OPTIMUM.name, _POLICY.name, _RATIO.name),
            *("optimum_transient", "policy_transient"),
        ),
        cases=tuple(cases),
        claims=published(*(_claims(called) for _, called in sources)),
        notes=(
            "The published log (four years, 60 million jobs, 4,380 cores on average) and the "
            "lifetimes of transient machines are not public, and lifetimes decide most: hence a "
            "day and a week, and tables over lives and prices (of two seeds). Prices are the "
            "published relative ones.",
            "Demand is two generated years with the published figures of the same cluster, "
            f"{100.0 * parameters.share:g} % of their jobs; the policy learns from the first and "
            "is held to the second. A log's last two thirds are held to its first. Terms longer "
            "than the demand repeat it. A log is the same in every seed, without an interval.",
            "The generated jobs have no users or limits: the regression of runtimes knows the hour "
            "and what they ask for. They ask for 1, 2, 4 or 8 GiB to a core, as many for each: "
            "that is ours, for what is published does not say it, and it decides what customised "
            "machines save. The optimum buys parts of machines with 4 GiB to a core, so that a job "
            "of another ratio leaves cores or memory idle; customised machines have a job's own "
            "sizes, for 5 % more. Both are relative to standard machines on demand.",
            "The small cases are of 15 jobs in 24 slots: what the optimum's level by level search "
            "costs beyond the exact optimum, by mixed-integer programming.",
            "Shares of options are of core hours used. All reserved is the highest demand of any "
            "hour, at the cheapest term.",
        ),
    )


def _claims(called: str) -> dict[str, Bound]:
    week, never = _WEEK + called, _NEVER + called

    def mean(measure: str, provider: str, group: str = week) -> Mean:
        return Mean(measure, provider, group)

    claims = {
        f"In hindsight {provider} costs {100 * published:g} % of on-demand (figure 5.4; taken "
        f"as: at most 5 points more).": Bound(mean("optimum", provider), published, margin=0.05)
        for provider, published in (
            ("amazon", 0.35),
            ("microsoft", 0.35),
            ("google", 0.41),
            ("google-customised", 0.3362),
        )
    }
    claims |= {
        "Amazon and Microsoft are the same (taken as: within 0.1 points).": mean(
            "optimum", "microsoft"
        ).against("amazon", margin=0.001),
        "Google's standard machines cost more.": mean("optimum", "amazon").against("google"),
        "... its customised ones less.": mean("optimum", "google-customised").against("google"),
    }
    claims |= {
        f"Where there are transient machines, {said} are never chosen {whose} (figure 5.5; taken "
        f"as: for less "
        f"than 0.1 % of the work).": Bound(mean(f"{where}_{option}", "amazon"), 0.0, margin=0.001)
        for where, whose in (("optimum", "in hindsight"), ("policy", "by the policy"))
        for option, said in (
            ("spot-block", "spot blocks"),
            ("scheduled-reserved", "scheduled reservations"),
        )
    }
    claims |= {
        f"The policy costs {100 * (more - 1):.0f} % more than hindsight "
        f"at {provider} (figure 5.6; taken as: at most).": Bound(mean("ratio", provider), more)
        for provider, more in (("amazon", 1.35), ("microsoft", 1.35), ("google", 1.55))
    }
    claims |= {
        "... most at Google.": mean("ratio", "amazon").against("google"),
        **{
            f"It costs 50 % less than on-demand machines only, or saves more ({provider}).": Bound(
                mean("policy", provider), 0.5
            )
            for provider in ("amazon", "google")
        },
        "... 79 % less than reserved machines only, or saves more.": Bound(
            mean("to_reserved", "amazon"), 0.21
        ),
        "The policy uses transient machines less than hindsight (figure 5.7).": Bound(
            mean("policy_transient", "amazon"), mean("optimum_transient", "amazon")
        ),
        "Without transient machines Amazon is cheapest in hindsight "
        "(figure 5.8): cheaper than Google.": mean("optimum", "amazon", never).against("google"),
        "... and than Microsoft.": mean("optimum", "amazon", never).against("microsoft"),
        "... and Google with the policy.": mean("policy", "google-customised", never).against(
            "amazon"
        ),
    }
    if not called:
        return claims
    return {f"{words[:-1]} ({called[2:]}).": bound for words, bound in claims.items()}
