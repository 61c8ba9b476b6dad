"""What jobs will use, as schedulers that pack by use are told it: from history, or in truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Literal

from foresail.distributions.point import Point
from foresail.distributions.usage_belief import UsageBelief
from foresail.model.distribution import Distribution
from foresail.model.job import Job
from foresail.model.outcome import EndedBecause, Outcome
from foresail.model.registry import register
from foresail.predictors.history import HistoryParameters
from foresail.predictors.stepped import DAY_SECONDS
from foresail.predictors.usage import UsagePredictor, common_request

_LEAST_CPUS: Final = 1e-6
_NAMES: Final = {
    "average": {"cpu": "cpu", "memory": "memory", "cpu_time": "cpu_time"},
    "maximum": {"cpu": "cpu_max", "memory": "memory_max", "cpu_time": "cpu_time"},
}
"""Of quantities by what is believed of them."""


@dataclass(frozen=True, slots=True)
class UsageHistoryParameters(HistoryParameters):
    """Parameters of ``usage``: those of ``history`` and three more."""

    of: Literal["average", "maximum"] = "average"
    """Of cpu and memory, the average over tasks and time, or the maximum."""
    point: bool = False
    """Tell the winning estimates alone, not their histories."""
    resources: Literal["predicted", "requested"] = "predicted"
    """``requested``: of cpu and memory, tell what was asked for; the work is predicted."""


@register("predictor", "usage", parameters=UsageHistoryParameters)
class UsageHistory:
    """DSPredict: cpu, memory and work of a job's tasks from histories; the runtime follows."""

    def __init__(self, parameters: UsageHistoryParameters) -> None:
        told = {each.name: getattr(parameters, each.name) for each in fields(HistoryParameters)}
        self._names: Mapping[str, str] = _NAMES[parameters.of]
        self._requested = parameters.resources == "requested"
        names = ("cpu_time",) if self._requested else tuple(self._names.values())
        point_only = int(parameters.point or self._requested)
        self._usage = UsagePredictor(HistoryParameters(**told), names, point_only=point_only)
        self._parts: dict[str, list[Mapping[str, float]]] = {}

    def predict(self, job: Job, now: float) -> UsageBelief:
        """Belief about the runtime, and about what each task uses."""
        known = self._usage.predict(job, now)
        beliefs = {each: known[name] for each, name in self._names.items() if name in known}
        if self._requested:
            beliefs |= _requested(job)
        return _belief(job, beliefs)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """Learn what was used by an attempt that ended, or by the parts of its job."""
        parts = self._parts.pop(job.job_id, [outcome.used])
        names = {name for part in parts for name in part}
        used = {
            name: (max if name.endswith("_max") else _mean)([p[name] for p in parts if name in p])
            for name in names
        }
        self._usage.observe(job, outcome, used)

    def part_ended(self, job: Job, outcome: Outcome) -> None:
        """Keep what some tasks have used until the job has ended."""
        if outcome.ended_because is EndedBecause.COMPLETED:
            self._parts.setdefault(job.job_id, []).append(outcome.used)


@register("predictor", "actual_usage", parameters=UsageHistoryParameters)
class ActualUsage:
    """An oracle: what each job's tasks really use on average (or at most), and their work."""

    def __init__(self, parameters: UsageHistoryParameters) -> None:
        self._names = _NAMES[parameters.of]
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
        return _belief(job, beliefs)

    def observe(self, job: Job, outcome: Outcome) -> None:
        """There is nothing to learn."""


def _belief(job: Job, beliefs: Mapping[str, Distribution]) -> UsageBelief:
    """With the runtime that follows from work and cpus, or is asked for."""
    cpus = beliefs["cpu"].mean() if "cpu" in beliefs else _mean_of_stages(job)
    if "cpu_time" not in beliefs or cpus is None:
        requested = job.requested_seconds
        limit = Point(DAY_SECONDS if requested is None else requested)
        return UsageBelief(limit, beliefs)
    runtime = beliefs["cpu_time"].scaled(1.0 / max(cpus, _LEAST_CPUS))
    return UsageBelief(runtime, beliefs)


def _mean_of_stages(job: Job) -> float | None:
    """Cpus that a task of a job asks for on average, where its stages ask for different amounts."""
    if common_request(job) is not None:
        return None
    return math.fsum(each.total.cpus for each in job.stages) / job.tasks


def _requested(job: Job) -> dict[str, Distribution]:
    """Of a job whose stages ask for different amounts nothing is told: each has its own request."""
    request = common_request(job)
    if request is None:
        return {}
    return {"cpu": Point(request.cpus), "memory": Point(request.memory_bytes)}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
