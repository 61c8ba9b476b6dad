"""Containers of what changes with every event: records made quickly, and rosters of jobs.

An event of a simulation makes a dozen records. A roster has jobs, or parts of them, in an order,
and is shown as it is at a moment without being copied: what looks after every event at thousands
of jobs, of which one or two are others than before, asks what has changed since; what just
iterates sees a sequence.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    ValuesView,
)
from dataclasses import MISSING, Field, dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, get_type_hints, overload
from weakref import ReferenceType, ref

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


_MOST_SHOWN: Final = 64
"""Lists of a roster after which those are looked for that nobody has any more."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Altered:
    """A change of all entries of a kind at once: they get these values of fields."""

    kind: tuple[Hashable, ...]
    values: Mapping[str, Any]


Change: TypeAlias = tuple[Entry | None, Entry | None] | Altered
"""One entry before and after, or many."""


class _Changes(list[Change[Entry]]):
    """Some successive changes; what follows them, in time.

    The first of them is numbered ``begin``. Those before are known as long as these are the latest.
    """

    __slots__ = ("before", "begin", "following")

    def __init__(self, before: _Changes[Entry] | None = None) -> None:
        super().__init__()
        self.begin: int = 0 if before is None else before.begin + len(before)
        self.before = before
        self.following: _Changes[Entry] | None = None

    def from_before(self, earlier: int, later: int) -> list[Change[Entry]] | None:
        """From the number of an earlier change to before one of these; None: it is forgotten."""
        before = self.before
        if before is None or not before.begin <= earlier <= later:
            return None
        return before[earlier - before.begin :] + self[: later - self.begin]


class _UpToDate(Mapping[Key, Entry]):
    """Entries by key; those that were altered are made when they are looked at."""

    __slots__ = ("_roster",)

    def __init__(self, roster: Roster[Key, Entry]) -> None:
        self._roster = roster

    def __getitem__(self, key: Key) -> Entry:
        return self._roster._made(key)

    def __contains__(self, key: object) -> bool:
        return key in self._roster._entries

    def __iter__(self) -> Iterator[Key]:
        return iter(self._roster._entries)

    def __len__(self) -> int:
        return len(self._roster._entries)

    def values(self) -> ValuesView[Entry]:
        """All entries, made now."""
        self._roster._make_all()
        return self._roster._entries.values()


class Roster(Generic[Key, Entry]):
    """Entries by key, in the order of a number that each has.

    Those of a ``kind`` are altered at once; the first part of it is their group.
    ``by_id`` is to be read only; its order is that of the numbers unless one was put back.
    """

    def __init__(
        self,
        number: Callable[[Entry], int],
        kind: Callable[[Entry], tuple[Hashable, ...]] | None = None,
    ) -> None:
        self._number = number
        self._kind = kind
        self._by_group: dict[Hashable, dict[tuple[Hashable, ...], dict[Key, None]]] | None = None
        self._entries: dict[Key, Entry] = {}
        self._late: dict[tuple[Hashable, ...], tuple[int, Mapping[str, Any]]] = {}
        self._alterations = 0
        self._made_at: dict[Key, int] = {}
        self._kinds: dict[Key, tuple[Hashable, ...]] = {}
        self._is_ordered = True
        self._last = -1
        self._changes: _Changes[Entry] = _Changes()
        self._most = _FEW
        self._shown: Listed[Entry] | None = None
        self._all_shown: list[ReferenceType[Listed[Entry]]] = []

    @property
    def by_id(self) -> Mapping[Key, Entry]:
        """Entries by key, as they are at any time."""
        return MappingProxyType(self._entries) if self._kind is None else _UpToDate(self)

    def copy(self) -> Roster[Key, Entry]:
        """Another roster with the same entries."""
        twin: Roster[Key, Entry] = Roster(self._number, self._kind)
        self._make_all()
        for key, entry in self._entries.items():
            twin.put(key, entry)
        return twin

    def _made(self, key: Key) -> Entry:
        """Return the entry of a key, made now if it was altered."""
        entry = self._entries[key]
        if self._late:
            altered = self._late.get(self._kinds[key])
            if altered is not None and altered[0] > self._made_at[key]:
                self._made_at[key] = altered[0]
                entry = self._entries[key] = replaced(entry, **altered[1])
        return entry

    def _make_all(self) -> None:
        """Make all entries that were altered."""
        for kind, (number, values) in self._late.items():
            for key in self.of_kind(kind):
                if number > self._made_at[key]:
                    self._entries[key] = replaced(self._entries[key], **values)
                    self._made_at[key] = number
        self._late.clear()

    def put(self, key: Key, entry: Entry) -> None:
        """Enter one, or another entry for one that is in it."""
        before = self._made(key) if key in self._entries else None
        if before is None:
            number = self._number(entry)
            if number < self._last:
                self._is_ordered = False
            else:
                self._last = number
        self._entries[key] = entry
        if self._by_group is not None:
            self._note_kind(self._by_group, key)
        self._shown = None
        changes = self._changes
        changes.append((before, entry))
        if len(changes) > self._most:
            self._turn_over()

    def take(self, key: Key) -> Entry:
        """Take one out; raises ``KeyError`` if it is not in it."""
        entry = self._made(key)
        del self._entries[key]
        kind = self._kinds.pop(key, None)
        if kind is not None and self._by_group is not None:
            del self._made_at[key]
            kinds = self._by_group[kind[0]]
            del kinds[kind][key]
            if not kinds[kind]:
                del kinds[kind]
                self._late.pop(kind, None)
            if not kinds:
                del self._by_group[kind[0]]
        self._shown = None
        changes = self._changes
        changes.append((entry, None))
        if len(changes) > self._most:
            self._turn_over()
        return entry

    def alter(self, kind: tuple[Hashable, ...], values: Mapping[str, Any]) -> None:
        """Replace fields of the entries of a kind, of each once it is looked at.

        Each time they are the same fields, none from which numbers or kinds follow.
        """
        self._shown = None
        for shown in self._all_shown:  # what is shown stays as it is
            if (listed := shown()) is not None:
                listed.materialise()
        self._all_shown.clear()
        self._known_kinds()
        self._alterations += 1
        self._late[kind] = self._alterations, values
        self._changes.append(Altered(kind, values))
        if len(self._changes) > self._most:
            self._turn_over()

    def _known_kinds(self) -> dict[Hashable, dict[tuple[Hashable, ...], dict[Key, None]]]:
        """Return all entries by group and kind, which are followed once somebody has asked."""
        if self._by_group is None:
            self._by_group = {}
            for key in self._entries:
                self._note_kind(self._by_group, key)
        return self._by_group

    def _note_kind(
        self, by_group: dict[Hashable, dict[tuple[Hashable, ...], dict[Key, None]]], key: Key
    ) -> None:
        """Note of which kind an entry is that has been put in, and that it is up to date."""
        self._made_at[key] = self._alterations
        if key not in self._kinds and self._kind is not None:
            kind = self._kinds[key] = self._kind(self._entries[key])
            by_group.setdefault(kind[0], {}).setdefault(kind, {})[key] = None

    def kinds_of(
        self, groups: Iterable[Hashable]
    ) -> list[tuple[tuple[Hashable, ...], Collection[Key]]]:
        """Kinds of all entries of some groups, and the keys of each."""
        known = self._known_kinds()
        return [each for group in groups for each in known.get(group, {}).items()]

    def of_kind(self, kind: tuple[Hashable, ...]) -> Collection[Key]:
        """Keys of all entries of a kind."""
        return self._known_kinds().get(kind[0], {}).get(kind, ())

    def in_order(self) -> list[Entry]:
        """All entries, by number."""
        self._make_all()
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
            if self._kind is not None:
                self._all_shown.append(ref(self._shown))
            if len(self._all_shown) > _MOST_SHOWN:
                self._all_shown = [each for each in self._all_shown if each() is not None]
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
        self._make_all()
        entries = {number(entry): entry for entry in self._entries.values()}
        for change in reversed(undone):
            assert not isinstance(change, Altered)  # what was shown before that was made then
            before, after = change
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

    __slots__ = ("__weakref__", "_entries", "_length", "changes", "roster", "version")

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

    def changes_to(self, shown: Sequence[Entry]) -> Sequence[Change[Entry]] | None:
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
