"""Delimited text (CSV) in chunks of strings, with line numbers; and strings turned to numbers."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from foresail.kernels.delimited_text import Records, last_record_end, split_records
from foresail.model.errors import InputError
from foresail.traces.nearest import nearest
from foresail.traces.reading import LINE, Notes
from foresail.traces.source import Source

_QUOTE = ord('"')
_LONGEST_RECORD_BYTES = 64 << 20


def read_delimited(
    source: Source,
    notes: Notes,
    columns: Sequence[str],
    delimiter: str = ",",
    header: Sequence[str] = (),
) -> Iterator[pl.DataFrame]:
    """Some columns of a table with a header line, as strings (empty: null), and ``LINE``.

    ``header`` names the columns of a table without such a line. Records with another number of
    fields than the header are dropped and counted. At least one (possibly empty) chunk comes.

    Raises
    ------
    InputError
        If a column is absent (the nearest name is offered), a name is used twice, or a record is
        not closed; when strict, if anything had to be repaired.
    """
    names = list(header)
    line = 1
    for text in _whole_records(source):
        block = np.frombuffer(text, dtype=np.uint8)
        records = split_records(block, ord(delimiter), _QUOTE)
        if not names and records.starts.size:
            names = _header(text[: records.ends[0]], delimiter)
            _demand_columns(names, columns, notes)
            records = Records(*(part[1:] for part in records))
        if names:
            yield _chunk(text, records, names, columns, delimiter, line, notes)
        line += text.count(b"\n")
    if not names:
        raise InputError("holds no header line", source=source.path)
    if source.path == notes.path:
        notes.sha256 = source.sha256


def _whole_records(source: Source) -> Iterator[bytes]:
    rest = b""
    for block in source.blocks():
        rest += block
        end = last_record_end(np.frombuffer(rest, dtype=np.uint8), _QUOTE)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > _LONGEST_RECORD_BYTES:
            raise InputError("a record without end", source=source.path, expected="lines of text")
    if rest:
        yield rest


def _header(text: bytes, delimiter: str) -> list[str]:
    line = text.decode("utf-8-sig", errors="replace").lstrip("\n\r ")
    return [name.strip().strip('"') for name in line.split(delimiter)]


def _demand_columns(names: list[str], columns: Sequence[str], notes: Notes) -> None:
    for name in columns:
        if name not in names:
            raise InputError(
                "no such column",
                source=notes.path,
                field=name,
                expected=nearest(name, names),
            )
        if names.count(name) > 1:
            raise InputError("two columns of the same name", source=notes.path, field=name)


def _chunk(
    text: bytes,
    records: Records,
    names: list[str],
    columns: Sequence[str],
    delimiter: str,
    line: int,
    notes: Notes,
) -> pl.DataFrame:
    good = records.fields == len(names)
    if not good.all():
        row = int(good.argmin())
        notes.repair(
            "dropped_malformed_line",
            int((~good).sum()),
            line=line + int(records.lines[row]),
            value=f"{records.fields[row]} fields",
            expected=f"{len(names)} fields",
        )
    slices = zip(records.starts[good].tolist(), records.ends[good].tolist(), strict=True)
    clean = b"\n".join(text[start:end] for start, end in slices)
    schema = {str(at): pl.String() for at in range(len(names))}
    if clean:
        table = pl.read_csv(
            io.BytesIO(_decodable(clean, notes)),
            has_header=False,
            separator=delimiter,
            schema=schema,
            columns=sorted({names.index(name) for name in columns}),
            quote_char='"',
        )
    else:
        table = pl.DataFrame(schema=schema)
    chosen = [pl.col(str(names.index(name))).str.strip_chars().alias(name) for name in columns]
    lines = pl.Series(LINE, records.lines[good] + line)
    empty_is_null = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in columns]
    return table.select(chosen).with_columns(empty_is_null).with_columns(lines)


def _decodable(text: bytes, notes: Notes) -> bytes:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = text[max(0, error.start - 20) : error.end + 20]
        notes.repair("replaced_undecodable_text", value=shown, expected="UTF-8 text")
        return text.decode("utf-8", errors="replace").encode()
    return text


def with_numbers(
    chunk: pl.DataFrame,
    columns: Sequence[str],
    notes: Notes,
    *,
    required: Sequence[str] = (),
    said: str | None = None,
) -> pl.DataFrame:
    """The chunk with some string columns turned to floats.

    Rows where one is not a finite number, or where a required one is null, are dropped and counted.
    ``said`` is what errors call the column, if that is not its name.

    Raises
    ------
    InputError
        When strict and there are such rows.
    """
    for column in columns:
        text = chunk[column]
        number = text.cast(pl.Float64, strict=False)
        wrong = text.is_not_null() & ~number.is_finite().fill_null(value=False)
        if column in required:
            wrong |= text.is_null()
        chunk = chunk.with_columns(number)
        if wrong.any():
            row = wrong.arg_max() or 0
            notes.repair(
                "dropped_malformed_line",
                int(wrong.sum()),
                line=chunk[LINE][row],
                field=said or column,
                value=text[row],
                expected="a number",
            )
            chunk = chunk.filter(~wrong)
    return chunk
