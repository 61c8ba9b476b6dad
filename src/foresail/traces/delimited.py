"""Delimited text (CSV) in chunks of strings, with line numbers; and strings turned to numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import ClassVar, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.kernels.compile import bare_kernel
from foresail.model.distribution import Booleans, Integers
from foresail.model.errors import InputError
from foresail.model.registry import Example
from foresail.traces.reading import LINE, Notes, PlainReader, Sample
from foresail.traces.source import LogFile


class Records(NamedTuple):
    """One entry per record that is not blank.

    ``starts`` and ``ends`` (without the line end) are offsets into the text, ``lines`` zero-based
    numbers of the line a record begins on, ``fields`` how many fields it has.
    """

    starts: Integers
    ends: Integers
    lines: Integers
    fields: Integers


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
    starts: Integers,
    ends: Integers,
    lines: Integers,
    fields: Integers,
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
        # A doubled quote opens and closes again: the state is right behind it.
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


_MOST_LINES: Final = 50
"""Lines of one record."""


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


_QUOTE = ord('"')
_FOR_LONGER = "\x1f"
"""Stands for a delimiter of several characters: what ASCII has to separate fields with."""
_LONGEST_RECORD_BYTES = 64 << 20
_SHOWN_BYTES = 80


def read_delimited(
    source: LogFile,
    notes: Notes,
    columns: Sequence[str],
    delimiter: str = ",",
    header: Sequence[str] = (),
    optional: Sequence[str] = (),
    free_text: Sequence[str] = (),
) -> Iterator[pl.DataFrame]:
    """Some columns of a table with a header line, as strings (empty: null), and ``LINE``.

    ``header`` names the columns of a table without such a line; ``optional`` are read where there
    are such columns; ``free_text`` may hold delimiters and line ends without quotes. Records with
    another number of fields than the header are dropped and counted.
    At least one (possibly empty) chunk comes.

    Raises ``InputError`` if a column is absent (the nearest name is offered), a name is used twice,
    or a record is not closed; when strict, if anything had to be repaired.
    """
    names = list(header)
    line = 1
    written, delimiter = delimiter, delimiter if len(delimiter) == 1 else _FOR_LONGER
    for part in _whole_records(source, notes):
        text = (
            part if written == delimiter else part.replace(written.encode(), _FOR_LONGER.encode())
        )
        if free_text and (known := names or _header(text.partition(b"\n")[0], delimiter)):
            text = quoted(text, known, free_text, delimiter)
        block = np.frombuffer(text, dtype=np.uint8)
        records = split_records(block, ord(delimiter), _QUOTE)
        if not names and records.starts.size:
            names = _header(text[: records.ends[0]], delimiter)
            _demand_columns(names, columns, notes)
            columns = [*columns, *(name for name in optional if name in names)]
            records = Records(*(part[1:] for part in records))
        if names:
            yield _chunk(text, records, names, columns, delimiter, line, notes)
        line += text.count(b"\n")
    if not names:
        raise InputError("holds no header line", source=source.path)
    if source.path == notes.path:
        notes.sha256 = source.sha256


def _whole_records(source: LogFile, notes: Notes) -> Iterator[bytes]:
    rest = b""
    line = 1
    for block in source.blocks():
        rest += block
        end = last_record_end(np.frombuffer(rest, dtype=np.uint8), _QUOTE)
        if end:
            yield rest[:end]
            line += rest.count(b"\n", 0, end)
            rest = rest[end:]
        elif len(rest) > _LONGEST_RECORD_BYTES:
            raise InputError("a record without end", source=source.path, expected="lines of text")
    if notes.strict is not False and rest.count(_QUOTE) % 2:
        last = rest.rindex(_QUOTE)
        begin = rest.rfind(b"\n", 0, last) + 1
        raise InputError(
            "a quote is not closed, so that all that follows is in it",
            source=source.path,
            line=line + rest.count(b"\n", 0, last),
            value=rest[begin : begin + _SHOWN_BYTES].partition(b"\n")[0],
            expected="quotes in pairs, or --lenient to do without these lines",
        )
    if rest:
        yield rest


def _header(text: bytes, delimiter: str) -> list[str]:
    line = text.decode("utf-8-sig", errors="replace").lstrip("\n\r ")
    return [name.strip().strip('"') for name in line.split(delimiter)]


def _demand_columns(names: list[str], columns: Sequence[str], notes: Notes) -> None:
    for name in columns:
        if name not in names:
            raise InputError(
                "no such column", source=notes.path, field=name, expected=nearest(name, names)
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
        bad = _pieces(text, records, ~good, delimiter)
        lost = [1 + piece.rstrip().count(b"\n") for piece in bad]
        of_many = f" in {lost[0]:,} lines" if lost[0] > 1 else ""  # a quote that is not closed
        notes.repair(
            "dropped_malformed_line",
            sum(lost),
            line=line + int(records.lines[row]),
            value=f"{records.fields[row]} fields{of_many}",
            expected=f"{len(names)} fields",
        )
    pieces = _pieces(text, records, good, delimiter)
    if b'"' in text:
        pieces, good = _well_quoted(pieces, records, good, delimiter, line, notes)
    clean = b"\n".join(pieces)
    schema = {str(at): pl.String() for at in range(len(names))}
    if clean:
        table = pl.read_csv(
            io.BytesIO(decodable(clean, notes)),
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


def _pieces(text: bytes, records: Records, good: Booleans, delimiter: str) -> list[bytes]:
    """The texts of the good records."""
    slices = zip(records.starts[good].tolist(), records.ends[good].tolist(), strict=True)
    if delimiter != " ":
        return [text[start:end] for start, end in slices]
    # Blanks at the end of a line are empty fields then.
    line_ends = ((start, text.find(b"\n", end)) for start, end in slices)
    return [text[start : None if end < 0 else end].rstrip(b"\r") for start, end in line_ends]


def _well_quoted(
    pieces: list[bytes], records: Records, good: Booleans, delimiter: str, line: int, notes: Notes
) -> tuple[list[bytes], Booleans]:
    """The good records without those whose quotes do not match, which are dropped and counted."""
    fields = _fields(delimiter)
    rows = np.flatnonzero(good)
    wrong = np.array([b'"' in each and not fields.fullmatch(each) for each in pieces], np.bool_)
    if not wrong.any():
        return pieces, good
    first = int(wrong.argmax())
    notes.repair(
        "dropped_malformed_line",
        int(wrong.sum()),
        line=line + int(records.lines[rows[first]]),
        value=pieces[first][:_SHOWN_BYTES],
        expected="quotes around a whole field, and doubled within it",
    )
    good[rows[wrong]] = False
    return [piece for piece, bad in zip(pieces, wrong, strict=True) if not bad], good


@cache
def _fields(delimiter: str) -> re.Pattern[bytes]:
    """A record whose fields are quoted as a whole or, if at all, in pairs without delimiters."""
    end = re.escape(delimiter.encode())
    plain = rb'[^"\n%b]' % end
    field = rb'(?:"[^"]*(?:""[^"]*)*"|(?:%b+(?:"%b*"%b*)*)?)' % (plain, plain, plain)
    return re.compile(rb"%b(?:%b%b)*" % (field, end, field))


def decodable(text: bytes, notes: Notes) -> bytes:
    """Return a text that is UTF-8, whatever it was; raises as ``Notes.repair``."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = text[max(0, error.start - 20) : error.end + 20]
        notes.repair("replaced_undecodable_text", value=shown, expected="UTF-8 text")
        return text.decode("utf-8", errors="replace").encode()
    return text


class TableFileReader(PlainReader):
    """Base of readers of comma-separated tables whose header line names exactly their columns."""

    columns: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    """Columns that may follow these."""
    example: ClassVar[str]
    """A small file of the layout."""

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("log.csv", cls.example),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names exactly the columns."""
        return sample.columns in (self.columns, self.columns + self.optional)

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        for chunk in read_delimited(notes.source(), notes, self.columns, optional=self.optional):
            yield self.jobs(chunk, notes)

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """The jobs of some rows, as ``Reader.chunks`` yields them; the columns hold text."""
        raise NotImplementedError


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to expect instead of an unknown name: the few most similar ones, or all.

    Names of which the unknown one is a part are similar, however long they are.
    """
    known = list(known)
    longer = [each for each in known if len(name) > 1 and name.lower() in each.lower()]
    alike = get_close_matches(name, known, n=3, cutoff=0.7)
    near = list(dict.fromkeys((*alike[:1], *longer, *alike)))[:3] or get_close_matches(
        name, known, n=1, cutoff=0.4
    )
    if not near:
        return "one of " + ", ".join(known)
    return " or ".join(map(repr, near)) + ", perhaps"
