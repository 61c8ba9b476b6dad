"""Where the records of a delimited text (CSV, TSV) begin and end, and how many fields they have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel


class Records(NamedTuple):
    """One entry per record that is not blank.

    ``starts`` and ``ends`` (without the line end) are offsets into the text, ``lines`` zero-based
    numbers of the line a record begins on, ``fields`` how many fields it has.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    lines: NDArray[np.int64]
    fields: NDArray[np.int64]


@bare_kernel
def last_record_end(text: NDArray[np.uint8], quote: int) -> int:
    """Offset just after the last newline that is not inside quotes; 0 where there is none."""
    quoted = False
    end = 0
    for at in range(text.size):
        if text[at] == quote:
            quoted = not quoted
        elif text[at] == 10 and not quoted:
            end = at + 1
    return end


@bare_kernel
def _split(
    text: NDArray[np.uint8],
    delimiter: int,
    quote: int,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    lines: NDArray[np.int64],
    fields: NDArray[np.int64],
) -> int:
    records = 0
    line = 0
    first_line = 0
    start = 0
    count = 1
    quoted = False
    for at in range(text.size + 1):
        last = at == text.size
        byte = 10 if last else text[at]
        if byte == quote:
            quoted = not quoted
        if byte == delimiter and not quoted:
            count += 1
        if byte != 10:
            continue
        if not quoted or last:
            end = at
            while end > start and (text[end - 1] == 13 or text[end - 1] == 32):
                end -= 1
            if end > start:
                starts[records] = start
                ends[records] = end
                lines[records] = first_line
                fields[records] = count
                records += 1
            start = at + 1
            first_line = line + 1
            count = 1
            quoted = False
        line += 1
    return records


def split_records(text: NDArray[np.uint8], delimiter: int, quote: int) -> Records:
    """The records of ``text`` (uint8); ``delimiter`` and ``quote`` are byte values."""
    most = int(np.count_nonzero(text == 10)) + 1
    arrays = [np.empty(most, dtype=np.int64) for _ in range(4)]
    records = _split(text, delimiter, quote, *arrays)
    return Records(*(array[:records] for array in arrays))
