"""Evaluates an order expression for one job: a small stack machine, so that any order is compiled.

``foresail.schedulers._expression`` writes the programs. An instruction is two integers: an opcode
and an operand (a field, or an index into the constants).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.columns import SUBMIT
from foresail.kernels.compile import bare_kernel, kernel

CONSTANT: Final = 0
SPEC: Final = 1
SUMMARY: Final = 2
NOW: Final = 3
WAIT: Final = 4
PILOT: Final = 5
ADD: Final = 10
SUBTRACT: Final = 11
MULTIPLY: Final = 12
DIVIDE: Final = 13
POWER: Final = 14
MINIMUM: Final = 15
MAXIMUM: Final = 16
LESS: Final = 17
LESS_EQUAL: Final = 18
NEGATE: Final = 30
LOGARITHM: Final = 31
EXPONENTIAL: Final = 32
SQUARE_ROOT: Final = 33
ABSOLUTE: Final = 34
CHOOSE: Final = 40

STACK_DEPTH: Final = 16


class Program(NamedTuple):
    """A compiled expression.

    Parameters
    ----------
    code
        Pairs of opcode and operand, int64.
    constants
        The numbers in the expression.
    changes_with_time
        Whether the value for a waiting job may change from one pass to the next.
    follows_pilots
        Whether the value depends on which other jobs wait and run.
    """

    code: NDArray[np.int64]
    constants: NDArray[np.float64]
    changes_with_time: bool
    follows_pilots: bool


@bare_kernel
def evaluate(
    program: NDArray[np.int64],
    constants: NDArray[np.float64],
    slot: int,
    now: float,
    specs: NDArray[np.float64],
    summaries: NDArray[np.float64],
    pilots: NDArray[np.float64],
    stack: NDArray[np.float64],
) -> float:
    """Value of a program for the job in ``slot`` at time ``now``.

    ``pilots`` holds how many waiting jobs each would inform; ``stack`` is a workspace of
    ``STACK_DEPTH``. A result that is not a number becomes infinite, so
    that such jobs come last.
    """
    top = -1
    for i in range(0, program.shape[0], 2):
        code = program[i]
        operand = program[i + 1]
        if code < ADD:
            top += 1
            if code == CONSTANT:
                stack[top] = constants[operand]
            elif code == SPEC:
                stack[top] = specs[slot, operand]
            elif code == SUMMARY:
                stack[top] = summaries[slot, operand]
            elif code == NOW:
                stack[top] = now
            elif code == PILOT:
                stack[top] = pilots[slot]
            else:
                stack[top] = now - specs[slot, SUBMIT]
        elif code < NEGATE:
            top -= 1
            stack[top] = _binary(code, stack[top], stack[top + 1])
        elif code < CHOOSE:
            stack[top] = _unary(code, stack[top])
        else:
            top -= 2
            stack[top] = stack[top + 1] if stack[top] != 0.0 else stack[top + 2]
    return math.inf if math.isnan(stack[0]) else stack[0]


@bare_kernel
def _binary(code: int, left: float, right: float) -> float:
    if code == ADD:
        return left + right
    if code == SUBTRACT:
        return left - right
    if code == MULTIPLY:
        return left * right
    if code == DIVIDE:
        return left / right
    if code == POWER:
        return math.pow(left, right)
    if code == MINIMUM:
        return min(left, right)
    if code == MAXIMUM:
        return max(left, right)
    if code == LESS:
        return 1.0 if left < right else 0.0
    return 1.0 if left <= right else 0.0


@bare_kernel
def _unary(code: int, value: float) -> float:
    if code == NEGATE:
        return -value
    if code == LOGARITHM:
        return math.log(value) if value > 0.0 else -math.inf
    if code == EXPONENTIAL:
        return math.exp(value)
    if code == SQUARE_ROOT:
        return math.sqrt(value)
    return abs(value)


@kernel
def evaluate_all(
    program: NDArray[np.int64],
    constants: NDArray[np.float64],
    slots: NDArray[np.int64],
    now: float,
    specs: NDArray[np.float64],
    summaries: NDArray[np.float64],
    pilots: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Values for several jobs: shape of ``slots``."""
    stack = np.empty(STACK_DEPTH)
    values = np.empty(slots.shape[0])
    for i in range(slots.shape[0]):
        values[i] = evaluate(program, constants, slots[i], now, specs, summaries, pilots, stack)
    return values
