"""Studies ``waiting-google`` and ``waiting-workload``: on other jobs than the university's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from foresail.model.errors import InputError, require, require_positive
from foresail.model.registry import register
from foresail_studies.study import (
    Bound,
    GridPoint,
    Mean,
    Measure,
    Study,
    StudyParameters,
    points_at,
    published,
)
from foresail_studies.waiting import _variants as variants
from foresail_studies.waiting._shared import (
    RENTED_COST,
    SOURCE,
    WAIT,
    YEAR,
    Trace,
    Week,
    YearParameters,
)
from foresail_studies.waiting._variants import Baseline, ModelScore

_MODELS: Final = "models of waits, by b (h), figure 7.10"
_SHORT: Final = "short threshold t (min), figures 7.11 a and 7.12 a"
_LONG_WAITS: Final = "waiting threshold b (h), figures 7.11 b and 7.12 b"
_CELLS: Final = "the cell, % of the published one"
_BASE_MINUTES: Final = 15.0
_BASE_HOURS: Final = 24.0
_LINEAR: Final = "linear"


@dataclass(frozen=True, slots=True)
class WaitingGoogleParameters(
    StudyParameters,
    quick="seeds=3 scale=0.025 scales=[0.005,0.025] short_minutes=[5,15,60] waiting_hours=[6,24]",
    minutes=(5, 240),
):
    """Parameters of ``waiting-google``."""

    seeds: int = 1

    log: Path | None = None
    """A log to run instead of the generated week, such as Google's own."""
    scale: float = 1.0
    """Size of the generated cell; 1 is the published one with 14 million jobs."""
    scales: tuple[float, ...] = (0.01, 0.1, 1.0)
    """Sizes that figures of the cell's size go by."""
    percent: float = 80.0
    """Of the mean load that fixed machines hold. The week starts on idle machines, so that all of
    the mean load would leave little to decide."""
    short_minutes: tuple[float, ...] = (5.0, 15.0, 30.0, 60.0)
    waiting_hours: tuple[float, ...] = (6.0, 12.0, 24.0, 48.0)
    """Thresholds t and b, which figures go by; 15 and 24 are the baseline."""
    models: tuple[str, ...] = ("linear", "forest", "boosting")
    """Models of waits: ``linear``, and, with scikit-learn, ``forest`` and ``boosting``."""

    def __post_init__(self) -> None:
        StudyParameters.__post_init__(self)
        if self.log is not None and not self.log.exists():
            raise InputError("there is no such log", source=self.log, field="log")
        require_positive(self, "scale")
        require(min(self.scales, default=1.0) > 0.0, self, "scales", "above 0")
        if not self.models:
            raise InputError("no model", field="models", expected="one or more")

    @property
    def best(self) -> str:
        """The model that policies use: the published choice, or what there is."""
        return "forest" if "forest" in self.models else self.models[-1]


@register("study", "waiting-google", parameters=WaitingGoogleParameters)
def waiting_google(parameters: WaitingGoogleParameters) -> Study:
    """Waiting policies without an oracle on a week of Google's kind (figures 7.10 to 7.12)."""
    cases = [case for seed in range(parameters.seeds) for case in _google_cases(parameters, seed)]
    jobs = "a log" if parameters.log else f"{100.0 * parameters.scale:g} % of the published cell"
    return Study(
        title="Do waiting policies without an oracle do as well on Google's jobs?",
        source=f"{SOURCE}, figures 7.10 to 7.12",
        axis="b (h), t (min) or size (%)",
        measures=(
            RENTED_COST,
            WAIT,
            variants.DEARER,
            variants.OF_TRIALS,
            variants.OF_WAITS,
            variants.LONGER,
            variants.LONG,
            variants.BLOCKED,
            variants.CORRELATION,
            variants.CORRELATION_SPLIT,
            variants.WAIT_ERROR,
        ),
        drawn=("rented_to_fixed", "mean_wait_seconds", "correlation"),
        cases=tuple(cases),
        claims=published(_google_claims(parameters)),
        notes=(
            f"Jobs: {jobs}. Google's log of 2019 is not at hand: unless a log is given "
            "(--set log=FILE), the week is a stand-in, and says nothing of Google's jobs that was "
            "not put into it.",
            "Put in, as published: jobs a week, machines of 192 cores and 768 GB, both prices of "
            "customised machines, 60 % off for fixed ones, a distribution of runtimes like the "
            "university's. Memory per core as in 2,502 jobs of Google's log of 2011. Bursts, days "
            "and the load are our choice.",
            "In a small cell a burst is more of the load: waits are less regular than in a large "
            "one, and harder to foresee (last table).",
            "Models learned under the baseline, of another generated week; from the log itself, "
            "where one is given, as published.",
            f'"{variants.KNOWING_NOTHING}" takes all jobs for short, as the published models of '
            "runtimes nearly do.",
        ),
    )


def _google_cases(parameters: WaitingGoogleParameters, seed: int) -> list[GridPoint]:
    log = "" if parameters.log is None else str(parameters.log)
    week = Week(log, parameters.scale, seed)
    base = Baseline(week, parameters.percent, 3600.0 * _BASE_HOURS, 60.0 * _BASE_MINUTES)
    cases = [
        GridPoint(_MODELS, hours, model, seed, ModelScore(base, model, 3600.0 * hours))
        for model in parameters.models
        for hours in (1.0, 4.0, 12.0, 24.0)
    ]

    def compared(group: str, x: float, here: Baseline, learned: Baseline) -> list[GridPoint]:
        return points_at(group, x, seed, variants.compared(here, parameters.best, learned))

    for minutes in parameters.short_minutes:
        cases += compared(_SHORT, minutes, replace(base, short_seconds=60.0 * minutes), base)
    for hours in parameters.waiting_hours:
        cases += compared(_LONG_WAITS, hours, replace(base, waiting_seconds=3600.0 * hours), base)
    for scale in () if log else parameters.scales:
        here = replace(base, trace=Week("", scale, seed))
        cases += compared(_CELLS, 100.0 * scale, here, here)
    return cases


def _google_claims(parameters: WaitingGoogleParameters) -> dict[str, Bound]:
    def mean(measure: str, system: str, group: str, *x: float) -> Mean:
        return Mean(measure, system, group, x)

    claims: dict[str, Bound] = {}
    for model in parameters.models:
        if model == _LINEAR:
            claims |= {
                "The line's MCC is negative (figure 7.10).": Bound(
                    mean("correlation", model, _MODELS), 0.0
                )
            }
            continue
        claims |= {
            f"The {model}'s MCC is much as on the university's jobs, 0.25 or more.": Bound(
                0.25, mean("correlation", model, _MODELS)
            ),
            f"... and falls with the threshold b ({model}).": Bound(
                mean("correlation", model, _MODELS, 24.0), mean("correlation", model, _MODELS, 1.0)
            ),
        }
        if _LINEAR in parameters.models:
            claims |= {
                f"... and is above the line's ({model}).": mean(
                    "correlation", _LINEAR, _MODELS
                ).against(model)
            }
    if _BASE_HOURS in parameters.waiting_hours:
        claims |= {
            "Combined, the on-demand cost is near the oracle's (figure 7.11; taken as: within "
            "10 %).": mean("rented_to_fixed", "combined", _LONG_WAITS, _BASE_HOURS).against(
                "oracle", factor=1.1
            ),
            "... and well below that of predicted runtimes (taken as: 20 % or more).": mean(
                "rented_to_fixed", "combined", _LONG_WAITS, _BASE_HOURS
            ).against(variants.KNOWING_NOTHING, factor=0.8),
            "Combined, jobs wait slightly less than with the oracle (figure 7.12).": mean(
                "mean_wait_seconds", "combined", _LONG_WAITS, _BASE_HOURS
            ).against("oracle"),
        }
    if len(parameters.short_minutes) > 1:
        claims |= {
            "The smaller t, the nearer is the cost to the oracle's (figure 7.11 a).": Bound(
                mean("dearer", "combined", _SHORT, min(parameters.short_minutes)),
                mean("dearer", "combined", _SHORT, max(parameters.short_minutes)),
            )
        }
    if len(parameters.waiting_hours) > 1:
        claims |= {
            "With shorter b, it is slightly nearer, too (figure 7.11 b).": Bound(
                mean("dearer", "combined", _LONG_WAITS, min(parameters.waiting_hours)),
                mean("dearer", "combined", _LONG_WAITS, max(parameters.waiting_hours)),
            )
        }
    if parameters.log is None and len(parameters.scales) > 1:
        claims |= {
            "Many jobs make waits foreseeable: in a larger cell, the cost of waits that were "
            "foreseen wrongly is less.": Bound(
                mean("dearer_by_waits", "combined", _CELLS, 100.0 * max(parameters.scales)),
                mean("dearer_by_waits", "combined", _CELLS, 100.0 * min(parameters.scales)),
            )
        }
    return claims


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

    trace: Trace
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

    trace: Trace

    def measure(self) -> Mapping[str, float]:
        """Both."""
        jobs = self.trace.read()
        return {
            "per_second": len(jobs) / jobs.span_seconds,
            "mean_runtime_seconds": float(jobs.runtime_seconds.mean()),
        }


@dataclass(frozen=True, slots=True)
class WorkloadParameters(YearParameters, quick="seeds=3 jobs=1000000", minutes=(0.2, 4)):
    """Parameters of ``waiting-workload``."""

    FILES: ClassVar[tuple[str, ...]] = ("log",)

    seeds: int = 5

    log: Path | None = None
    """A log to look at as well."""


@register("study", "waiting-workload", parameters=WorkloadParameters)
def waiting_workload(parameters: WorkloadParameters) -> Study:
    """Measure how jobs come and how long they run, beside exponential ones (6.12 and 7.3)."""
    cases = [
        case
        for seed in range(parameters.seeds)
        for case in _workload_cases(Trace("", parameters.jobs, seed), YEAR, seed)
    ]
    if parameters.log is not None:
        log = Trace(str(parameters.log), 0, 0)
        for seed in range(parameters.seeds):
            cases += _workload_cases(log, parameters.log.name, seed)
    return Study(
        title="How far are real jobs from exponential ones?",
        source=f"{SOURCE}, figures 6.12 and 7.3",
        axis="below",
        measures=(_JOBS, _WORK, _RATE, _RUNTIME),
        drawn=("jobs", "work"),
        cases=tuple(cases),
        claims=published(*_workload_claims()),
        notes=(
            "The year is generated so as to have the published figures: that they hold here is "
            "no finding, but says how near the year is to the log that is not public.",
            "Google's log of figure 7.3 is not at hand. A log is the same in every seed.",
        ),
    )


def _workload_cases(trace: Trace, called: str, seed: int) -> list[GridPoint]:
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


def _workload_claims() -> tuple[dict[str, Bound], ...]:
    year, exponential = YEAR, f"{_EXPONENTIAL}, {YEAR}"

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
