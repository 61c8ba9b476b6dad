"""Places where jobs may run: classes of like nodes as bits, sets of them, and unions of sets.

Amounts of resources are arrays of three: cpus, memory and gpus. Memory is counted in what the
cluster has of it for a cpu, so that numbers are of like size.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np

from foresail.model.cluster import Cluster, Node, Resources, belongs
from foresail.model.decision import Placement
from foresail.model.distribution import Booleans, Floats, Integers
from foresail.model.job import Job
from foresail.model.placing import NodesByPreference, tasks_within
from foresail.model.preference import PlacementOption, Preference, PreferenceKind

Key = TypeVar("Key", bound=Hashable)
Known = TypeVar("Known")

RESOURCES: Final = ("cpus", "memory", "gpus")
AMOUNTS: Final = (attrgetter("cpus"), attrgetter("memory_bytes"), attrgetter("gpus"))

_MOST_REMEMBERED: Final = 10_000
_MOST_UNIONS: Final = 256
"""Beyond so many, sets and unions are left out: the later part of a plan may be too hopeful."""


@dataclass(frozen=True, slots=True)
class Space:
    """A set of places, as bits of cells, and how many times longer a job runs there.

    ``parts`` are sets of which each holds one task (failure domains, or the parts of an option);
    none if tasks may be anywhere in it. Of more parts than tasks, some are still to be chosen.
    ``option`` is the job's own that is to be had here, if any.
    """

    cells: int
    slowdown: float
    parts: tuple[int, ...] = ()
    option: PlacementOption | None = None


class CellMap:
    """The cells of a cluster: nodes of one partition with the same attributes, of about one size.

    A partition without named nodes is one cell, and a gang stays within it. ``totals`` are the cpus
    of every cell, ``amounts`` all that it has, in shape (resources, cells), ``largest_first`` the
    cells in order of cpus. Nodes of which ``named_sets`` have only some are in different cells.
    """

    def __init__(self, cluster: Cluster, named_sets: Sequence[Collection[str]] = ()) -> None:
        self.cluster: Final = cluster
        self.named_sets: Final = tuple(map(frozenset, named_sets))
        self.has_nodes: Final = any(partition.nodes for partition in cluster.partitions)
        self.nodes: Final = {
            node.name: node for partition in cluster.partitions for node in partition.nodes
        }
        self.cell_of_node: Final[dict[str, int]] = {}
        self.cell_of_partition: Final[dict[str, int]] = {}
        self.partitions: Final[list[str]] = []
        self._likeness: list[Node | None] = []
        self._sizes: Final[list[Counter[Resources]]] = []
        for partition in cluster.partitions:
            cells: dict[object, int] = {}
            for node in partition.nodes:
                like = (
                    frozenset(node.attributes.items()),
                    *(_size_class(amount(node.total)) for amount in AMOUNTS),
                    *(node.name in names for names in self.named_sets),
                )
                if like not in cells:
                    cells[like] = self._add(partition.name, node)
                self.cell_of_node[node.name] = cells[like]
                self._sizes[cells[like]][node.total] += 1
            if not partition.nodes:
                self.cell_of_partition[partition.name] = self._add(partition.name, None)
                self._sizes[-1][partition.total] += 1
        total = cluster.total
        memory = total.memory_bytes / total.cpus if total.cpus else total.memory_bytes
        self.units: Final = np.array([1.0, memory or 1.0, 1.0])
        self.amounts: Final[Floats] = np.array(
            [
                sum((count * self.measured(each) for each, count in of_cell.items()), np.zeros(3))
                for of_cell in self._sizes
            ]
        ).reshape(-1, 3).T  # fmt: skip
        self.totals: Final[Floats] = self.amounts[0]
        self.largest_first: Final[Sequence[int]] = np.argsort(-self.totals, kind="stable").tolist()
        self._partition_totals: Final = {each.name: each.total for each in cluster.partitions}
        self._partition_cells: dict[str, int] = {}
        for cell, name in enumerate(self.partitions):
            self._partition_cells[name] = self._partition_cells.get(name, 0) | 1 << cell
        self._preferred: dict[Preference, tuple[int, ...]] = {}
        self._tasks: dict[Resources, tuple[int, ...]] = {}
        self._spaces: dict[tuple[object, ...], list[Space]] = {}
        self._named_cells: dict[tuple[str, ...], int] = {}
        self._held: dict[int, tuple[Job, Placement, Floats]] = {}
        self._prefers: dict[int, tuple[Preference, Placement, bool]] = {}
        self._names: Final = list(self.cell_of_node)
        self._cells: Final = np.array(list(self.cell_of_node.values()), np.int64)
        self._node_counts: Final = Counter(self.cell_of_node.values())
        self.named: Final = NodesByPreference(cluster, self.cell_of_node)

    def _add(self, partition: str, node: Node | None) -> int:
        self.partitions.append(partition)
        self._likeness.append(node)
        self._sizes.append(Counter())
        return len(self.partitions) - 1

    def measured(self, resources: Resources) -> Floats:
        """Resources as amounts; shape (resources,)."""
        measured: Floats = np.array([amount(resources) for amount in AMOUNTS]) / self.units
        return measured

    def tasks(self, request: Resources) -> tuple[int, ...]:
        """Return how many tasks fit on the nodes of every cell if they are empty."""
        if request not in self._tasks:
            self._tasks[request] = tuple(
                sum(count * tasks_within(request, room) for room, count in of_cell.items())
                for of_cell in self._sizes
            )
        return self._tasks[request]

    def spaces(self, job: Job, soft_constraints: bool) -> list[Space]:
        """The sets of places in which the job could run on the empty cluster, the best first.

        Those of a job with options are in their order.
        """
        if job.options:
            return [space for each in job.options for space in self._spaces_of(job, each)]
        if not self.has_nodes:
            return [
                Space(1 << cell, 1.0)
                for name, cell in self.cell_of_partition.items()
                if self.named.named.allows(job.partition, name)
                and job.total.fits_in(self._partition_totals[name])
            ]
        if len(job.stages) > 1:  # it stays within one partition, whatever the nodes
            return [
                Space(cells, 1.0)
                for name, cells in self._partition_cells.items()
                if self.named.named.allows(job.partition, name)
                and job.total.fits_in(self._partition_totals[name])
            ]
        within = self._within(job)
        key = (job.preference, job.stages[0].request, job.tasks, soft_constraints, within)
        if key not in self._spaces:
            each = (self._preferred_first(*key[:-1], cells) for cells in within)
            self._spaces[key] = [space for some in each for space in some]
        return self._spaces[key]

    def _within(self, job: Job) -> tuple[int, ...]:
        """The cells of each partition that the job names; all at once if it names none."""
        named = self.named.named
        asked = [named.records[name] for name in named.asked(job.partition)]
        cells = [sum(self._partition_cells.get(each, 0) for each in records) for records in asked]
        return tuple(cells) or ((1 << len(self.partitions)) - 1,)

    def _spaces_of(self, job: Job, option: PlacementOption) -> Iterator[Space]:
        """The set of places of an option; on a cluster without named nodes, those of it."""
        if not self.has_nodes:
            for name in option.parts[0].nodes:
                if job.total.fits_in(self._partition_totals[name]):
                    cell = self.cell_of_partition[name]
                    yield Space(1 << cell, option.slowdown, option=option)
            return
        fitting = self.tasks(job.stages[0].request)
        usable = sum(1 << cell for cell, count in enumerate(fitting) if count)
        apart: list[int] = []
        for part in option.parts:
            cells = self.cells_with(part.nodes) & usable
            apart += [cells] * min(part.tasks, sum(fitting[cell] for cell in bits(cells)))
        if len(apart) >= job.tasks:
            everywhere = functools.reduce(operator.or_, apart)
            parts = tuple(apart) if len(option.parts) > 1 else ()
            yield Space(everywhere, option.slowdown, parts, option)

    def cells_with(self, nodes: tuple[str, ...]) -> int:
        """The cells of some nodes, those that are there."""
        known = self._named_cells.get(nodes)
        if known is None:
            there = {self.cell_of_node[name] for name in nodes if name in self.cell_of_node}
            known = sum(1 << cell for cell in there)
            _remember(self._named_cells, nodes, known)
        return known

    def separates(self, nodes: tuple[str, ...]) -> bool:
        """Return whether the cells of some nodes have no others."""
        return sum(self._node_counts[cell] for cell in bits(self.cells_with(nodes))) == sum(
            name in self.cell_of_node for name in nodes
        )

    def _preferred_first(
        self,
        preference: Preference | None,
        request: Resources,
        tasks: int,
        soft_constraints: bool,
        within: int,
    ) -> list[Space]:
        """Only cells with nodes that one task fits on, and sets of them with room for all tasks."""
        fitting = self.tasks(request)
        usable = sum(1 << cell for cell, count in enumerate(fitting) if count) & within
        if sum(fitting[cell] for cell in bits(usable)) < tasks:
            return []
        if preference is None:
            return [Space(usable, 1.0)]
        spaces: list[Space] = []
        if soft_constraints:
            sets = [cells & usable for cells in self._sets_of(preference)]
            spaces = [
                Space(cells, 1.0)
                for cells in sets
                if sum(fitting[cell] for cell in bits(cells)) >= tasks
            ]
        if Space(usable, 1.0) not in spaces:
            spaces.append(Space(usable, preference.slowdown))
        return spaces

    def domains(self, job: Job) -> Sequence[int]:
        """Failure domains in which one task of a job could run, if it prefers to be spread."""
        preference = job.preference
        if preference is None or preference.kind is not PreferenceKind.SPREAD:
            return ()
        if len(job.stages) > 1 or not self.has_nodes:
            return ()
        fitting = self.tasks(job.stages[0].request)
        anywhere = functools.reduce(operator.or_, self._within(job))
        domains = [
            sum(1 << cell for cell in bits(domain & anywhere) if fitting[cell])
            for domain in self._by_value(preference.names[0])
        ]
        return [domain for domain in domains if domain]

    def _sets_of(self, preference: Preference) -> tuple[int, ...]:
        if preference not in self._preferred:
            self._preferred[preference] = tuple(self._sets(preference))
        return self._preferred[preference]

    def _sets(self, preference: Preference) -> Iterator[int]:
        """Sets within which all is preferred; none of ``SPREAD``."""
        names = preference.names
        match preference.kind:
            case PreferenceKind.PARTITION:
                chosen = [cell for cell, name in enumerate(self.partitions) if belongs(name, names)]
            case PreferenceKind.ATTRIBUTE:
                chosen = [
                    cell
                    for cell, node in enumerate(self._likeness)
                    if node is not None and any(name in node.attributes for name in names)
                ]
            case PreferenceKind.SAME:
                yield from self._by_value(names[0])
                return
            case PreferenceKind.SPREAD:
                return
        if chosen:
            yield sum(1 << cell for cell in chosen)

    def _by_value(self, attribute: str) -> Iterator[int]:
        by_value: dict[str, int] = {}
        for cell, node in enumerate(self._likeness):
            if node is not None and attribute in node.attributes:
                value = node.attributes[attribute]
                by_value[value] = by_value.get(value, 0) | 1 << cell
        yield from (by_value[value] for value in sorted(by_value))

    def prefers(self, preference: Preference, placement: Placement) -> bool:
        """Return whether a placement on named nodes is a preferred one."""
        known = self._prefers.get(id(placement))
        if known is None or known[0] is not preference or known[1] is not placement:
            holds = preference.holds(
                (self.nodes[name], self.partitions[self.cell_of_node[name]], tasks)
                for name, tasks in placement.tasks_by_node
            )
            known = (preference, placement, holds)
            _remember(self._prefers, id(placement), known)
        return known[2]

    def cells_of(self, nodes: Iterable[str]) -> Integers:
        """The cell of each of some nodes; shape (nodes,)."""
        names = list(nodes)
        if names == self._names:  # as ever, unless some are down
            return self._cells
        return np.array([self.cell_of_node[name] for name in names], np.int64)

    def held(self, job: Job, placement: Placement) -> Floats:
        """Amounts that a running job holds, shape (resources, cells); not to be changed."""
        known = self._held.get(id(placement))
        if known is None or known[0] is not job or known[1] is not placement:
            known = (job, placement, self._counted(job, placement))
            _remember(self._held, id(placement), known)
        return known[2]

    def _counted(self, job: Job, placement: Placement) -> Floats:
        held = np.zeros(self.amounts.shape)
        each = self.measured(job.total) / job.tasks
        for name, tasks in placement.tasks_by_node:
            held[:, self.cell_of_node[name]] += each * tasks
        if not placement.tasks_by_node:
            for name, tasks in placement.tasks_by_partition:
                cells = list(bits(self._partition_cells[name]))
                whole = np.maximum(self.amounts[:, cells].sum(axis=1, keepdims=True), 1e-300)
                held[:, cells] += (each * tasks)[:, np.newaxis] * (self.amounts[:, cells] / whole)
        return held


def _size_class(amount: float) -> float:
    """Equal for amounts that differ by less than a fifth, mostly."""
    return float(round(2.0 * math.log2(amount))) if amount > 0.0 else -math.inf


def _remember(known: dict[Key, Known], key: Key, value: Known) -> None:
    """Keep what is asked about jobs every cycle, and not for ever."""
    if len(known) >= _MOST_REMEMBERED:
        known.clear()
    known[key] = value


def bits(cells: int) -> Iterator[int]:
    """Numbers of the cells in a set."""
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def most_asked(sets: Sequence[int], asked: Sequence[float], totals: Floats) -> Sequence[int]:
    """Some sets; of too many, those of which most is asked for what they have, and their union.

    So many cpus are ``asked`` of each; ``totals`` are the cpus of every cell.
    """
    if len(sets) <= _MOST_UNIONS:
        return sets
    has = membership(sets, totals.size) @ totals
    pressed = np.argsort(-np.array(asked) / np.maximum(has, 1e-300), kind="stable")
    everything = functools.reduce(operator.or_, sets)
    few = [sets[at] for at in pressed[: _MOST_UNIONS - 1].tolist()]
    return list(dict.fromkeys([everything, *few]))


def unions_of(sets: Iterable[int]) -> list[int]:
    """The sets and the unions of those that overlap; of many, only the first few hundred.

    A union of sets that do not overlap holds no more than each of them: its row says nothing new.
    """
    unions = list(sets)
    known = set(unions)
    at = 0
    while at < len(unions):
        for other in range(at):
            both = unions[at] | unions[other]
            if unions[at] & unions[other] and both not in known and len(unions) < _MOST_UNIONS:
                known.add(both)
                unions.append(both)
        at += 1
    return unions


def membership(sets: Iterable[int], cells: int) -> Booleans:
    """Sets of cells as a matrix; shape (sets, cells)."""
    return np.array(
        [[bool(each >> cell & 1) for cell in range(cells)] for each in sets], np.bool_
    ).reshape(-1, cells)


_MOST_CHOICES: Final = 16
"""Choices of domains for a job; half of them by what is free now where there are more."""


def spread_spaces(job: Job, places: CellMap, free_cells: Floats) -> list[Space]:
    """The sets of domains in which a job that prefers to be spread may run, one task in each.

    ``free_cells`` are free cpus of every cell.
    """
    domains = places.domains(job)
    if not 0 < job.tasks <= len(domains):
        return []
    return [Space(sum(parts), 1.0, parts) for parts in _choices(domains, job, places, free_cells)]


def chosen_parts(space: Space, job: Job, places: CellMap, free_cells: Floats) -> list[Space]:
    """A set of places as it is, or of more parts than tasks, the choices of as many of them.

    ``free_cells`` are free cpus of every cell.
    """
    if len(space.parts) <= job.tasks:
        return [space]
    return [
        replace(space, cells=functools.reduce(operator.or_, parts), parts=parts)
        for parts in _choices(space.parts, job, places, free_cells)
    ]


def _choices(
    parts: Sequence[int], job: Job, places: CellMap, free_cells: Floats
) -> Iterable[tuple[int, ...]]:
    """Parts for all tasks of a job; a part that may hold several tasks is there as often."""
    if math.comb(len(parts), job.tasks) <= _MOST_CHOICES:
        chosen: Iterable[Sequence[int]] = combinations(parts, job.tasks)
    else:
        each = job.cpus / job.tasks
        chosen = [
            choice
            for amounts in (free_cells, places.totals)
            for choice in _in_turn(_freest_first(parts, amounts, each), job.tasks)
        ]
    return dict.fromkeys(tuple(sorted(each)) for each in chosen)


def most_spaces(job: Job, places: CellMap, soft_constraints: bool) -> int:
    """Return how many sets of places a job may have, of domains and others."""
    anywhere = places.spaces(job, soft_constraints)
    if job.options:
        return sum(_MOST_CHOICES if len(space.parts) > job.tasks else 1 for space in anywhere)
    preference = job.preference
    spreads = preference is not None and preference.kind is PreferenceKind.SPREAD
    return len(anywhere) + (_MOST_CHOICES if spreads and soft_constraints else 0)


def _freest_first(parts: Sequence[int], amounts: Floats, each: float) -> Sequence[int]:
    """The parts by what they have left; one that is there again has a task of ``each`` less."""
    seen: Counter[int] = Counter()
    left = []
    for part in parts:
        left.append(sum(amounts[cell] for cell in bits(part)) - each * seen[part])
        seen[part] += 1
    return [parts[at] for at in sorted(range(len(parts)), key=lambda at: -left[at])]


def _in_turn(domains: Sequence[int], count: int) -> list[Sequence[int]]:
    """So many neighbours each, which overlap as little as may be."""
    most = _MOST_CHOICES // 2
    begins = (
        range(0, len(domains) - count + 1, count)
        if count * 2 <= len(domains)
        else range(len(domains) - count + 1)
    )
    return [domains[begin : begin + count] for begin in begins[:most]]
