"""Columns whose text may hold the delimiter or line ends without quotes, as Slurm writes names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MOST_LINES: Final = 50
"""Of one record."""


def quoted(text: bytes, names: Sequence[str], free: Sequence[str], delimiter: str) -> bytes:
    """The text of a table without its header, with quotes around such fields where they are needed.

    A record with fields to spare has as many in each of the ``free`` columns (the command that
    submitted a job holds its name again); one that lacks some goes on in lines that do, too, and
    one whose last column is free in lines without any delimiter. Where that does not come out even,
    lines stay as they are.
    """
    columns = [at for at, name in enumerate(names) if name in free]
    between, most = delimiter.encode(), len(names) - 1
    lines = text.split(b"\n")
    if not columns or all(not line or line.count(between) == most for line in lines):
        return text
    whole: list[bytes] = []
    at = 0
    while at < len(lines):
        end, record = at + 1, lines[at]
        while end < min(len(lines), at + _MOST_LINES) and lines[end].count(between) < most:
            is_last = len(names) - 1 in columns and lines[end] and between not in lines[end]
            if record.count(between) >= most and not is_last:
                break
            record, end = record + b"\n" + lines[end], end + 1
        fields = record.split(between)
        surplus = len(fields) - len(names)
        is_whole = surplus == 0 and end == at + 1
        if is_whole or surplus < 0 or surplus % len(columns) or b'"' in record:
            whole.append(lines[at])
            at += 1
            continue
        for column in columns:
            apart = slice(column, column + surplus // len(columns) + 1)
            fields[apart] = [between.join(fields[apart])]
        is_split = (b"\n" in field or between in field for field in fields)
        marks = (b'"' if split else b"" for split in is_split)
        whole.append(
            between.join(
                b"%b%b%b" % (mark, field, mark) for mark, field in zip(marks, fields, strict=True)
            )
        )
        at = end
    return b"\n".join(whole)
