"""Options: the places where a job says that it may run, from when on, and what that is worth."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foresail.model.decision import Placement


@dataclass(frozen=True, slots=True)
class OptionPart:
    """So many tasks of a job on nodes of a set."""

    nodes: tuple[str, ...]
    """Names of the nodes, in order; of partitions, on a cluster without named nodes."""
    tasks: int
    """How many tasks run there; at most, where the parts of an option have places for more tasks
    than the job has."""


@dataclass(frozen=True, slots=True)
class PlacementOption:
    """One of the places where all tasks of a job may run."""

    parts: tuple[OptionPart, ...]
    """Tasks by set of nodes; all tasks of the job together, or more: then any of these places will
    do. Sets may overlap."""
    slowdown: float
    """How many times longer the job runs there than in its quickest option; at least 1."""
    starts: tuple[tuple[float, float], ...]
    """Seconds since submission and what a start is worth from then on, until the next one; at least
    one, the seconds ascending. Before the first of them, and where the worth is 0, the job does not
    start there."""

    @property
    def value(self) -> float:
        """What a start is worth at most."""
        return max(value for _, value in self.starts)

    def value_at(self, waited_seconds: float) -> float:
        """What a start is worth so long after submission."""
        at = bisect_right(self.starts, waited_seconds, key=lambda start: start[0])
        return self.starts[at - 1][1] if at else 0.0

    def values_after(self, waited_seconds: float) -> Iterable[tuple[float, float]]:
        """The starts later than that, and what these are worth."""
        return ((start, value) for start, value in self.starts if start > waited_seconds)

    def holds(self, placement: Placement) -> bool:
        """Whether the tasks of a placement are where this option has them."""
        placed = placement.tasks_by_node or placement.tasks_by_partition
        if len(self.parts) == 1:
            nodes = self.parts[0].nodes
            return all(name in nodes for name, _ in placed)
        tasks = [name for name, count in placed for _ in range(count)]
        places = [part.nodes for part in self.parts for _ in range(part.tasks)]
        return len(tasks) <= len(places) and _all_have_places(tasks, places)


def option_of(options: Sequence[PlacementOption], placement: Placement) -> PlacementOption | None:
    """The quickest of the options that a placement is one of; None if it is none of them."""
    held = [option for option in options if option.holds(placement)]
    return min(held, key=lambda option: option.slowdown, default=None)


def _all_have_places(tasks: Sequence[str], places: Sequence[Sequence[str]]) -> bool:
    """Whether every task can have a place of its own among those with its node (Kuhn 1955)."""
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
