"""Where jobs may run: classes of like nodes as bits, sets of places, and unions of those sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from foresail.model.cluster import Cluster, Node
from foresail.model.decision import Placement
from foresail.model.job import Job
from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._placing import NodesByPreference

Floats = NDArray[np.float64]

Known = TypeVar("Known")

_MOST_REMEMBERED: Final = 10_000
_MOST_UNIONS: Final = 256
"""Beyond so many, unions are left out: the later part of a plan may then be too hopeful."""


@dataclass(frozen=True, slots=True)
class Space:
    """A set of places, as bits of cells, and how many times longer a job runs there."""

    cells: int
    slowdown: float


class CellMap:
    """The cells of a cluster: nodes of one partition with the same attributes.

    A partition without named nodes is one cell, and a gang stays within it.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster: Final = cluster
        self.named: Final = NodesByPreference(cluster)
        self.has_nodes: Final = any(partition.nodes for partition in cluster.partitions)
        self.nodes: Final = {
            node.name: node for partition in cluster.partitions for node in partition.nodes
        }
        self.cell_of_node: Final[dict[str, int]] = {}
        self.cell_of_partition: Final[dict[str, int]] = {}
        self.partitions: Final[list[str]] = []
        self._likeness: list[Node | None] = []
        totals: list[float] = []
        for partition in cluster.partitions:
            cells: dict[frozenset[tuple[str, str]], int] = {}
            for node in partition.nodes:
                like = frozenset(node.attributes.items())
                if like not in cells:
                    cells[like] = self._add(partition.name, node, totals)
                self.cell_of_node[node.name] = cells[like]
                totals[cells[like]] += node.total.cpus
            if not partition.nodes:
                self.cell_of_partition[partition.name] = self._add(partition.name, None, totals)
                totals[-1] = partition.total.cpus
        self.totals: Final[Floats] = np.array(totals)
        self.everywhere: Final = (1 << len(totals)) - 1
        self._partition_cells: dict[str, int] = {}
        for cell, name in enumerate(self.partitions):
            self._partition_cells[name] = self._partition_cells.get(name, 0) | 1 << cell
        self._preferred: dict[Preference, tuple[int, ...]] = {}
        self._sizes: dict[int, float] = {}
        self._spaces: dict[tuple[Preference, float, int, bool], list[Space]] = {}
        self._held: dict[int, tuple[Job, Placement, Floats]] = {}
        self._prefers: dict[int, tuple[Preference, Placement, bool]] = {}
        names: list[list[str]] = [[] for _ in totals]
        for name, cell in self.cell_of_node.items():
            names[cell].append(name)
        self._nodes_of: Final = [frozenset(each) for each in names]

    def _add(self, partition: str, node: Node | None, totals: list[float]) -> int:
        self.partitions.append(partition)
        self._likeness.append(node)
        totals.append(0.0)
        return len(totals) - 1

    def size(self, cells: int) -> float:
        """Cpus of a set of cells."""
        if cells not in self._sizes:
            self._sizes[cells] = float(sum(self.totals[cell] for cell in bits(cells)))
        return self._sizes[cells]

    def spaces(self, job: Job, soft_constraints: bool) -> list[Space]:
        """The sets of places in which the job could run on the empty cluster, the best first."""
        if not self.has_nodes:
            return [
                Space(1 << cell, 1.0)
                for name, cell in self.cell_of_partition.items()
                if job.partition in (None, name) and job.cpus <= self.totals[cell]
            ]
        if len(job.stages) > 1:  # it stays within one partition, whatever the nodes
            return [
                Space(cells, 1.0)
                for name, cells in self._partition_cells.items()
                if job.partition in (None, name) and job.cpus <= self.size(cells)
            ]
        preference = job.preference
        if job.cpus > self.size(self.everywhere):
            return []
        if preference is None:
            return [Space(self.everywhere, 1.0)]
        key = (preference, job.cpus, job.tasks, soft_constraints)
        if key not in self._spaces:
            self._spaces[key] = self._preferred_first(*key)
        return self._spaces[key]

    def _preferred_first(
        self, preference: Preference, cpus: float, tasks: int, soft_constraints: bool
    ) -> list[Space]:
        spaces: list[Space] = []
        if soft_constraints:
            sets = self._sets_of(preference, tasks)
            spaces = [Space(cells, 1.0) for cells in sets if cpus <= self.size(cells)]
        if Space(self.everywhere, 1.0) not in spaces:
            spaces.append(Space(self.everywhere, preference.slowdown))
        return spaces

    def _sets_of(self, preference: Preference, tasks: int) -> tuple[int, ...]:
        if preference not in self._preferred:
            self._preferred[preference] = tuple(self._sets(preference))
        sets = self._preferred[preference]
        if preference.kind is not PreferenceKind.SPREAD:
            return sets
        union = 0
        for cells in sets:
            union |= cells
        return (union,) if len(sets) >= tasks else ()

    def _sets(self, preference: Preference) -> Iterator[int]:
        """Sets within which all is preferred; of ``SPREAD``, the domains."""
        names = preference.names
        match preference.kind:
            case PreferenceKind.PARTITION:
                chosen = [cell for cell, name in enumerate(self.partitions) if name in names]
            case PreferenceKind.ATTRIBUTE:
                chosen = [
                    cell
                    for cell, node in enumerate(self._likeness)
                    if node is not None and any(name in node.attributes for name in names)
                ]
            case PreferenceKind.SAME | PreferenceKind.SPREAD:
                yield from self._by_value(names[0])
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
        """Whether a placement on named nodes is a preferred one."""
        known = self._prefers.get(id(placement))
        if known is None or known[0] is not preference or known[1] is not placement:
            holds = preference.holds(
                (self.nodes[name], self.partitions[self.cell_of_node[name]], tasks)
                for name, tasks in placement.tasks_by_node
            )
            known = (preference, placement, holds)
            _remember(self._prefers, id(placement), known)
        return known[2]

    def nodes_of(self, cell: int) -> frozenset[str]:
        """Names of the nodes of a cell."""
        return self._nodes_of[cell]

    def held(self, job: Job, placement: Placement) -> Floats:
        """Cpus of every cell that a running job holds; shape (cells,), not to be written to."""
        known = self._held.get(id(placement))
        if known is None or known[0] is not job or known[1] is not placement:
            known = (job, placement, self._counted(job, placement))
            _remember(self._held, id(placement), known)
        return known[2]

    def _counted(self, job: Job, placement: Placement) -> Floats:
        held = np.zeros(self.totals.size)
        each = job.cpus / job.tasks
        for name, tasks in placement.tasks_by_node:
            held[self.cell_of_node[name]] += each * tasks
        if not placement.tasks_by_node:
            for name, tasks in placement.tasks_by_partition:
                cells = list(bits(self._partition_cells[name]))
                share = self.totals[cells] / self.totals[cells].sum()
                held[cells] += each * tasks * share
        return held


def _remember(known: dict[int, Known], key: int, value: Known) -> None:
    """Keep what is asked about running jobs every cycle, and not for ever."""
    if len(known) >= _MOST_REMEMBERED:
        known.clear()
    known[key] = value


def bits(cells: int) -> Iterator[int]:
    """Numbers of the cells in a set."""
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def unions_of(sets: Iterable[int]) -> list[int]:
    """The sets and the unions of those that overlap; of many, only the first few hundred.

    A union of sets that do not overlap holds no more than each of them: its row says nothing new.
    """
    unions = list(dict.fromkeys(sets))
    known = set(unions)
    most = max(_MOST_UNIONS, len(unions))
    at = 0
    while at < len(unions):
        for other in range(at):
            both = unions[at] | unions[other]
            if unions[at] & unions[other] and both not in known and len(unions) < most:
                known.add(both)
                unions.append(both)
        at += 1
    return unions


def membership(sets: Iterable[int], cells: int) -> NDArray[np.bool_]:
    """Sets of cells as a matrix; shape (sets, cells)."""
    return np.array(
        [[bool(each >> cell & 1) for cell in range(cells)] for each in sets], np.bool_
    ).reshape(-1, cells)
