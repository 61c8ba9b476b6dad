"""Late tuples: sequences made once they are looked at, as most of what simulations tell is not."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

Entry = TypeVar("Entry")


class LateTuple(Sequence[Entry]):
    """A sequence that is the same as the tuple that it makes; pickled, it is that tuple."""

    __slots__ = ()

    @abstractmethod
    def settle(self) -> tuple[Entry, ...]:
        """All of it, made once."""

    def __len__(self) -> int:
        return len(self.settle())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.settle())

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, at: int | slice) -> Entry | tuple[Entry, ...]:
        return self.settle()[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateTuple):
            return self.settle() == other.settle()
        return self.settle() == other

    def __hash__(self) -> int:
        return hash(self.settle())

    def __repr__(self) -> str:
        return repr(self.settle())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.settle(),)


class FloatColumn(LateTuple[float]):
    """The numbers of a column of 64-bit floats, which are kept as its bytes until then."""

    __slots__ = ("_column", "_entries")

    def __init__(self, column: bytes) -> None:
        self._column = column
        self._entries: tuple[float, ...] | None = None

    def settle(self) -> tuple[float, ...]:
        """All of them, made once."""
        if self._entries is None:
            self._entries = tuple(array("d", self._column))
            self._column = b""
        return self._entries
