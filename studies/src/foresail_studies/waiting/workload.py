"""Study ``waiting-workload``: how jobs come and how long they run, beside exponential ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.model.registry import register
from foresail_studies.study import Bound, GridPoint, Mean, Measure, Study, published
from foresail_studies.waiting import _shared as waiting

_JOBS: Final = Measure("jobs", "jobs below", "share")
_WORK: Final = Measure("work", "work of the jobs below", "share")
_RATE: Final = Measure("per_second", "jobs a second")
_RUNTIME: Final = Measure("mean_runtime_seconds", "mean runtime", "duration")

_GAPS: Final = "gaps between submissions (s), figure 6.12 a"
_RUNTIMES: Final = "runtimes (min), figures 6.12 b and c, and 7.3"
_MEANS: Final = "means"
_EXPONENTIAL: Final = "exponential"
_LIMITS: Final = {
    _GAPS: (0.01, 0.1, 1.0, 10.0, 100.0),
    _RUNTIMES: (0.1, 1.0, 3.0, 15.0, 60.0, 360.0, 1440.0, 5760.0),
}


@dataclass(frozen=True, slots=True)
class Below:
    """Shares below a limit (seconds) of gaps or of runtimes; of jobs, or exponential ones."""

    trace: waiting.Trace
    of: str
    limit_seconds: float
    exponential: bool

    def measure(self) -> Mapping[str, float]:
        """Measure how many, and with runtimes how much work."""
        jobs = self.trace.read()
        runtimes = self.of == "runtimes"
        values = jobs.runtime_seconds if runtimes else np.diff(jobs.submit_seconds)
        mean = float(values.mean())
        if self.exponential:
            limit = self.limit_seconds / mean
            share = -np.expm1(-limit)
            work = share - limit * np.exp(-limit)
            return {"jobs": float(share)} | ({"work": float(work)} if runtimes else {})
        below = values < self.limit_seconds
        found = {"jobs": float(below.mean())}
        if runtimes:
            done = float(jobs.runtime_seconds[below] @ jobs.cores[below])
            found["work"] = done / jobs.core_seconds
        return found


@dataclass(frozen=True, slots=True)
class Means:
    """Rate and mean runtime of jobs."""

    trace: waiting.Trace

    def measure(self) -> Mapping[str, float]:
        """Both."""
        jobs = self.trace.read()
        return {
            "per_second": len(jobs) / jobs.span_seconds,
            "mean_runtime_seconds": float(jobs.runtime_seconds.mean()),
        }


@dataclass(frozen=True, slots=True)
class WorkloadParameters(waiting.YearParameters):
    """Parameters of ``waiting-workload``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)
    QUICK: ClassVar[dict[str, str]] = {"seeds": "3", "jobs": "1000000"}
    QUICK_MINUTES: ClassVar[float] = 0.2
    FULL_MINUTES: ClassVar[float] = 4.0

    seeds: int = 5

    log: Path | None = None
    """A log to look at as well."""


@register("study", "waiting-workload", parameters=WorkloadParameters)
def waiting_workload(parameters: WorkloadParameters) -> Study:
    """Measure how jobs come and how long they run, beside exponential ones (6.12 and 7.3)."""
    cases = [
        case
        for seed in range(parameters.seeds)
        for case in _cases(waiting.Trace("", parameters.jobs, seed), waiting.YEAR, seed)
    ]
    if parameters.log is not None:
        log = waiting.Trace(str(parameters.log), 0, 0)
        for seed in range(parameters.seeds):
            cases += _cases(log, parameters.log.name, seed)
    return Study(
        title="How far are real jobs from exponential ones?",
        source=f"{waiting.SOURCE}, figures 6.12 and 7.3",
        axis="below",
        measures=(_JOBS, _WORK, _RATE, _RUNTIME),
        drawn=("jobs", "work"),
        cases=tuple(cases),
        claims=published(*_claims()),
        notes=(
            "The year is generated so as to have the published figures: that they hold here is "
            "no finding, but says how near the year is to the log that is not public.",
            "Google's log of figure 7.3 is not at hand. A log is the same in every seed.",
        ),
    )


def _cases(trace: waiting.Trace, called: str, seed: int) -> list[GridPoint]:
    cases = [GridPoint(_MEANS, None, called, seed, Means(trace))]
    for group, limits in _LIMITS.items():
        of, unit = ("gaps", 1.0) if group == _GAPS else ("runtimes", 60.0)
        systems = {called: False, f"{_EXPONENTIAL}, {called}": True}
        cases += [
            GridPoint(group, limit, system, seed, Below(trace, of, limit * unit, exponential))
            for system, exponential in systems.items()
            for limit in limits
        ]
    return cases


def _claims() -> tuple[dict[str, Bound], ...]:
    year, exponential = waiting.YEAR, f"{_EXPONENTIAL}, {waiting.YEAR}"

    def jobs(group: str, limit: float, system: str = year) -> Mean:
        return Mean("jobs", system, group, (limit,))

    gaps = {
        "90 % of gaps are below a second (taken as: 85 % or more).": Bound(0.85, jobs(_GAPS, 1.0)),
        "... far more than of exponential ones.": Bound(jobs(_GAPS, 1.0, exponential), 0.5),
    }
    runtimes = {
        "60 % of jobs run for less than three minutes.": Bound(0.59, jobs(_RUNTIMES, 3.0)),
        "... far more than of exponential ones.": Bound(
            jobs(_RUNTIMES, 3.0, exponential), jobs(_RUNTIMES, 3.0), factor=0.5
        ),
        "96 % run for less than six hours.": Bound(0.955, jobs(_RUNTIMES, 360.0)),
        "... and do little of the work (taken as: less than half).": Bound(
            Mean("work", year, _RUNTIMES, (360.0,)), 0.5
        ),
        "0.11 % run for longer than 96 hours.": Bound(0.998, jobs(_RUNTIMES, 5760.0)),
    }
    return gaps, runtimes
