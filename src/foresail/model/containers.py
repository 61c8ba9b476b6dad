"""Containers of what changes with every event: records made quickly, and rosters of jobs.

An event of a simulation makes a dozen records. A roster has jobs, or parts of them, in an order,
and is shown as it is at a moment without being copied: what looks after every event at thousands
of jobs, of which one or two are others than before, asks what has changed since; what just
iterates sees a sequence.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_type_hints, overload

import msgspec

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


Kind = TypeVar("Kind", bound=type)
Record = TypeVar("Record")

_ITS_OWN: Final = frozenset(
    {"__dict__", "__weakref__", "__slots__", "__init__", "__repr__", "__eq__", "__hash__"}
    | {"__setattr__", "__delattr__", "__getstate__", "__setstate__", "__match_args__"}
)
"""Methods that a struct has in a way of its own."""


def quickly_made(kind: Kind) -> Kind:
    """Make of a dataclass with slots one that is made in a third of the time.

    It is a ``msgspec.Struct``, whose constructor is compiled. All else about the class stays as it
    is: ``dataclasses`` and ``pydantic`` take it for a dataclass. Python's collector does not look
    through such records for cycles: what they are made of is there before them.
    """
    of_record = fields(kind)
    names = {each.name for each in of_record}
    others = {
        name: value
        for name, value in vars(kind).items()
        if name not in names and name not in _ITS_OWN
    }
    return msgspec.defstruct(  # type: ignore[return-value] # all that the dataclass had
        kind.__name__,
        [(each.name, each.type, _default(each)) for each in of_record],
        namespace={**others, "__get_pydantic_core_schema__": classmethod(_checked_fields)},
        module=kind.__module__,
        frozen=kind.__dataclass_params__.frozen,  # type: ignore[attr-defined] # of a dataclass
        gc=False,
    )


def replaced(record: Record, **changes: Any) -> Record:
    """Replace fields like ``dataclasses.replace``, of quickly made records, ten times as fast."""
    return msgspec.structs.replace(record, **changes)  # type: ignore[type-var] # it is a struct


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.NODEFAULT if field.default is MISSING else field.default


def _checked_fields(kind: type, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the schema by which pydantic checks the fields, and makes a record of them."""
    from pydantic_core import core_schema

    hints = get_type_hints(kind, include_extras=True)
    of_record = {
        each.name: core_schema.typed_dict_field(
            handler.generate_schema(hints[each.name]),
            required=each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
    }
    return core_schema.no_info_after_validator_function(
        lambda known: kind(**known), core_schema.typed_dict_schema(of_record)
    )


Item = TypeVar("Item")


class LateTuple(Sequence[Item]):
    """A sequence that is the same as the tuple that it makes; pickled, it is that tuple."""

    __slots__ = ()

    @abstractmethod
    def materialise(self) -> tuple[Item, ...]:
        """All of it, made once."""

    def __len__(self) -> int:
        return len(self.materialise())

    def __iter__(self) -> Iterator[Item]:
        return iter(self.materialise())

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        return self.materialise()[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LateTuple):
            return self.materialise() == other.materialise()
        return self.materialise() == other

    def __hash__(self) -> int:
        return hash(self.materialise())

    def __repr__(self) -> str:
        return repr(self.materialise())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.materialise(),)


class FloatColumn(LateTuple[float]):
    """The numbers of a column of 64-bit floats, which are kept as its bytes until then."""

    __slots__ = ("_column", "_entries")

    def __init__(self, column: bytes) -> None:
        self._column = column
        self._entries: tuple[float, ...] | None = None

    def materialise(self) -> tuple[float, ...]:
        """All of them, made once."""
        if self._entries is None:
            self._entries = tuple(array("d", self._column))
            self._column = b""
        return self._entries


Entry = TypeVar("Entry")
Key = TypeVar("Key", bound=Hashable)

_FEW: Final = 1024
"""Changes that are remembered however few jobs there are."""

_MANY: Final = 8_192
"""And however many: each keeps entries that are gone."""


class _Changes(list[tuple[Entry | None, Entry | None]]):
    """Some successive changes, as entries before and after; what follows them, in time.

    The first of them is numbered ``begin``. Those before are known as long as these are the latest.
    """

    __slots__ = ("before", "begin", "following")

    def __init__(self, before: _Changes[Entry] | None = None) -> None:
        super().__init__()
        self.begin: int = 0 if before is None else before.begin + len(before)
        self.before = before
        self.following: _Changes[Entry] | None = None

    def from_before(
        self, earlier: int, later: int
    ) -> list[tuple[Entry | None, Entry | None]] | None:
        """From the number of an earlier change to before one of these; None: it is forgotten."""
        before = self.before
        if before is None or not before.begin <= earlier <= later:
            return None
        return before[earlier - before.begin :] + self[: later - self.begin]


class Roster(Generic[Key, Entry]):
    """Entries by key, in the order of a number that each has.

    ``by_id`` is to be read only; its order is that of the numbers unless one was put back.
    """

    def __init__(
        self, number: Callable[[Entry], int], group: Callable[[Entry], Hashable] | None = None
    ) -> None:
        self._number = number
        self._group = group or number
        self._by_group: defaultdict[Hashable, dict[Key, None]] | None = None  # nobody has asked
        self._entries: dict[Key, Entry] = {}
        self._is_ordered = True
        self._last = -1
        self._changes: _Changes[Entry] = _Changes()
        self._most = _FEW
        self._shown: Listed[Entry] | None = None
        self.by_id: Mapping[Key, Entry] = MappingProxyType(self._entries)

    def copy(self) -> Roster[Key, Entry]:
        """Another roster with the same entries."""
        twin: Roster[Key, Entry] = Roster(self._number, self._group)
        for key, entry in self._entries.items():
            twin.put(key, entry)
        return twin

    def put(self, key: Key, entry: Entry) -> None:
        """Enter one, or another entry for one that is in it."""
        before = self._entries.get(key)
        if before is None:
            number = self._number(entry)
            if number < self._last:
                self._is_ordered = False
            else:
                self._last = number
            if self._by_group is not None:
                self._by_group[self._group(entry)][key] = None
        self._entries[key] = entry
        self._shown = None
        changes = self._changes
        changes.append((before, entry))
        if len(changes) > self._most:
            self._turn_over()

    def take(self, key: Key) -> Entry:
        """Take one out; raises ``KeyError`` if it is not in it."""
        entry = self._entries.pop(key)
        if self._by_group is not None:
            group = self._group(entry)
            del self._by_group[group][key]
            if not self._by_group[group]:
                del self._by_group[group]
        self._shown = None
        changes = self._changes
        changes.append((entry, None))
        if len(changes) > self._most:
            self._turn_over()
        return entry

    def exchange(self, entries: Iterable[tuple[Key, Entry]]) -> None:
        """Enter others for those of these keys, which are in it, their groups and numbers alike."""
        known, changes = self._entries, self._changes
        for key, entry in entries:
            changes.append((known[key], entry))
            known[key] = entry
        self._shown = None
        if len(changes) > self._most:
            self._turn_over()

    def of_groups(self, groups: Iterable[Hashable]) -> list[Entry]:
        """Entries of some groups, by number."""
        known = self._entries
        if self._by_group is None:
            self._by_group = defaultdict(dict)
            for key, entry in known.items():
                self._by_group[self._group(entry)][key] = None
        found = [known[key] for group in groups for key in self._by_group.get(group, ())]
        return sorted(found, key=self._number)

    def in_order(self) -> list[Entry]:
        """All entries, by number."""
        if not self._is_ordered:
            entries = sorted(self._entries.items(), key=lambda each: self._number(each[1]))
            self._entries.clear()
            self._entries.update(entries)
            self._is_ordered = True
        return list(self._entries.values())

    def listed(self) -> Listed[Entry]:
        """All entries in order as they are now; made in no time, whatever their number."""
        if self._shown is None:
            changes = self._changes
            version = changes.begin + len(changes)
            self._shown = Listed(self, changes, version, len(self._entries))
        return self._shown

    def as_it_was(self, changes: _Changes[Entry], version: int) -> list[Entry]:
        """All entries by number at a version that is among these changes, or begins behind them."""
        undone = changes[version - changes.begin :]
        following = changes.following
        while following is not None:
            undone += following
            following = following.following
        if not undone:
            return self.in_order()
        number = self._number
        entries = {number(entry): entry for entry in self._entries.values()}
        for before, after in reversed(undone):
            if before is not None:
                entries[number(before)] = before
            elif after is not None:
                del entries[number(after)]
        return [entries[each] for each in sorted(entries)]

    def _turn_over(self) -> None:
        """Forget the changes but the latest; whom these were shown to keeps those that follow."""
        changes = self._changes
        self._most = max(_FEW, min(2 * len(self._entries), _MANY))
        self._changes = changes.following = _Changes(changes)
        changes.before = None


class Listed(LateTuple[Entry]):
    """The entries of a roster in order, as they were when it was asked for them.

    ``version`` is how often it had been changed, the last time as the last of ``changes`` then.
    """

    __slots__ = ("_entries", "_length", "changes", "roster", "version")

    def __init__(
        self, roster: Roster[Any, Entry], changes: _Changes[Entry], version: int, length: int
    ) -> None:
        self.roster = roster
        self.version = version
        self.changes = changes
        self._length = length
        self._entries: tuple[Entry, ...] | None = None

    def materialise(self) -> tuple[Entry, ...]:
        """All of them, found once."""
        if self._entries is None:
            self._entries = tuple(self.roster.as_it_was(self.changes, self.version))
        return self._entries

    def __len__(self) -> int:
        return self._length


class Followed(Generic[Entry]):
    """Last seen content of a roster, for one who looks at it again and again."""

    __slots__ = ("_roster", "_version")

    def __init__(self) -> None:
        self._roster: Roster[Any, Entry] | None = None
        self._version = 0

    def changes_to(
        self, shown: Sequence[Entry]
    ) -> Sequence[tuple[Entry | None, Entry | None]] | None:
        """Return how what is shown differs from the last time; None: all may be other."""
        if not isinstance(shown, Listed):
            self._roster = None
            return None
        earlier, later = self._version, shown.version
        self._version = later
        if shown.roster is not self._roster:
            self._roster = shown.roster
            return None
        if later == earlier:
            return ()
        changes = shown.changes
        begin = changes.begin
        if begin <= earlier <= later:
            return changes[earlier - begin : later - begin]
        return changes.from_before(earlier, later)
