"""Studies ``waiting-trace`` and ``waiting-trace-queues``: policies on a year of jobs, on logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.cloud.waiting.simulating import Beliefs, Foresight
from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Study, points_at, published
from foresail_studies.waiting._shared import (
    OPPORTUNITY,
    PRICE,
    RENTED,
    SOURCE,
    UTILISATION,
    WAIT,
    YEAR,
    Trace,
    YearParameters,
    figures_of,
    policy_of,
    ran,
)

_SYSTEMS: Final = (
    "ajw", "ajw strict-fcfs", "ajw sjf", "njw", "ajw-t", "sww", "ljw", "compound", "compound sjf",
)  # fmt: skip
_TRACE_OWN: Final = 150.0
_TRACE_BEST: Final = 100.0
_TRACE_PERCENTS: Final = (60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 150.0)
_WRONG: Final = "wrong predictions (compound, 100 % of the load)"


@dataclass(frozen=True, slots=True)
class TraceRun:
    """A policy on the jobs of a trace; ``*_over`` and ``*_under`` are shares of wrong predictions.

    Fixed machines hold ``percent`` of the mean load.
    """

    trace: Trace
    percent: float
    system: str
    waiting_seconds: float
    short_seconds: float
    runtimes_over: float = 0.0
    runtimes_under: float = 0.0
    waits_over: float = 0.0
    waits_under: float = 0.0

    def measure(self) -> Mapping[str, float]:
        """Measure cost and waits."""
        jobs = self.trace.read()
        fixed = self.trace.machines(self.percent)
        policy = policy_of(self.system, self.waiting_seconds, self.short_seconds)
        random = np.random.default_rng(self.trace.seed)
        told = None
        if self.system.split()[0] in ("sww", "compound"):
            told = Foresight(
                random.random(len(jobs)) < self.waits_under if self.waits_under else None,
                random.random(len(jobs)) < self.waits_over if self.waits_over else None,
            )
        estimates = jobs.runtime_seconds
        if self.runtimes_over or self.runtimes_under:
            short = estimates < self.short_seconds
            share = np.where(short, self.runtimes_over, self.runtimes_under)
            wrong = random.random(len(jobs)) < share
            elsewhere = np.where(short, self.short_seconds, 0.0)
            estimates = np.where(wrong, elsewhere, estimates)
        _, result = ran(jobs, fixed, policy, Beliefs(estimates, told))
        return figures_of(result)


@dataclass(frozen=True, slots=True)
class TraceParameters(YearParameters, quick="seeds=4 jobs=2000000", minutes=(4, 15)):
    """Parameters of ``waiting-trace``."""

    waiting_hours: float = 24.0
    short_minutes: float = 3.0
    """Thresholds b and t."""
    log: Path | None = None
    """A log to run as well."""
    machine_cores: int = 0
    """Of a fixed machine, for the log; 0: its fixed cores are one pool."""


@register("study", "waiting-trace", parameters=TraceParameters)
def waiting_trace(parameters: TraceParameters) -> Study:
    """Measure the savings of waiting on a year of jobs: prices, waits, errors (6.13 to 6.18)."""
    limits = 3600.0 * parameters.waiting_hours, 60.0 * parameters.short_minutes
    cases = []
    for seed in range(parameters.seeds):
        year = Trace("", parameters.jobs, seed)
        for percent in _TRACE_PERCENTS:
            cases += points_at(YEAR, percent, seed, _runs(year, percent, *limits))
        for kind in ("runtimes_over", "runtimes_under", "waits_over", "waits_under"):
            for wrong in (0.0, 10.0, 30.0):
                run = TraceRun(year, _TRACE_BEST, "compound", *limits, **{kind: wrong / 100.0})
                cases.append(GridPoint(_WRONG, wrong, kind.replace("_", " "), seed, run))
    if parameters.log is not None:
        trace = Trace(str(parameters.log), 0, 0, parameters.machine_cores)
        for percent in _TRACE_PERCENTS:
            cases += points_at(parameters.log.name, percent, 0, _runs(trace, percent, *limits))
    return Study(
        title="What does waiting save on a year of jobs?",
        source=f"{SOURCE}, figures 6.13 to 6.18",
        axis="fixed cores, % of the mean load (wrong predictions: %)",
        measures=(PRICE, WAIT, RENTED, UTILISATION),
        drawn=("price", "mean_wait_seconds"),
        cases=tuple(cases),
        claims=published(_trace_claims()),
        notes=(
            "The year is generated from the log's published figures: rate, share of gaps below a "
            "second, mean and shares of runtimes, load. How bursts and weeks vary is not "
            "published, and decides how long jobs wait.",
            "Published waits are those of a queue in which nobody overtakes (13.3 h) or in which "
            "the first that fits goes (8.1 h).",
            "Of 225 published machines 150 % is the counterpart, of 150 it is 100 %.",
        ),
    )


def _runs(
    trace: Trace, percent: float, waiting_seconds: float, short_seconds: float
) -> dict[str, TraceRun]:
    """Return the runs of every system with so many machines."""
    return {
        system: TraceRun(trace, percent, system, waiting_seconds, short_seconds)
        for system in _SYSTEMS
        if percent >= _least(system)
    }


def _least(system: str) -> float:
    """Percentage from which on a policy is run: less, and a queue that no job leaves only grows."""
    return {"ajw": _TRACE_OWN, "ljw": 110.0}.get(system.split()[0], 0.0)


def _trace_claims() -> dict[str, Bound]:
    def mean(measure: str, system: str, percent: float) -> Mean:
        return Mean(measure, system, YEAR, (percent,))

    own = mean("price", "ajw", _TRACE_OWN)
    return {
        "The compound with 150 machines costs 5 % less than waiting for 225 (figure 6.13).": Bound(
            mean("price", "compound", _TRACE_BEST), own, factor=0.95
        ),
        "... and its jobs wait 7 times less than where nobody overtakes.": Bound(
            mean("mean_wait_seconds", "compound", _TRACE_BEST),
            mean("mean_wait_seconds", "ajw strict-fcfs", _TRACE_OWN),
            factor=1.0 / 7.0,
        ),
        "Its price is 43 % below on-demand.": Bound(mean("price", "compound", _TRACE_BEST), 0.571),
        "Waiting for 225 machines costs 0.60 of on-demand.": Bound(own, 0.60, margin=0.005),
        "10 % of long jobs taken for short ones raise "
        "the price by 10 % at most (figure 6.15).": Bound(
            Mean("price", "runtimes under", _WRONG, (10.0,)),
            Mean("price", "runtimes under", _WRONG, (0.0,)),
            factor=1.10,
        ),
        "... and so do 10 % of short jobs taken for long ones.": Bound(
            Mean("price", "runtimes over", _WRONG, (10.0,)),
            Mean("price", "runtimes over", _WRONG, (0.0,)),
            factor=1.10,
        ),
        "The price grows slower than the share of waits predicted too long (30 %).": Bound(
            Mean("price", "waits over", _WRONG, (30.0,)),
            Mean("price", "waits over", _WRONG, (0.0,)),
            factor=1.30,
        ),
        "Shortest first, all that wait for 225 machines wait less (0.6 h against 8.1 h).": mean(
            "mean_wait_seconds", "ajw sjf", _TRACE_OWN
        ).against("ajw", factor=0.2),
    }


_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_TRACE_QUEUES_PERCENTS: Final = (80.0, 100.0, 120.0, 150.0)
_TRACE_QUEUES_OWN: Final = 150.0
_TRACE_QUEUES_BEST: Final = 100.0
_FIRST_COME: Final = "first that fits"
_SHORTEST: Final = "shortest first"
_OVER: Final = "SWW, waits predicted too long"
_UNDER: Final = "SWW, waits predicted too short"
_RUNTIMES: Final = "LJW, wrong predictions (%), 133 % of the load owned"
_LJW_PERCENT: Final = 200.0 / 150.0 * 100.0
"""200 machines, where 150 hold the load."""


@dataclass(frozen=True, slots=True)
class TraceQueuesParameters(YearParameters, quick="seeds=4 jobs=1000000", minutes=(1.5, 25)):
    """Parameters of ``waiting-trace-queues``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)

    seeds: int = 3

    waiting_hours: float = 24.0
    short_minutes: float = 3.0
    """Thresholds b and t."""
    log: Path | None = None
    """A log to run instead of the year."""
    machine_cores: int = 32
    """Of a fixed machine, for the log."""


@register("study", "waiting-trace-queues", parameters=TraceQueuesParameters)
def waiting_trace_queues(parameters: TraceQueuesParameters) -> Study:
    """The queue's order and wrong predictions, on a year of jobs (6.13, 6.14, 6.16 to 6.18)."""
    cases = [case for seed in range(parameters.seeds) for case in _cases(parameters, seed)]
    return Study(
        title="What do the order of the queue and wrong predictions do on a year of jobs?",
        source=f"{SOURCE}, figures 6.13, 6.14 and 6.16 to 6.18",
        axis="fixed cores, % of the mean load (runtimes: wrong predictions, %)",
        measures=(PRICE, WAIT, OPPORTUNITY, RENTED),
        drawn=("price", "mean_wait_seconds", "opportunity_cost"),
        cases=tuple(cases),
        claims=published(*_trace_queues_claims()),
        notes=(
            "The year is generated from the log's published figures; how bursts and weeks vary is "
            "not published, and decides how long jobs wait.",
            "Of 150 published machines 100 % of the mean load is the counterpart, of 225 150 %.",
            "LJW's queue only grows while less is owned than long jobs need: its waits and price "
            "are then those of this many jobs, and no steady state.",
            "The thesis' closing sentences on wrong runtimes name the two kinds the other way "
            "round than its definitions; here over-predicted jobs are short ones taken for long.",
        ),
    )


def _cases(parameters: TraceQueuesParameters, seed: int) -> list[GridPoint]:
    limits = 3600.0 * parameters.waiting_hours, 60.0 * parameters.short_minutes
    trace = (
        Trace("", parameters.jobs, seed)
        if parameters.log is None
        else Trace(str(parameters.log), 0, 0, parameters.machine_cores)
    )
    cases = [
        GridPoint(group, percent, policy, seed, TraceRun(trace, percent, policy + queue, *limits))
        for group, queue in ((_FIRST_COME, ""), (_SHORTEST, " sjf"))
        for percent in _TRACE_QUEUES_PERCENTS
        for policy in _POLICIES
        # With less than its load, a queue that no job leaves only grows.
        if policy != "ajw" or percent >= _TRACE_QUEUES_OWN
    ]
    for percent in _TRACE_QUEUES_PERCENTS:
        for group, field in ((_OVER, "waits_over"), (_UNDER, "waits_under")):
            runs = {
                f"{wrong} % wrong": TraceRun(
                    trace, percent, "sww", *limits, **{field: wrong / 100.0}
                )
                for wrong in (0, 5, 30, 100)
            }
            cases += points_at(group, percent, seed, runs)
        nobody = {"nobody waits": TraceRun(trace, percent, "njw", *limits)}
        cases += points_at(_OVER, percent, seed, nobody)
    cases += [
        GridPoint(
            _RUNTIMES,
            wrong,
            f"runtimes {kind}",
            seed,
            TraceRun(trace, _LJW_PERCENT, "ljw", *limits, **{f"runtimes_{kind}": wrong / 100.0}),
        )
        for kind in ("over", "under")
        for wrong in (0.0, 10.0, 30.0, 50.0)
    ]
    return cases


def _trace_queues_claims() -> tuple[dict[str, Bound], ...]:
    def mean(measure: str, system: str, group: str, *x: float) -> Mean:
        return Mean(measure, system, group, x)

    def best(measure: str, system: str, group: str) -> Mean:
        return mean(
            measure, system, group, _TRACE_QUEUES_OWN if system == "ajw" else _TRACE_QUEUES_BEST
        )

    claims: dict[str, Bound] = {}
    for group, figure in ((_FIRST_COME, "6.13"), (_SHORTEST, "6.14")):
        claims |= {
            f"The compound has the lowest opportunity cost ({policy}, {group}; "
            f"figure {figure}).": mean("opportunity_cost", "compound", group, *at).against(policy)
            for policy in ("ajw", "ajw-t", "sww", "ljw")
            for at in (
                (_TRACE_QUEUES_OWN,)
                if policy == "ajw"
                else (_TRACE_QUEUES_BEST, 120.0, _TRACE_QUEUES_OWN),
            )
        }
    claims |= {
        f"Shortest first, jobs wait less ({policy}).": Bound(
            best("mean_wait_seconds", policy, _SHORTEST),
            best("mean_wait_seconds", policy, _FIRST_COME),
        )
        for policy in _POLICIES
    }
    claims |= {
        f"... at nearly the same price ({policy}; taken as: within 2 %).": Bound(
            best("price", policy, _SHORTEST), best("price", policy, _FIRST_COME), factor=1.02
        )
        for policy in _POLICIES
    }
    foreseen = {
        "Waits predicted too long raise the price (figure 6.16).": mean(
            "price", "0 % wrong", _OVER
        ).against("30 % wrong"),
        "... and shorten the wait.": mean("mean_wait_seconds", "30 % wrong", _OVER).against(
            "0 % wrong"
        ),
        "... to none at all in the end (taken as: less than 1 s).": Bound(
            mean("mean_wait_seconds", "100 % wrong", _OVER), 1.0
        ),
        "Waits predicted too short lengthen the wait (figure 6.17).": mean(
            "mean_wait_seconds", "0 % wrong", _UNDER
        ).against("30 % wrong"),
        "... and do not change the price (taken as: within 0.1 %).": mean(
            "price", "100 % wrong", _UNDER
        ).against("0 % wrong", factor=1.001),
    }
    known = {
        "Short jobs taken for long ones hardly change LJW's price (figure 6.18; taken as: 50 % of "
        "them change it by 2 % at most).": Bound(
            mean("price", "runtimes over", _RUNTIMES, 50.0),
            mean("price", "runtimes over", _RUNTIMES, 0.0),
            factor=1.02,
        ),
        "... but lengthen the wait.": Bound(
            mean("mean_wait_seconds", "runtimes over", _RUNTIMES, 0.0),
            mean("mean_wait_seconds", "runtimes over", _RUNTIMES, 50.0),
        ),
        "Long jobs taken for short ones raise the price.": Bound(
            mean("price", "runtimes under", _RUNTIMES, 0.0),
            mean("price", "runtimes under", _RUNTIMES, 50.0),
            factor=1.0 / 1.05,
        ),
        "... and shorten the wait.": Bound(
            mean("mean_wait_seconds", "runtimes under", _RUNTIMES, 50.0),
            mean("mean_wait_seconds", "runtimes under", _RUNTIMES, 0.0),
        ),
    }
    return claims, foreseen, known
