"""Print what one call of a compiled step by its address costs.

.venv/bin/python scripts/step_call_cost.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba
import numpy as np

from foresail.kernels.compile import bare_step
from foresail.kernels.steps import (
    CORRECTION_STEP,
    CorrectionInputs,
    call_correction_step,
    step_address,
)

CALLS = 50_000_000
NOTHING = np.zeros(1)


@bare_step(CORRECTION_STEP)
def step(inputs: CorrectionInputs) -> float:
    """One cheap step."""
    return inputs.current * 0.5 + inputs.corrections


in_line_step = step.dispatcher


@numba.njit(_nrt=False)
def direct(nothing: np.ndarray, calls: int) -> float:
    """The step known at compilation, so that it can be put in line."""
    value = 0.0
    for number in range(calls):
        value = in_line_step(CorrectionInputs(0.0, value, 0.0, number, nothing, nothing))
    return value


@numba.njit(_nrt=False)
def by_address(address: float, nothing: np.ndarray, calls: int) -> float:
    """The step handed in as an address."""
    value = 0.0
    for number in range(calls):
        inputs = CorrectionInputs(0.0, value, 0.0, number, nothing, nothing)
        value = call_correction_step(address, inputs)
    return value


def nanoseconds(run: Callable[[int], float]) -> float:
    """Best of three, per call."""
    run(1)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        run(CALLS)
        times.append(time.perf_counter() - began)
    return min(times) / CALLS * 1e9


def main() -> None:
    """Print both costs."""
    address = step_address(step)
    in_line = nanoseconds(lambda calls: direct(NOTHING, calls))
    called = nanoseconds(lambda calls: by_address(address, NOTHING, calls))
    print(f"in line: {in_line:.1f} ns a call")
    print(f"by address: {called:.1f} ns a call")


if __name__ == "__main__":
    main()
