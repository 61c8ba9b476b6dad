"""What tasks were seen to use, in place of a belief that was too low (paper 000, section 5.3.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foresail.distributions.empirical import Empirical
from foresail.model.allocation import Allocation
from foresail.model.resources import Resources
from foresail.schedulers._packing.task_use import TaskUse, believe
from foresail.schedulers.kernels import packing as kernel


@dataclass(slots=True)
class _Seen:
    """How long an allocation was seen to use each amount, of each resource, until a time.

    ``least`` are the smallest amounts. ``replaced`` are the resources that are believed to be used
    as they were seen; ``settled`` those of which that can never be so any more.
    """

    until: float
    latest: tuple[float, float]
    least: list[float]
    seconds: tuple[dict[float, float], dict[float, float]] = field(default_factory=lambda: ({}, {}))
    replaced: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)


class ObservedUse:
    """What was measured of what runs: each amount counts for as long as it was seen.

    Most tasks have once used no more than was believed possible. Of them nothing is kept.
    """

    def __init__(self) -> None:
        self._seen: dict[Allocation, _Seen] = {}
        self._settled: set[Allocation] = set()

    def instead(
        self,
        allocation: Allocation,
        measured: Resources,
        now: float,
        believed: TaskUse,
        steps: NDArray[np.float64],
    ) -> TaskUse | None:
        """Note a measurement; what is to be believed instead, if that is not as before.

        A resource of which the task has always used more than its belief holds possible is believed
        to be used as it was seen: amounts by the time for which they were.
        """
        if allocation in self._settled:
            return None
        amounts = (measured.cpus, measured.memory_bytes)
        seen = self._seen.get(allocation)
        if seen is None:
            self._seen[allocation] = _Seen(now, amounts, list(amounts))
            return None
        lasted = now - seen.until
        other: TaskUse | None = None
        for resource, latest in enumerate(seen.latest):
            if resource in seen.settled:
                continue
            seen.least[resource] = min(seen.least[resource], amounts[resource])
            if lasted <= 0.0:
                continue
            seconds = seen.seconds[resource]
            seconds[latest] = seconds.get(latest, 0.0) + lasted
            if resource not in seen.replaced:
                most = believed.row[kernel.TASK_LEAST + resource]
                most += believed.row[kernel.TASK_HIGHEST + resource] * steps[resource]
                if seen.least[resource] <= most:
                    seen.settled.add(resource)
                    seconds.clear()
                    continue
                seen.replaced.add(resource)
            elif len(seconds) == 1:
                continue  # as was believed last time
            if other is None:
                other = TaskUse(believed.row.copy(), believed.masses.copy())
            believe(other, resource, Empirical(list(seconds), list(seconds.values())), steps)
        seen.until, seen.latest = now, amounts
        if len(seen.settled) == kernel.RESOURCES:
            del self._seen[allocation]
            self._settled.add(allocation)
        return other

    def forget(self, allocation: Allocation) -> None:
        """It runs no more."""
        self._seen.pop(allocation, None)
        self._settled.discard(allocation)
