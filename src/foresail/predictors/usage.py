"""DSPredict: what a job will use of cpu and memory, each quantity by the best of its experts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from foresail.distributions.point import Point
from foresail.model.distribution import Distribution
from foresail.model.errors import UnknownNameError
from foresail.model.job import Job
from foresail.model.outcome import Outcome
from foresail.model.resources import Resources
from foresail.predictors.history import HistoryParameters, HistoryPredictor

QUANTITIES: Final = ("cpu", "memory", "cpu_time", "memory_time", "cpu_max", "memory_max")
"""Per task: average cores and memory, their sums over time, and the most of any task and period
(``foresail.traces.measured`` reads them from logs)."""

_CPU: Final = ("cpu", "cpu_max")
_MEMORY: Final = ("memory", "memory_max")


class UsagePredictor:
    """3Sigma's predictor once per quantity: each has its own histories, scores and winner.

    Source: spec 3sigma-distsched section 3.3.

    Parameters
    ----------
    parameters
        As for the predictor ``history``; ``unknown_seconds`` has no meaning here.
    quantities
        Some of ``QUANTITIES``.
    point_only
        1 to believe the winning estimate alone, 0 to believe the winner's whole history.

    Raises
    ------
    UnknownNameError
        If there is no such quantity.
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
    """What every task asks for; None if those of its stages ask for different amounts."""
    request = job.stages[0].request
    return request if all(each.request == request for each in job.stages[1:]) else None


def _requested(job: Job, quantity: str) -> Point | None:
    """What was asked for per task, if that says anything of all of them."""
    request = common_request(job)
    if request is None:
        return None
    if quantity in _CPU and request.cpus > 0.0:
        return Point(request.cpus)
    if quantity in _MEMORY and request.memory_bytes > 0.0:
        return Point(request.memory_bytes)
    return None
