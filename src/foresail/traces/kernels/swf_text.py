"""Numbers out of the text of a Standard Workload Format log, a block of lines at a time."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel, part

FIELDS: Final = 18
"""Numeric fields of a line; what follows them is kept as text."""

# What a line turned out to be.
GOOD: Final = 0
TOO_FEW_FIELDS: Final = 1
NOT_A_NUMBER: Final = 2

_EXACT_DIGITS = 15
_EXACT_POWER = 22
_POWERS_OF_TEN = 10.0 ** np.arange(_EXACT_POWER + 1)


@bare_kernel
def count_lines(text: NDArray[np.uint8]) -> int:
    """Lines in ``text`` (uint8), the last of which need not end in a newline."""
    lines = 0
    for at in range(text.size):
        lines += text[at] == 10
    if text.size and text[-1] != 10:
        lines += 1
    return lines


@part
def _is_blank(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@part
def _number(text: NDArray[np.uint8], start: int, end: int) -> tuple[float, int]:
    """Value of ``text[start:end]`` and 0; or 1 where it needs a slower parser, 2 where it is none.

    Accepted: sign, digits with at most one point among or around them, optional exponent. Up to 15
    digits and 22 decimals the quotient of two exact doubles is correctly rounded.
    """
    at = start
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    mantissa = 0
    digits = 0
    decimals = 0
    point = False
    while at < end:
        byte = text[at]
        if 48 <= byte <= 57:
            if digits < 18:
                mantissa = mantissa * 10 + (byte - 48)
            digits += 1
            decimals += point
        elif byte == 46 and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0:
        return 0.0, 2
    if at < end:
        if text[at] != 101 and text[at] != 69:
            return 0.0, 2
        at += 1
        if at < end and (text[at] == 45 or text[at] == 43):
            at += 1
        if at == end:
            return 0.0, 2
        while at < end:
            if not 48 <= text[at] <= 57:
                return 0.0, 2
            at += 1
        return 0.0, 1
    if digits > _EXACT_DIGITS or decimals > _EXACT_POWER:
        return 0.0, 1
    value = mantissa / _POWERS_OF_TEN[decimals]
    return (-value if negative else value), 0


@bare_kernel
def parse_lines(
    text: NDArray[np.uint8],
    values: NDArray[np.float64],
    lines: NDArray[np.int64],
    kinds: NDArray[np.int64],
    details: NDArray[np.int64],
    rest: NDArray[np.int64],
    comments: NDArray[np.int64],
    slow: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Parse whole lines of an SWF log.

    Parameters
    ----------
    text
        The lines, uint8.
    values
        Filled with the numeric fields: shape (FIELDS, lines), a column per job line.
    lines
        Filled with the zero-based number of the line within ``text``, per job line.
    kinds
        Filled with GOOD, TOO_FEW_FIELDS or NOT_A_NUMBER, per job line.
    details
        Filled with the number of fields found, or the index of the field that is no number.
    rest
        Filled with start and end of the text beyond the last field, shape (lines, 2); empty: equal.
    comments
        Filled with start and end of each comment line, shape (lines, 2).
    slow
        Filled with (job line, field, start, end) of numbers left to a slower parser; shape
        (lines x FIELDS, 4), which has room for all.

    Returns
    -------
    Number of job lines, of comment lines and of slow numbers.
    """
    jobs = 0
    remarks = 0
    slows = 0
    line = -1
    at = 0
    size = text.size
    while at < size:
        line += 1
        while at < size and text[at] != 10 and _is_blank(text[at]):
            at += 1
        if at == size:
            break
        if text[at] == 10:
            at += 1
            continue
        if text[at] == 59:
            comments[remarks, 0] = at
            while at < size and text[at] != 10:
                at += 1
            comments[remarks, 1] = at
            remarks += 1
            at += 1
            continue
        kind = GOOD
        field = 0
        detail = 0
        first_slow = slows
        while field < FIELDS and at < size and text[at] != 10:
            start = at
            while at < size and not _is_blank(text[at]):
                at += 1
            if kind == GOOD:
                value, outcome = _number(text, start, at)
                values[field, jobs] = value
                if outcome == 1:
                    slow[slows, 0] = jobs
                    slow[slows, 1] = field
                    slow[slows, 2] = start
                    slow[slows, 3] = at
                    slows += 1
                elif outcome == 2:
                    kind = NOT_A_NUMBER
                    detail = field
            field += 1
            while at < size and text[at] != 10 and _is_blank(text[at]):
                at += 1
        start = at
        end = at
        while at < size and text[at] != 10:
            if not _is_blank(text[at]):
                end = at + 1
            at += 1
        at += 1
        if field < FIELDS:
            kind = TOO_FEW_FIELDS
            detail = field
        if kind != GOOD:
            slows = first_slow
            for index in range(FIELDS):
                values[index, jobs] = -1.0
        lines[jobs] = line
        kinds[jobs] = kind
        details[jobs] = detail
        rest[jobs, 0] = start
        rest[jobs, 1] = end
        jobs += 1
    return jobs, remarks, slows


class Block(NamedTuple):
    """What ``parse_lines`` found, cut to the number of job lines, comments and slow numbers."""

    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    kinds: NDArray[np.int64]
    details: NDArray[np.int64]
    rest: NDArray[np.int64]
    comments: NDArray[np.int64]
    slow: NDArray[np.int64]


def parse_block(text: NDArray[np.uint8]) -> tuple[Block, int]:
    """Parse whole lines of an SWF log: the findings, and the number of lines in ``text``."""
    lines = count_lines(text)
    block = Block(
        values=np.empty((FIELDS, lines)),
        lines=np.empty(lines, dtype=np.int64),
        kinds=np.empty(lines, dtype=np.int64),
        details=np.empty(lines, dtype=np.int64),
        rest=np.empty((lines, 2), dtype=np.int64),
        comments=np.empty((lines, 2), dtype=np.int64),
        slow=np.empty((lines * FIELDS, 4), dtype=np.int64),
    )
    jobs, comments, slow = parse_lines(text, *block)
    return Block(
        block.values[:, :jobs],
        block.lines[:jobs],
        block.kinds[:jobs],
        block.details[:jobs],
        block.rest[:jobs],
        block.comments[:comments],
        block.slow[:slow],
    ), lines
