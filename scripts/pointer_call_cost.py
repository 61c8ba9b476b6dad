"""Print what one call of a compiled step through a function pointer costs.

.venv/bin/python scripts/pointer_call_cost.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
from numba import types

STEP = types.float64(types.float64, types.int64)
CALLS = 50_000_000


@numba.njit(STEP)
def step(value: float, number: int) -> float:
    """One cheap step."""
    return value * 0.5 + number


@numba.njit
def direct(calls: int) -> float:
    """The step known at compilation, so that it can be put in line."""
    value = 0.0
    for number in range(calls):
        value = step(value, number)
    return value


@numba.njit(types.float64(types.FunctionType(STEP), types.int64))
def through_pointer(called: Callable[[float, int], float], calls: int) -> float:
    """The step handed in as a pointer."""
    value = 0.0
    for number in range(calls):
        value = called(value, number)
    return value


def nanoseconds(run: Callable[[], float]) -> float:
    """Best of three, per call."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times) / CALLS * 1e9


def main() -> None:
    """Print both costs."""
    direct(1)
    print(f"in line: {nanoseconds(lambda: direct(CALLS)):.1f} ns a call")
    print(f"through a pointer: {nanoseconds(lambda: through_pointer(step, CALLS)):.1f} ns a call")


if __name__ == "__main__":
    main()
