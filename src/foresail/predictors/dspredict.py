"""What jobs will use, as schedulers that pack by use are told it: from history, or in truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Final, Literal

import numpy as np

from foresail.distributions.point import Point
from foresail.distributions.usage_belief import UsageBelief
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.limits import require
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.registry import register
from foresail.predictors.common_variance import CommonVariance
from foresail.predictors.history import HistoryParameters
from foresail.predictors.stepped import DAY_SECONDS
from foresail.predictors.usage import UsagePredictor, common_request
from foresail.traces.use_by_age import BY_AGE, parts_of

_LEAST_CPUS: Final = 1e-6
_MOST_PARTS: Final = 32
_NAMES: Final = {
    "average": {"cpu": "cpu", "memory": "memory", "cpu_time": "cpu_time"},
    "maximum": {"cpu": "cpu_max", "memory": "memory_max", "cpu_time": "cpu_time"},
}
"""Of quantities by what is believed of them."""
_CORRELATED: Final[tuple[str, ...]] = ("cpu", "memory")
_NONE_KNOWN: Final[Mapping[str, float]] = MappingProxyType({})
_NOT_BY_AGE: Final[Mapping[str, Sequence[Distribution]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UsageHistoryParameters(HistoryParameters):
    """Parameters of ``usage``: those of ``history`` and four more."""

    of: Literal["average", "maximum"] = "average"
    """Of cpu and memory, the average over tasks and time, or the maximum."""
    point: bool = False
    """Tell the winning estimates alone, not their histories."""
    resources: Literal["predicted", "requested"] = "predicted"
    """``requested``: of cpu and memory, tell what was asked for; the work is predicted."""
    age_parts: int = 1
    """Tell cpu and memory also in each of so many equal parts of a task's life; 1: on average over
    all of it alone. Each part has a history of its own."""

    def __post_init__(self) -> None:
        HistoryParameters.__post_init__(self)
        sound = 1 <= self.age_parts <= _MOST_PARTS
        require(sound, self, "age_parts", f"from 1 to {_MOST_PARTS}")
        averages = self.of == "average" and self.resources == "predicted"
        expected = "1 where maxima or requests are told"
        require(self.age_parts == 1 or averages, self, "age_parts", expected)


@register("predictor", "usage", parameters=UsageHistoryParameters)
class UsageHistory:
    """DSPredict: cpu, memory and work of a job's tasks from histories; the runtime follows."""

    def __init__(self, parameters: UsageHistoryParameters) -> None:
        told = {each.name: getattr(parameters, each.name) for each in fields(HistoryParameters)}
        self._names: Mapping[str, str] = _NAMES[parameters.of]
        self._requested = parameters.resources == "requested"
        names = ("cpu_time",) if self._requested else tuple(self._names.values())
        point_only = int(parameters.point or self._requested)
        self.age_parts = parameters.age_parts
        self._usage = UsagePredictor(
            HistoryParameters(**told), names, point_only=point_only, parts=parameters.age_parts
        )
        self._parts: dict[str, list[Mapping[str, float]]] = {}
        self._expected: dict[str, Mapping[str, float]] = {}
        self._common = {each: CommonVariance() for each in _CORRELATED if each in names}

    def predict(self, job: Job, now: float) -> UsageBelief:
        """Belief about the runtime, and about what each task uses."""
        remembered = self._usage.known(job, now)
        known = self._usage.or_requested(job, remembered)
        beliefs = {each: known[name] for each, name in self._names.items() if name in known}
        if self._requested:
            beliefs |= _requested(job)
        if job.tasks > 1:
            expected = {
                name: remembered[name].mean() for name in self._common if name in remembered
            }
            self._expected.setdefault(job.job_id, expected)  # asked again it learns the same
        correlation = {name: each.correlation for name, each in self._common.items()}
        return _belief(job, beliefs, correlation, _by_age(known, self.age_parts))

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn what was used by an attempt that ended, or by the parts of its job."""
        parts = self._parts.pop(job.job_id, [outcome.used])
        names = {name for part in parts for name in part}
        used = {
            name: (max if name.endswith("_max") else _mean)([p[name] for p in parts if name in p])
            for name in names
        }
        if len(parts) > 1:
            averages = {
                name: [part[name] for part in parts if name in part] for name in _CORRELATED
            }
            used |= {
                f"{name}_spread": float(np.std(each)) for name, each in averages.items() if each
            }
        self._learn_correlation(job, used)
        self._usage.observe(job, outcome, used)

    def _learn_correlation(self, job: Job, used: Mapping[str, float]) -> None:
        """Compare what was believed at submission with what the tasks have used, each of them."""
        for name, expected in self._expected.pop(job.job_id, {}).items():
            spread = used.get(f"{name}_spread")
            if spread is not None and expected > 0.0:
                self._common[name].learn(expected, used[name], spread, job.tasks)

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Keep what some tasks have used until the job has ended."""
        if outcome.ended_because is EndedBecause.COMPLETED:
            self._parts.setdefault(job.job_id, []).append(outcome.used)


@register("predictor", "actual_usage", parameters=UsageHistoryParameters)
class ActualUsage:
    """An oracle: what each job's tasks really use on average (or at most), and their work."""

    def __init__(self, parameters: UsageHistoryParameters) -> None:
        self._names = _NAMES[parameters.of]
        self.age_parts = parameters.age_parts
        self._real: Mapping[str, Mapping[str, float]] = {}

    def reveal_use(self, used: Mapping[str, Mapping[str, float]]) -> None:
        """Receive what every job uses, by job id and quantity."""
        self._real = used

    def predict(self, job: Job, now: float) -> UsageBelief:  # noqa: ARG002 - the truth stays
        """Points."""
        real = self._real.get(job.job_id, {})
        beliefs: dict[str, Distribution] = {
            each: Point(real[name]) for each, name in self._names.items() if name in real
        }
        points = {name: Point(value) for name, value in real.items()}
        return _belief(job, beliefs, by_age=_by_age(points, self.age_parts))

    def observe(self, job: Job, outcome: Outcome) -> None:
        """There is nothing to learn."""


def _belief(
    job: Job,
    beliefs: Mapping[str, Distribution],
    correlation: Mapping[str, float] = _NONE_KNOWN,
    by_age: Mapping[str, Sequence[Distribution]] = _NOT_BY_AGE,
) -> UsageBelief:
    """With the runtime that follows from work and cpus, or is asked for."""
    cpus = beliefs["cpu"].mean() if "cpu" in beliefs else _mean_of_stages(job)
    if "cpu_time" not in beliefs or cpus is None:
        requested = job.requested_seconds
        limit = Point(DAY_SECONDS if requested is None else requested)
        return UsageBelief(limit, beliefs, correlation, by_age)
    runtime = beliefs["cpu_time"].scaled(1.0 / max(cpus, _LEAST_CPUS))
    return UsageBelief(runtime, beliefs, correlation, by_age)


def _mean_of_stages(job: Job) -> float | None:
    """Cpus that a task of a job asks for on average, where its stages ask for different amounts."""
    if common_request(job) is not None:
        return None
    return math.fsum(each.total.cpus for each in job.stages) / job.tasks


def _by_age(known: Mapping[str, Distribution], parts: int) -> Mapping[str, Sequence[Distribution]]:
    """Beliefs about each part of a task's life, if all of them are known."""
    names = {each: parts_of(each, parts) for each in BY_AGE}
    if parts == 1 or any(name not in known for each in names.values() for name in each):
        return {}
    return {each: tuple(known[name] for name in names[each]) for each in BY_AGE}


def _requested(job: Job) -> dict[str, Distribution]:
    """Of a job whose stages ask for different amounts nothing is told: each has its own request."""
    request = common_request(job)
    if request is None:
        return {}
    return {"cpu": Point(request.cpus), "memory": Point(request.memory_bytes)}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
