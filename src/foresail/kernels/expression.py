"""Evaluates an order expression for one job: a small stack machine, so that any order is compiled.

``schedulers.order_expression`` writes the programs. An instruction is two numbers: an opcode
and an operand (a field's column, or a constant).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from foresail.kernels.columns import SUBMIT
from foresail.kernels.compile import Floats, bare_kernel, part

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


class OrderProgram(NamedTuple):
    """A compiled expression."""

    code: Floats
    """Pairs of opcode and operand: a field's column, or the number itself of a constant."""
    changes_with_time: bool
    """True if the value for a waiting job may change from one pass to the next."""
    follows_probes: bool
    """True if the value depends on which other jobs wait and run."""


def summary_column(program: OrderProgram) -> int | None:
    """The column of summaries that is all there is to an expression; None if there is more."""
    code = program.code
    return int(code[1]) if code.size == 2 and code[0] == SUMMARY else None


@part
def evaluate(
    code: Floats, stack: Floats, spec: Floats, summary: Floats, now: float, informed: float
) -> float:
    """Value of a program for the job with these rows at time ``now``.

    ``informed`` is how many waiting jobs it would inform; ``stack`` is a workspace of
    ``STACK_DEPTH``. A result that is not a number becomes infinite, so that such jobs come last.
    """
    top = -1
    for i in range(0, code.shape[0], 2):
        what = int(code[i])
        operand = code[i + 1]
        # Codes ascend by how many operands they take: none, two, one, three.
        if what < ADD:
            top += 1
            if what == SPEC:
                stack[top] = spec[int(operand)]
            elif what == SUMMARY:
                stack[top] = summary[int(operand)]
            elif what == CONSTANT:
                stack[top] = operand
            elif what == NOW:
                stack[top] = now
            elif what == PILOT:
                stack[top] = informed
            else:
                stack[top] = now - spec[SUBMIT]
        elif what < NEGATE:
            top -= 1
            stack[top] = _binary(what, stack[top], stack[top + 1])
        elif what < CHOOSE:
            stack[top] = _unary(what, stack[top])
        else:
            top -= 2
            stack[top] = stack[top + 1] if stack[top] != 0.0 else stack[top + 2]
    return math.inf if math.isnan(stack[0]) else stack[0]


@part
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


@part
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


@bare_kernel
def value_of(
    code: Floats, stack: Floats, spec: Floats, summary: Floats, now: float, informed: float
) -> float:
    """Evaluate like ``evaluate``, to be called from Python."""
    return evaluate(code, stack, spec, summary, now, informed)
