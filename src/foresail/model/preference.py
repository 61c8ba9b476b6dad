"""Places that jobs ask for: where one runs best, and the options of one that runs nowhere else."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from foresail.model.cluster import Node, belongs
from foresail.model.errors import InputError


class PreferenceKind(StrEnum):
    """Kind of preference that the tasks of a job have for nodes."""

    PARTITION = "partition"
    ATTRIBUTE = "attribute"
    SAME = "same"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Preference:
    """Preference of a job for where it runs best.

    Raises ``InputError`` if nothing is named or the slowdown is below 1.
    """

    kind: PreferenceKind
    """``PARTITION``: all tasks in these partitions. ``ATTRIBUTE``: all on nodes that have one of
    these attributes. ``SAME``: all on nodes with the same value of this attribute (a rack).
    ``SPREAD``: no two tasks on nodes with the same value of it."""
    names: tuple[str, ...]
    """Partitions or attributes, at least one."""
    slowdown: float = 1.0
    """Factor by which it runs longer where that is not given; at least 1."""

    def __post_init__(self) -> None:
        if not self.names or not all(self.names):
            raise InputError(
                "no names", field="preferred", value=self.text, expected="kind:name,..."
            )
        if not 1.0 <= self.slowdown < math.inf:
            raise InputError(
                "not a slowdown",
                field="slowdown_elsewhere",
                value=self.slowdown,
                expected="1 or more",
            )

    @property
    def text(self) -> str:
        """Format it as the jobs table has it: ``partition:a,b``."""
        return f"{self.kind}:{','.join(self.names)}"

    @classmethod
    def parse(cls, text: str, slowdown: float = 1.0) -> Preference:
        """The preference that a text of the jobs table names.

        Raises ``InputError`` if it is none.
        """
        kind, _, names = text.partition(":")
        if kind not in set(PreferenceKind):
            raise InputError(
                "not a preference",
                field="preferred",
                value=text,
                expected=", ".join(f"{each}:name,..." for each in PreferenceKind),
            )
        return cls(PreferenceKind(kind), tuple(name.strip() for name in names.split(",")), slowdown)

    def holds(self, tasks_by_node: Iterable[tuple[Node, str, int]]) -> bool:
        """Return whether tasks (node, partition, how many) are where they are preferred."""
        placed = list(tasks_by_node)
        match self.kind:
            case PreferenceKind.PARTITION:
                return all(belongs(record, self.names) for _, record, _ in placed)
            case PreferenceKind.ATTRIBUTE:
                return all(
                    any(name in node.attributes for name in self.names) for node, _, _ in placed
                )
            case PreferenceKind.SAME:
                values = {node.attributes.get(self.names[0]) for node, _, _ in placed}
                return len(values) == 1 and None not in values
            case PreferenceKind.SPREAD:
                values = {node.attributes.get(self.names[0]) for node, _, _ in placed}
                alone = all(tasks == 1 for _, _, tasks in placed)
                return alone and len(values) == len(placed) and None not in values


@dataclass(frozen=True, slots=True)
class OptionPart:
    """So many tasks of a job on nodes of a set."""

    nodes: tuple[str, ...]
    """Names of the nodes, in order; of partitions, on a cluster without named nodes."""
    tasks: int
    """Number of tasks that run there; at most, where the parts of an option have places for more
    tasks than the job has."""


@dataclass(frozen=True, slots=True)
class PlacementOption:
    """One of the places where all tasks of a job may run."""

    parts: tuple[OptionPart, ...]
    """Tasks by set of nodes; all tasks of the job together, or more: then any of these places will
    do. Sets may overlap."""
    slowdown: float
    """Factor by which the job runs longer there than in its quickest option; at least 1."""
    starts: tuple[tuple[float, float], ...]
    """Seconds since submission and what a start is worth from then on, until the next one; at least
    one, the seconds ascending. Before the first of them, and where the worth is 0, the job does not
    start there."""

    @property
    def value(self) -> float:
        """Return the highest worth of a start."""
        return max(value for _, value in self.starts)

    def value_at(self, waited_seconds: float) -> float:
        """Return the worth of a start so long after submission."""
        at = bisect_right(self.starts, waited_seconds, key=lambda start: start[0])
        return self.starts[at - 1][1] if at else 0.0

    def values_after(self, waited_seconds: float) -> Iterable[tuple[float, float]]:
        """The starts later than that, and what these are worth."""
        return ((start, value) for start, value in self.starts if start > waited_seconds)

    def holds(self, placed: Sequence[tuple[str, int]]) -> bool:
        """Return whether tasks that are placed so, by node or partition, are where it has them."""
        if len(self.parts) == 1:
            nodes = self.parts[0].nodes
            return all(name in nodes for name, _ in placed)
        tasks = [name for name, count in placed for _ in range(count)]
        places = [part.nodes for part in self.parts for _ in range(part.tasks)]
        return len(tasks) <= len(places) and _all_have_places(tasks, places)


def option_of(
    options: Sequence[PlacementOption], placed: Sequence[tuple[str, int]]
) -> PlacementOption | None:
    """The quickest of the options that tasks placed so are one of; None if of none of them."""
    held = [option for option in options if option.holds(placed)]
    return min(held, key=lambda option: option.slowdown, default=None)


def _all_have_places(tasks: Sequence[str], places: Sequence[Sequence[str]]) -> bool:
    """Return whether every task can have its own place among those with its node (Kuhn 1955)."""
    taken: dict[int, int] = {}

    def is_placed(task: int, tried: set[int]) -> bool:
        for place, nodes in enumerate(places):
            if place in tried or tasks[task] not in nodes:
                continue
            tried.add(place)
            if place not in taken or is_placed(taken[place], tried):
                taken[place] = task
                return True
        return False

    return all(is_placed(task, set()) for task in range(len(tasks)))
