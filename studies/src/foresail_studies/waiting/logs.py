"""Studies ``waiting-trace`` and ``waiting-trace-queues``: policies on a year of jobs, on logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from foresail.cloud.waiting.simulating import Beliefs, Foresight
from foresail.model.registry import register
from foresail_studies.declaring import declared
from foresail_studies.study import GridPoint, Study, points_at
from foresail_studies.waiting._shared import (
    MEASURES,
    Trace,
    YearParameters,
    figures_of,
    jobs_of,
    policy_of,
)

_LIMITS: Final = 24 * 3600.0, 3 * 60.0
"""Thresholds b and t."""
_SYSTEMS: Final = (
    "ajw", "ajw strict-fcfs", "ajw sjf", "njw", "ajw-t", "sww", "ljw", "compound", "compound sjf",
)  # fmt: skip
_POLICIES: Final = ("ajw", "ajw-t", "sww", "ljw", "compound")
_PERCENTS: Final = (60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 150.0)
_FEWER_PERCENTS: Final = (80.0, 100.0, 120.0, 150.0)
_LJW_PERCENT: Final = 200.0 / 150.0 * 100.0
"""200 machines, where 150 hold the load."""


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
        jobs = jobs_of(self.trace)
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
            elsewhere = np.where(short, self.short_seconds, 0.0)
            estimates = np.where(random.random(len(jobs)) < share, elsewhere, estimates)
        fixed = self.trace.machines(self.percent)
        return figures_of(jobs, fixed, policy, Beliefs(estimates, told))


@dataclass(frozen=True, slots=True)
class TraceParameters(YearParameters, quick="seeds=4 jobs=2000000", minutes=(4, 15)):
    """Parameters of ``waiting-trace``."""

    log: Path | None = None
    """A log to run as well."""
    machine_cores: int = 0
    """Of a fixed machine, for the log; 0: its fixed cores are one pool."""


@register("study", "waiting-trace", parameters=TraceParameters)
def waiting_trace(parameters: TraceParameters) -> Study:
    """Measure the savings of waiting on a year of jobs: prices, waits, errors (6.13 to 6.18)."""
    cases = []
    for seed in range(parameters.seeds):
        year = Trace("", parameters.jobs, seed)
        for percent in _PERCENTS:
            cases += points_at("year", percent, seed, _runs(year, percent))
        for kind in ("runtimes_over", "runtimes_under", "waits_over", "waits_under"):
            for wrong in (0.0, 10.0, 30.0):
                run = TraceRun(year, 100.0, "compound", *_LIMITS, **{kind: wrong / 100.0})
                cases.append(GridPoint("wrong", wrong, kind.replace("_", " "), seed, run))
    if parameters.log is not None:
        trace = Trace(str(parameters.log), 0, 0, parameters.machine_cores)
        for percent in _PERCENTS:
            cases += points_at(parameters.log.name, percent, 0, _runs(trace, percent))
    return declared("waiting-trace", MEASURES, cases)


def _runs(trace: Trace, percent: float) -> dict[str, TraceRun]:
    """Return the runs of every system with so many machines.

    With fewer than some, a queue that no job leaves only grows.
    """
    return {
        system: TraceRun(trace, percent, system, *_LIMITS)
        for system in _SYSTEMS
        if percent >= {"ajw": 150.0, "ljw": 110.0}.get(system.split()[0], 0.0)
    }


@dataclass(frozen=True, slots=True)
class TraceQueuesParameters(YearParameters, quick="seeds=4 jobs=1000000", minutes=(1.5, 25)):
    """Parameters of ``waiting-trace-queues``."""

    seeds: int = 3


@register("study", "waiting-trace-queues", parameters=TraceQueuesParameters)
def waiting_trace_queues(parameters: TraceQueuesParameters) -> Study:
    """The queue's order and wrong predictions, on a year of jobs (6.13, 6.14, 6.16 to 6.18)."""
    cases = [case for seed in range(parameters.seeds) for case in _cases(parameters, seed)]
    lowest = [
        {"policy": policy, "group": group, "figure": figure, "at": at}
        for group, figure in (("first", "6.13"), ("shortest", "6.14"))
        for policy, at in zip(_POLICIES[:-1], ("150", *3 * ("100,120,150",)), strict=True)
    ]
    order = [{"policy": each, "at": "150" if each == "ajw" else "100"} for each in _POLICIES]
    return declared("waiting-trace-queues", MEASURES, cases, {"lowest": lowest, "order": order})


def _cases(parameters: TraceQueuesParameters, seed: int) -> list[GridPoint]:
    trace = Trace("", parameters.jobs, seed)
    cases = [
        GridPoint(group, percent, policy, seed, TraceRun(trace, percent, policy + queue, *_LIMITS))
        for group, queue in (("first", ""), ("shortest", " sjf"))
        for percent in _FEWER_PERCENTS
        for policy in _POLICIES
        # With less than its load, a queue that no job leaves only grows.
        if policy != "ajw" or percent >= 150.0
    ]
    for percent in _FEWER_PERCENTS:
        for kind in ("over", "under"):
            runs = {
                f"{wrong} % wrong": TraceRun(
                    trace, percent, "sww", *_LIMITS, **{f"waits_{kind}": wrong / 100.0}
                )
                for wrong in (0, 5, 30, 100)
            }
            cases += points_at(kind, percent, seed, runs)
        nobody = {"nobody waits": TraceRun(trace, percent, "njw", *_LIMITS)}
        cases += points_at("over", percent, seed, nobody)
    for kind in ("runtimes_over", "runtimes_under"):
        for wrong in (0.0, 10.0, 30.0, 50.0):
            run = TraceRun(trace, _LJW_PERCENT, "ljw", *_LIMITS, **{kind: wrong / 100.0})
            cases.append(GridPoint("runtimes", wrong, kind.replace("_", " "), seed, run))
    return cases
