"""Small files spoilt as files are in life, and in odder ways: by bytes and by fields."""

from __future__ import annotations

import gzip
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import polars as pl
import zstandard

from foresail.model.errors import InputError
from foresail.traces.parquet import require_possible_pages

Mutation = Callable[[bytes, Random], bytes]

_ODD: Final = (
    *(b"", b" ", b"-", b"+", b".", b"0", b"-0", b"-1", b"-7.5", b"0.5", b"1e-320", b"1e30"),
    *(b"1e308", b"-1e308", b"1e400", b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1_000"),
    *(b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808"),
    *(b"18446744073709551616", b"1" + b"0" * 400, b"9" * 5000, b"0x10", b"1 2", b"1,5", b"1.2.3"),
    *(b'"', b'""', b"'", b'"a\nb"', b'"a', b"\n", b"\r", b"\r\n", b"\t", b"\0", b"\x0b", b"\x1a"),
    *(b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *("\u00e9".encode(), "\u0661".encode(), "\u00b2".encode(), "\u2028".encode(), "\x85".encode()),
    *(b"null", b"true", b"false", b"[]", b"{}", b"[1]", b"[[1]]", b'{"a": 1}', b'["a"]'),
    *(b'"\\ud800"', b'"\\u0000"', b"[" * 5000, b'{"a":' * 3000, b"a = " + b"[" * 3000),
    *(b"2024-02-30", b"2024-02-29", b"0001-01-01", b"0001-01-01T00:00:00", b"9999-12-31T23:59:59"),
    *(b"2024-03-31T02:30:00", b"1969-12-31T23:59:59Z", b"12:30", b"00:10:00", b"%", b"{", b"}"),
    *(b";", b"#", b"..", b"/", b"a" * 300),
)
_DELIMITERS: Final = (b",", b"\t", b" ", b":", b"=")
_WORD: Final = re.compile(rb'"[^"\n]*"|[^\s,:=\[\]{}"]+')
_NAME: Final = re.compile(rb"[A-Za-z_][\w.-]*")
_PARQUET: Final = b"PAR1"
_HOW_MANY: Final = (1, 1, 1, 1, 2, 3, 8)
_PACKED: Final = 0.06
"""Share of files that come compressed, half of them damaged."""


def mutated(content: bytes, random: Random) -> bytes:
    """A file with one or a few things changed; now and then compressed, and cut off or damaged."""
    for _ in range(random.choice(_HOW_MANY)):
        of_tables = content.startswith(_PARQUET) and random.random() < 0.5
        content = (_table if of_tables else random.choice(_MUTATIONS))(content, random)
    if random.random() >= _PACKED:
        return content
    packed = random.choice((gzip.compress, zstandard.compress))(content)
    return packed if random.random() < 0.5 else random.choice(_OF_BYTES)(packed, random)


def _span(content: bytes, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(content))
    return start, min(len(content), start + int(random.expovariate(0.1)))


def _odd_bytes(content: bytes, random: Random) -> bytes:
    at = random.randint(0, len(content))
    return content[:at] + random.choice(_ODD) + content[at:]


def _other_byte(content: bytes, random: Random) -> bytes:
    at = random.randint(0, len(content))
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _without_some(content: bytes, random: Random) -> bytes:
    start, end = _span(content, random)
    return content[:start] + content[end:]


def _some_twice(content: bytes, random: Random) -> bytes:
    start, end = _span(content, random)
    return content[:end] + content[start:]


def _cut_off(content: bytes, random: Random) -> bytes:
    return content[: random.randint(0, len(content))]


def _empty(content: bytes, random: Random) -> bytes:
    del content
    return random.choice((b"", b"\n", b"\n\n\n", b" ", b"\0" * 64, random.randbytes(200)))


def _first_lines(content: bytes, random: Random) -> bytes:
    return b"".join(content.splitlines(keepends=True)[: random.randint(0, 2)])


def _other_line_ends(content: bytes, random: Random) -> bytes:
    return content.replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\n")))


def _lines_moved(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    change = random.randrange(3)
    if change == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif change == 1:
        lines.insert(other, lines[one])
    else:
        del lines[one]
    return b"\n".join(lines)


def _word(content: bytes, random: Random) -> bytes:
    """A number, name or text becomes something odd, or another one of the same file."""
    words = [found.span() for found in _WORD.finditer(content[:4096])]
    if not words:
        return _odd_bytes(content, random)
    start, end = random.choice(words)
    other = slice(*random.choice(words))
    new = random.choice(_ODD) if random.random() < 0.7 else content[other]
    return content[:start] + new + content[end:]


def _quoted(content: bytes, random: Random) -> bytes:
    """A word gets quotes, or loses them."""
    words = [found.span() for found in _WORD.finditer(content[:4096])]
    if not words:
        return content
    start, end = random.choice(words)
    word = content[start:end]
    bare = word.strip(b'"')
    return content[:start] + (bare if bare != word else b'"' + word + b'"') + content[end:]


def _renamed(content: bytes, random: Random) -> bytes:
    """A name is another one's, or misspelt, everywhere or once."""
    names = _NAME.findall(content[:4096])
    if not names:
        return content
    old = random.choice(names)
    new = random.choice((*names, old + b"x", old.upper(), old[1:]))
    return content.replace(old, new, random.choice((1, -1)))


def _fields(content: bytes, random: Random) -> bytes:
    """A field of one line, or of all, is replaced, deleted, doubled or swapped with another."""
    delimiter = max(_DELIMITERS, key=content.count)
    rows = [line.split(delimiter) for line in content.split(b"\n")]
    chosen = rows if random.random() < 0.3 else [random.choice(rows)]
    at, other = (random.randrange(max(map(len, rows))) for _ in range(2))
    change, odd = random.randrange(4), random.choice(_ODD)
    for row in chosen:
        if at >= len(row):
            continue
        if change == 0:
            row[at] = odd
        elif change == 1:
            del row[at]
        elif change == 2:
            row.insert(at, row[at])
        elif other < len(row):
            row[at], row[other] = row[other], row[at]
    return b"\n".join(delimiter.join(row) for row in rows)


_ODD_VALUES: Final = (
    *(None, float("nan"), float("inf"), -1.0, 0.5, 1e308, -1e308, 2**63 - 1, -(2**63), 0),
    *("", "odd", "1e999", "\0", b"\xff", True, [1], {"a": 1}),
)


def _table(content: bytes, random: Random) -> bytes:
    """A Parquet table lacks a column or rows, or a column has another value, type or name."""
    try:
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(content)
            require_possible_pages(Path(file.name))
        table = pl.read_parquet(io.BytesIO(content))
        changed = _changed(table, random)
    except (InputError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return content  # an earlier mutation left no table to change
    written = io.BytesIO()
    changed.write_parquet(written)
    return written.getvalue()


def _changed(table: pl.DataFrame, random: Random) -> pl.DataFrame:
    if not table.width:
        return table
    name = random.choice(table.columns)
    column = table[name]
    change = random.randrange(7)
    if change == 0:
        return table.drop(name)
    if change == 1:
        return table.rename({name: f"{name}x"})
    if change == 2:
        return table.head(random.randint(0, table.height))
    if change == 3:
        return table.with_columns(column.cast(random.choice(_KINDS), strict=False))
    if change == 4:
        return pl.concat([table, table])
    if change == 5:
        return table.select(random.sample(table.columns, table.width))
    odd = random.choice(_ODD_VALUES)
    if random.random() < 0.5:  # of the type that the column has, where it can be
        values = pl.Series(name, [odd], strict=False).cast(column.dtype, strict=False)
    else:
        values = pl.Series(name, [odd])
    if values.dtype == column.dtype and table.height:
        rows = pl.int_range(table.height, eager=True) == random.randrange(table.height)
        return table.with_columns(column.zip_with(~rows, values.new_from_index(0, table.height)))
    return table.with_columns(values.new_from_index(0, table.height))


_KINDS: Final = (
    *(pl.String(), pl.Float64(), pl.Float32(), pl.Int64(), pl.Int8(), pl.UInt64(), pl.Boolean()),
    *(pl.Date(), pl.Datetime("us"), pl.Datetime("ns", "Europe/Paris"), pl.Duration(), pl.Time()),
    *(pl.Categorical(), pl.Binary(), pl.Null(), pl.List(pl.Int64()), pl.Decimal(10, 2)),
)

_OF_BYTES: Final[tuple[Mutation, ...]] = (
    _odd_bytes,
    _other_byte,
    _other_byte,
    _without_some,
    _some_twice,
    _cut_off,
)
_MUTATIONS: Final[tuple[Mutation, ...]] = (
    *_OF_BYTES,
    _empty,
    _first_lines,
    _other_line_ends,
    *(_lines_moved, _lines_moved),
    *(_word, _word, _word, _word),
    _quoted,
    *(_renamed, _renamed),
    *(_fields, _fields, _fields, _fields),
)
