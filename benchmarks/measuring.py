"""One measurement, the table of workloads, and timing that a busy machine disturbs least."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """What something took, and what its reference took in the same run (seconds).

    ``count`` jobs, rows or events, each a ``unit``, were handled by both.
    """

    name: str
    seconds: float
    reference: str
    reference_seconds: float
    count: int
    unit: str

    @property
    def ratio(self) -> float:
        """Seconds per second of the reference."""
        return self.seconds / self.reference_seconds

    @property
    def unit_microseconds(self) -> float:
        """Microseconds for each of the ``count``."""
        return 1e6 * self.seconds / self.count


Workload = Callable[[], Iterator[Measurement]]
_WORKLOADS: dict[str, Workload] = {}


def benchmark(name: str) -> Callable[[Workload], Workload]:
    """Enter a workload under a name; its measurements' names begin with it."""

    def enter(workload: Workload) -> Workload:
        _WORKLOADS[name] = workload
        return workload

    return enter


def workloads() -> dict[str, Workload]:
    """All workloads by name: one file each in ``benchmarks.workloads``."""
    package = importlib.import_module("benchmarks.workloads")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_WORKLOADS.items()))


def best_in_turns(
    budget_seconds: float,
    *functions: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The least seconds that each function took, called in turns until the budget is spent.

    Every function is called once before, uncounted, for compilation and caches; then at least
    twice. By ``time.process_time`` as ``clock`` other work on the machine counts little.
    """
    for function in functions:
        function()
    best = [float("inf")] * len(functions)
    begin = time.perf_counter()
    rounds = 0
    while rounds < 2 or time.perf_counter() - begin < budget_seconds:
        for i, function in enumerate(functions):
            before = clock()
            function()
            best[i] = min(best[i], clock() - before)
        rounds += 1
    return best
