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

    ``replaced`` are the resources that are believed to be used as they were seen.
    """

    until: float
    latest: tuple[float, float]
    seconds: tuple[dict[float, float], dict[float, float]] = field(default_factory=lambda: ({}, {}))
    replaced: set[int] = field(default_factory=set)


class ObservedUse:
    """What was measured of what runs: each amount counts for as long as it was seen."""

    def __init__(self) -> None:
        self._seen: dict[Allocation, _Seen] = {}

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
        amounts = (measured.cpus, measured.memory_bytes)
        seen = self._seen.get(allocation)
        if seen is None:
            self._seen[allocation] = _Seen(now, amounts)
            return None
        other: TaskUse | None = None
        for resource, latest in enumerate(seen.latest):
            seconds = seen.seconds[resource]
            seconds[latest] = seconds.get(latest, 0.0) + (now - seen.until)
            most = believed.row[kernel.TASK_LEAST + resource]
            most += believed.row[kernel.TASK_HIGHEST + resource] * steps[resource]
            is_above = min(min(seconds), amounts[resource]) > most
            if seconds[latest] > 0.0 and (is_above or resource in seen.replaced):
                seen.replaced.add(resource)
                if other is None:
                    other = TaskUse(believed.row.copy(), believed.masses.copy())
                believe(other, resource, Empirical(list(seconds), list(seconds.values())), steps)
        seen.until, seen.latest = now, amounts
        return other

    def forget(self, allocation: Allocation) -> None:
        """It runs no more."""
        self._seen.pop(allocation, None)
