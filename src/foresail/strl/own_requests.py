"""A job's own request: STRL about the tasks of one job, read as the options that it has.

A task is a node of the expression. Starts count from the job's submission, and are the earliest
ones: what is written of nodes and a start holds until a later start of the same nodes. Durations
say how many times longer the job runs in one place than where it is quickest; how long that is,
predictors say. Source: TetriSched (EuroSys 2016), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Final

from foresail.model.cluster import Cluster, names_in
from foresail.model.errors import InputError
from foresail.model.preference import OptionPart, PlacementOption
from foresail.strl import expression as strl
from foresail.strl.parser import Parser
from foresail.strl.tokens import listed

_FIELD: Final = "strl"
_SHOWN: Final = 80
_MOST_WAYS: Final = 10_000
"""A request with more alternatives than this is refused: each is looked at in every cycle."""


@dataclass(frozen=True, slots=True)
class RequestPlaces:
    """Names that requests may use on a cluster; made once, used for every job."""

    names: frozenset[str]
    """The nodes; on a cluster without named nodes its partitions, each for all its processors."""
    sets: Mapping[str, frozenset[str]]
    """The sets that are known without being defined: ``all``, every partition, every attribute, and
    every value of one as ``attribute.value``. Of equal names, the first of these counts."""
    has_nodes: bool
    """True if nodes have names."""

    @classmethod
    def on(cls, cluster: Cluster) -> RequestPlaces:
        """Return what requests may name on this cluster."""
        nodes = {
            node.name: (partition.name, node.attributes)
            for partition in cluster.partitions
            for node in partition.nodes
        }
        if not nodes:
            names = frozenset(partition.name for partition in cluster.partitions)
            sets = {name: frozenset({name}) for name in names} | {"all": names}
            return cls(names, MappingProxyType(sets), False)
        partitions: dict[str, set[str]] = {}
        having: dict[str, set[str]] = {}
        values: dict[str, set[str]] = {}
        for name, (partition, attributes) in nodes.items():
            for each in names_in(partition):
                partitions.setdefault(each, set()).add(name)
            for attribute, value in attributes.items():
                having.setdefault(attribute, set()).add(name)
                values.setdefault(f"{attribute}.{value}", set()).add(name)
        found = {**values, **having, **partitions, "all": nodes}
        sets = {name: frozenset(members) for name, members in found.items()}
        return cls(frozenset(nodes), MappingProxyType(sets), True)


def own_options(text: str, tasks: int, places: RequestPlaces) -> tuple[PlacementOption, ...]:
    """The options that a job's own request gives it, in the order of the text.

    The text defines sets and expressions as a file of requests does, and has one request, which may
    name these places; the job has so many tasks.

    Raises ``InputError`` if it is no STRL (with line and column within the text), names what is not
    there, or asks for what is no choice of where and when all tasks of the job start together.
    """
    reading = Parser(text, None, places.sets).reading()
    if reading.errors:
        error = reading.errors[0]
        where = f"line {error.line}, column {error.column} of the request"
        raise InputError(
            f"{error.problem} ({where})", field=_FIELD, value=error.value, expected=error.expected
        )
    requests = reading.document.requests
    if len(requests) != 1:
        found = ", ".join(requests) or None
        raise _refused(f"{len(requests)} requests", found or text, "one expression")
    (expression,) = requests.values()
    ways = _Ways(tasks, places).ways(expression)
    shortest = min(way.duration_seconds for way in ways)
    found_ways: dict[tuple[OptionPart, ...], list[_Way]] = {}
    for way in ways:
        found_ways.setdefault(way.parts, []).append(way)
    return tuple(_option(same, shortest) for same in found_ways.values())


@dataclass(frozen=True, slots=True)
class _Way:
    """One alternative: where the tasks run, from when, for how long, and what that is worth.

    Where ``is_split_freely``, parts say how many tasks may be there at most.
    """

    parts: tuple[OptionPart, ...]
    start_seconds: float
    duration_seconds: float
    value: float
    is_split_freely: bool = False


@dataclass(frozen=True, slots=True)
class _Ways:
    """The alternatives of expressions, for a job of so many tasks."""

    tasks: int
    places: RequestPlaces

    def ways(self, expression: strl.Expression) -> list[_Way]:
        """Return the ways of a whole request."""
        ways = self._below(expression)
        for way in ways:
            asked = sum(part.tasks for part in way.parts)
            if asked < self.tasks or (asked > self.tasks and not way.is_split_freely):
                least = "at least " if way.is_split_freely else ""
                raise _refused(
                    "all tasks of a job start together",
                    f"k={asked}",
                    f"{least}k={self.tasks}, its tasks",
                )
        if not any(way.value for way in ways):
            raise _refused("it can never be worth anything", None, "a value above 0")
        return ways

    def _below(self, expression: strl.Expression) -> list[_Way]:
        match expression:
            case strl.NChooseK():
                ways = [self._leaf(expression, expression.count, expression.value)]
            case strl.LinearNChooseK():
                share = min(self.tasks / expression.count, 1.0)
                tasks = min(self.tasks, expression.count)
                ways = [self._leaf(expression, tasks, expression.value * share)]
            case strl.Maximum(children):
                ways = [way for child in children for way in self._below(child)]
            case strl.Minimum(children):
                ways = self._together([self._below(child) for child in children])
            case strl.Sum(children):
                ways = self._below(children[0]) if len(children) == 1 else [self._split(children)]
            case strl.Scale(child, factor):
                ways = [replace(way, value=way.value * factor) for way in self._below(child)]
            case strl.Barrier(child, value):
                ways = [
                    replace(way, value=value if strl.reaches(way.value, expression) else 0.0)
                    for way in self._below(child)
                ]
        _require_few(len(ways))
        return ways

    def _leaf(self, leaf: strl.NChooseK | strl.LinearNChooseK, tasks: int, value: float) -> _Way:
        unknown = leaf.nodes - self.places.names
        if unknown:
            what = "nodes" if self.places.has_nodes else "partitions (no nodes have names here)"
            raise _refused(f"there are no such {what}", listed(unknown), self._there())
        if leaf.start_seconds < 0.0:
            raise _refused("a start before the submission", leaf.start_seconds, "0 or later")
        part = OptionPart(tuple(sorted(leaf.nodes)), tasks)
        return _Way((part,), leaf.start_seconds, leaf.duration_seconds, value)

    def _split(self, children: Sequence[strl.Expression]) -> _Way:
        """The way of a ``sum``: all tasks, and no more in a place than its leaf is given."""
        leaves = [child for child in children if isinstance(child, strl.LinearNChooseK)]
        if len(leaves) < len(children):
            raise _refused(
                "a sum is worth something without all of its parts, which a job is not",
                "sum",
                "sum of LnCk for at most so many tasks in each place, min for tasks in several "
                "places, max for one place of several",
            )
        self._require_nodes()
        first = leaves[0]
        of_task = first.value / first.count
        if not all(math.isclose(leaf.value / leaf.count, of_task) for leaf in leaves):
            raise _refused(
                "a task is worth more in one part of a sum than in another",
                "sum",
                "value / k the same in all of them; max around several sums for several values",
            )
        value = of_task * self.tasks
        ways = [self._leaf(leaf, min(leaf.count, self.tasks), value) for leaf in leaves]
        return replace(_at_once(ways), is_split_freely=True)

    def _require_nodes(self) -> None:
        if not self.places.has_nodes:
            raise _refused(
                "tasks in several places need nodes with names", None, "nCk, max, scale, barrier"
            )

    def _there(self) -> str:
        known = f"nodes of {listed(self.places.names)}"
        return f"{known}, or one of the sets {', '.join(sorted(self.places.sets))}"

    def _together(self, choices: Sequence[Sequence[_Way]]) -> list[_Way]:
        """The ways of a ``min``: one of each child, at the same time."""
        if len(choices) > 1:
            self._require_nodes()
            if any(way.is_split_freely for ways in choices for way in ways):
                raise _refused(
                    "a sum says all about where the tasks of a job are",
                    "min",
                    "a sum with nothing beside it",
                )
        _require_few(math.prod(map(len, choices)))
        return [_at_once(each) for each in product(*choices)]


def _at_once(ways: Sequence[_Way]) -> _Way:
    times = {(way.start_seconds, way.duration_seconds) for way in ways}
    if len(times) > 1:
        raise _refused(
            "all tasks of a job start together and run equally long",
            "min of expressions with different starts or durations",
            "one start and one duration; max around several min for several starts",
        )
    parts = tuple(part for way in ways for part in way.parts)
    return replace(ways[0], parts=parts, value=min(way.value for way in ways))


def _option(ways: Iterable[_Way], shortest: float) -> PlacementOption:
    """Make the option of one place; of several ways to start there at a time, the best counts."""
    ways = list(ways)
    if len({way.duration_seconds for way in ways}) > 1:
        raise _refused(
            "two durations on the same nodes", listed(ways[0].parts[0].nodes), "one duration"
        )
    starts: dict[float, float] = {}
    for way in ways:
        starts[way.start_seconds] = max(way.value, starts.get(way.start_seconds, 0.0))
    slowdown = ways[0].duration_seconds / shortest
    return PlacementOption(ways[0].parts, slowdown, tuple(sorted(starts.items())))


def _require_few(ways: int) -> None:
    if ways > _MOST_WAYS:
        raise _refused("too many alternatives", f"{ways:,}", f"at most {_MOST_WAYS:,}")


def _refused(problem: str, value: object, expected: str) -> InputError:
    shown = value if not isinstance(value, str) or len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return InputError(problem, field=_FIELD, value=shown, expected=expected)
