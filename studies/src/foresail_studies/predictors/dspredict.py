"""Use of jobs as schedulers that pack by use believe it: by DSPredict, or in truth.

DSPredict takes each quantity by the best of its experts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from foresail.distributions.basic import Point
from foresail.model.cluster import Resources
from foresail.model.distribution import Distribution
from foresail.model.errors import UnknownNameError
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import register
from foresail.predictors.history import HistoryParameters, HistoryPredictor
from foresail.predictors.kernels.request import DAY_SECONDS

QUANTITIES: Final = ("cpu", "memory", "cpu_time", "memory_time", "cpu_max", "memory_max")
"""Per task: average cores and memory, their sums over time, and the most of any task and period
(``foresail.traces.measured`` reads them from logs)."""

_CPU: Final = ("cpu", "cpu_max")
_MEMORY: Final = ("memory", "memory_max")


@dataclass(frozen=True, slots=True)
class UsageBelief:
    """The runtime, and per task by name of the quantity: ``cpu``, ``memory``, ``cpu_time``.

    It is a belief about the runtime in all else; what is derived from it is no more than that.
    """

    runtime: Distribution
    per_task: Mapping[str, Distribution] = field(default_factory=dict)

    def mean(self) -> float:
        """Expected runtime."""
        return self.runtime.mean()

    def quantile(self, level: float) -> float:
        """Return the quantile of the runtime."""
        return self.runtime.quantile(level)

    def survival(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the survival function of the runtime."""
        return self.runtime.survival(values)

    def cumulative(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the cumulative distribution of the runtime."""
        return self.runtime.cumulative(values)

    def expectation(self, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        """Return the expectation of a function of the runtime."""
        return self.runtime.expectation(function)

    def given(self, elapsed: float) -> Distribution:
        """The runtime alone."""
        return self.runtime.given(elapsed)

    def scaled(self, factor: float) -> Distribution:
        """The runtime alone."""
        return self.runtime.scaled(factor)

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Runtimes."""
        return self.runtime.sample(random, size)


class UsagePredictor:
    """3Sigma's predictor once per quantity: each has its own histories, scores and winner.

    Source: Park's dissertation, chapter 5.

    Raises ``UnknownNameError`` if there is no such quantity.

    Parameters
    ----------
    parameters
        As for the predictor ``history``; ``unknown_seconds`` has no meaning here.
    quantities
        Some of ``QUANTITIES``.
    point_only
        1 to believe the winning estimate alone, 0 to believe the winner's whole history.
    """

    def __init__(
        self,
        parameters: HistoryParameters | None = None,
        quantities: Iterable[str] = QUANTITIES,
        *,
        point_only: int = 0,
    ) -> None:
        self.histories: dict[str, HistoryPredictor] = {}
        for quantity in quantities:
            if quantity not in QUANTITIES:
                raise UnknownNameError("quantity", quantity, QUANTITIES)
            self.histories[quantity] = HistoryPredictor(
                parameters or HistoryParameters(), point_only=point_only, limited=0
            )

    def predict(self, job: Job, now: float) -> Mapping[str, Distribution]:
        """Beliefs by quantity: history, else the request, else the quantity is left out."""
        beliefs = {}
        for name, history in self.histories.items():
            known = history.known(job, now)
            belief = _requested(job, name) if known is None else known
            if belief is not None:
                beliefs[name] = belief
        return beliefs

    def observe(self, job: Job, outcome: Outcome, usage: Mapping[str, float]) -> None:
        """Learn what an attempt that ended has used; a quantity that is not known is left out."""
        for name, history in self.histories.items():
            history.learn(job, outcome, usage.get(name, math.nan))


def common_request(job: Job) -> Resources | None:
    """Return every task's request; None if those of its stages ask for different amounts."""
    request = job.stages[0].request
    return request if all(each.request == request for each in job.stages[1:]) else None


def _requested(job: Job, quantity: str) -> Point | None:
    """Return the request per task, if that is known of all of them."""
    request = common_request(job)
    if request is None:
        return None
    if quantity in _CPU and request.cpus > 0.0:
        return Point(request.cpus)
    if quantity in _MEMORY and request.memory_bytes > 0.0:
        return Point(request.memory_bytes)
    return None


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
class UsageHistory(Predictor):
    """DSPredict: cpu, memory and work of a job's tasks from histories; the runtime follows."""

    def __init__(self, parameters: UsageHistoryParameters) -> None:
        told = {each.name: getattr(parameters, each.name) for each in fields(HistoryParameters)}
        self._names: Mapping[str, str] = _NAMES[parameters.of]
        self._requested_use = parameters.resources == "requested"
        names = ("cpu_time",) if self._requested_use else tuple(self._names.values())
        point_only = int(parameters.point or self._requested_use)
        self._usage = UsagePredictor(HistoryParameters(**told), names, point_only=point_only)
        self._parts: dict[str, list[Mapping[str, float]]] = {}

    def predict(self, job: Job, now: float) -> UsageBelief:
        """Belief about the runtime, and about what each task uses."""
        known = self._usage.predict(job, now)
        beliefs = {each: known[name] for each, name in self._names.items() if name in known}
        if self._requested_use:
            beliefs |= _requested_use(job)
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
class ActualUsage(Predictor):
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


def _requested_use(job: Job) -> dict[str, Distribution]:
    """Return nothing for a job whose stages ask for different amounts: each has its own request."""
    request = common_request(job)
    if request is None:
        return {}
    return {"cpu": Point(request.cpus), "memory": Point(request.memory_bytes)}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
