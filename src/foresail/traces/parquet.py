"""Parquet files: damage said in words, whole files written, pages looked at before Polars does.

Of a page with a negative number of values Polars asks for more memory than any machine has, which
ends the process; so the headers of pages are read first. The format, in Thrift's compact protocol:
https://github.com/apache/parquet-format.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Final, Protocol

import polars as pl

from foresail.model.errors import InputError
from foresail.model.whole_files import require_replaceable


@contextmanager
def parquet_of(source: object) -> Iterator[None]:
    """Make what goes wrong while a Parquet file is read an error about the file.

    Polars panics, which is no ``Exception``, where what a damaged file says of itself cannot be.

    Raises ``InputError`` if the file cannot be opened, is not Parquet, or is damaged.
    """
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(source) from error


def damaged(source: object) -> InputError:
    """The error about a file that is no Parquet file, or is damaged."""
    problem = "the Parquet file is damaged, or is none"
    return InputError(problem, source=source, expected="a complete Parquet file")


def write_whole_parquet(
    table: pl.DataFrame, path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write a table; the file appears whole or not at all.

    Raises ``InputError`` if it cannot be written there, or something that is no file is there.
    """
    require_replaceable(path)
    partial = path.with_name(f".{path.name}.partial")
    try:
        table.write_parquet(partial, metadata=metadata)
        partial.replace(path)
    except (OSError, pl.exceptions.ComputeError) as error:
        with suppress(OSError):
            partial.unlink()
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be written: {problem}", source=path) from error


_MAGIC: Final = b"PAR1"
_END_BYTES: Final = 8
"""Length of the footer, and the magic number."""

# Numbers of fields.
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_META: Final = 3
_CHUNK_BYTES: Final = 7
_FIRST_DATA_PAGE: Final = 9
_DICTIONARY_PAGE: Final = 11
_PAGE_BYTES: Final = 3
_PAGE_KINDS: Final = (5, 7, 8)
"""A page of data, a dictionary, and a page of data of the second version."""
_VALUES: Final = 1

# Kinds of what Thrift writes.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS: Final = (4, 5, 6)
_DOUBLE_BYTES: Final = 8
_LONGEST_INTEGER_BITS: Final = 70


class _Bytes(Protocol):
    def __getitem__(self, at: Any, /) -> Any: ...
    def __len__(self) -> int: ...


def require_possible_pages(path: Path) -> None:
    """Refuse a Parquet file in which a page says that it has fewer values than none.

    Whatever else is wrong with it is left to Polars to say.

    Raises ``InputError`` if there is such a page.
    """
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            impossible = _has_impossible_page(content)
    except (OSError, ValueError):
        return
    if impossible:
        raise damaged(path)


def _has_impossible_page(content: _Bytes) -> bool:
    try:
        return any(values < 0 for values in _values_of_pages(content))
    except (LookupError, TypeError, ValueError, RecursionError):
        return False


def _values_of_pages(content: _Bytes) -> Iterator[int]:
    """Yield how many values each page says it has, in order of columns."""
    size = len(content)
    if content[size - len(_MAGIC) : size] != _MAGIC:
        return
    ends = size - _END_BYTES
    length = int.from_bytes(content[ends : ends + 4], "little")
    for group in _Thrift(content, ends - length).struct()[_ROW_GROUPS]:
        for column in group[_COLUMNS]:
            meta = column[_META]
            at = min(meta[_FIRST_DATA_PAGE], meta.get(_DICTIONARY_PAGE) or meta[_FIRST_DATA_PAGE])
            end = at + meta[_CHUNK_BYTES]
            while 0 <= at < end:
                thrift = _Thrift(content, at)
                page = thrift.struct()
                yield from (page[kind][_VALUES] for kind in _PAGE_KINDS if kind in page)
                at = thrift.at + max(page[_PAGE_BYTES], 0)


class _Thrift:
    """Fields at a place of a file, by their numbers; ``at`` is where they end."""

    def __init__(self, content: _Bytes, at: int) -> None:
        if at < 0:
            raise LookupError(at)
        self._content = content
        self.at = at

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_BINARY, _DOUBLE):
            length = self._natural() if kind == _BINARY else _DOUBLE_BYTES
            self.at += length
            return None
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            return self._list()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        raise ValueError(kind)

    def _list(self) -> list[Any]:
        head = self._byte()
        count = head >> 4
        if count == 15:
            count = self._natural()
        return [self._value(head & 15) for _ in range(count)]

    def _byte(self) -> int:
        value: int = self._content[self.at]
        self.at += 1
        return value

    def _natural(self) -> int:
        value = 0
        for shift in range(0, _LONGEST_INTEGER_BITS, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError(value)

    def _integer(self) -> int:
        value = self._natural()
        return (value >> 1) ^ -(value & 1)
