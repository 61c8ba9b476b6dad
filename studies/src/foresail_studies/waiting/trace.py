"""Study ``waiting-trace``: waiting policies on a year of a university's jobs, and on logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.cloud.waiting.simulating import Beliefs, Foresight
from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Study, points_at, published
from foresail_studies.waiting import _shared as waiting

_SYSTEMS: Final = (
    "ajw", "ajw strict-fcfs", "ajw sjf", "njw", "ajw-t", "sww", "ljw", "compound", "compound sjf",
)  # fmt: skip
_OWN: Final = 150.0
_BEST: Final = 100.0
_PERCENTS: Final = (60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 150.0)
_WRONG: Final = "wrong predictions (compound, 100 % of the load)"


@dataclass(frozen=True, slots=True)
class TraceRun:
    """A policy on the jobs of a trace; ``*_over`` and ``*_under`` are shares of wrong predictions.

    Fixed machines hold ``percent`` of the mean load.
    """

    trace: waiting.Trace
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
        policy = waiting.policy_of(self.system, self.waiting_seconds, self.short_seconds)
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
        _, result = waiting.ran(jobs, fixed, policy, Beliefs(estimates, told))
        return waiting.figures_of(result)


@dataclass(frozen=True, slots=True)
class TraceParameters(waiting.YearParameters):
    """Parameters of ``waiting-trace``."""

    QUICK: ClassVar[dict[str, str]] = {"seeds": "4", "jobs": "2000000"}
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 15.0

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
        year = waiting.Trace("", parameters.jobs, seed)
        for percent in _PERCENTS:
            cases += points_at(waiting.YEAR, percent, seed, _runs(year, percent, *limits))
        for kind in ("runtimes_over", "runtimes_under", "waits_over", "waits_under"):
            for wrong in (0.0, 10.0, 30.0):
                run = TraceRun(year, _BEST, "compound", *limits, **{kind: wrong / 100.0})
                cases.append(GridPoint(_WRONG, wrong, kind.replace("_", " "), seed, run))
    if parameters.log is not None:
        trace = waiting.Trace(str(parameters.log), 0, 0, parameters.machine_cores)
        for percent in _PERCENTS:
            cases += points_at(parameters.log.name, percent, 0, _runs(trace, percent, *limits))
    return Study(
        title="What does waiting save on a year of jobs?",
        source=f"{waiting.SOURCE}, figures 6.13 to 6.18",
        axis="fixed cores, % of the mean load (wrong predictions: %)",
        measures=(waiting.PRICE, waiting.WAIT, waiting.RENTED, waiting.UTILISATION),
        drawn=("price", "mean_wait_seconds"),
        cases=tuple(cases),
        claims=published(_claims()),
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
    trace: waiting.Trace, percent: float, waiting_seconds: float, short_seconds: float
) -> dict[str, TraceRun]:
    """Return the runs of every system with so many machines."""
    return {
        system: TraceRun(trace, percent, system, waiting_seconds, short_seconds)
        for system in _SYSTEMS
        if percent >= _least(system)
    }


def _least(system: str) -> float:
    """Percentage from which on a policy is run: less, and a queue that no job leaves only grows."""
    return {"ajw": _OWN, "ljw": 110.0}.get(system.split()[0], 0.0)


def _claims() -> dict[str, Bound]:
    def mean(measure: str, system: str, percent: float) -> Mean:
        return Mean(measure, system, waiting.YEAR, (percent,))

    own = mean("price", "ajw", _OWN)
    return {
        "The compound with 150 machines costs 5 % less than waiting for 225 (figure 6.13).": Bound(
            mean("price", "compound", _BEST), own, factor=0.95
        ),
        "... and its jobs wait 7 times less than where nobody overtakes.": Bound(
            mean("mean_wait_seconds", "compound", _BEST),
            mean("mean_wait_seconds", "ajw strict-fcfs", _OWN),
            factor=1.0 / 7.0,
        ),
        "Its price is 43 % below on-demand.": Bound(mean("price", "compound", _BEST), 0.571),
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
            "mean_wait_seconds", "ajw sjf", _OWN
        ).against("ajw", factor=0.2),
    }
