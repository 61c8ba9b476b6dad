"""From an expression to a mixed-integer program over partitions of nodes and slots of time.

Source: Tumanov et al., TetriSched (EuroSys 2016), Algorithm 1, with the corrections of spec
tetrisched section 6: time is half-open, and slots after the last start are supplied as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from foresail.milp.solver import Program, ProgramBuilder
from foresail.model.distribution import Floats, Integers
from foresail.strl import expression as strl
from foresail.strl.slots import LeafTable, Partitions, free_nodes, free_slots, leaf_table, refine


@dataclass(slots=True, eq=False)
class Branch:
    """A place in an expression's tree."""

    expression: strl.Expression
    """Expression at this place."""
    number: int
    """Its number, parents before children."""
    indicator: int
    """Binary column that must be 1 for the branch to be given anything."""
    leaf: int = -1
    """Number of the leaf; -1 for an operator."""
    level: int = -1
    """Column of what a ``min`` is worth; -1 for the others."""
    highest: float = 0.0
    """Worth of the branch at most, were it alone."""
    work: float = 0.0
    """Slots times nodes of a way to ``highest``."""
    children: list[Branch] = field(default_factory=list)
    """Branches below, in order."""

    @property
    def density(self) -> float:
        """Return what it may be worth for each node and slot."""
        return self.highest / self.work if self.work else 0.0


def worths(root: Branch, amounts: Sequence[int]) -> dict[int, float]:
    """Return what the branches are worth, by their numbers, for the nodes given to every leaf.

    Those worth nothing are left out.
    """
    found: dict[int, float] = {}
    _worth(root, amounts, found)
    return found


def _worth(branch: Branch, amounts: Sequence[int], found: dict[int, float]) -> float:
    expression = branch.expression
    if isinstance(expression, strl.NChooseK | strl.LinearNChooseK):
        worth = _leaf_worth(expression, amounts[branch.leaf])
    else:
        below = [_worth(child, amounts, found) for child in branch.children]
        worth = strl.combined_worth(expression, below)
    if worth > 0.0:
        found[branch.number] = worth
    return worth


def _leaf_worth(leaf: strl.NChooseK | strl.LinearNChooseK, amount: int) -> float:
    if not amount:
        return 0.0
    if isinstance(leaf, strl.NChooseK):
        return leaf.value if amount == leaf.count else 0.0
    return leaf.value * amount / leaf.count if amount <= leaf.count else 0.0


_OBJECTIVE = -1


Formulation: TypeAlias = Literal["tight", "published"]
"""Two ways to write a program with the same best plans.

``published`` has a supply row for every slot in which a partition may be held, and one row that
keeps the indicators of a ``sum``'s children below the parent's. ``tight`` has supply rows only for
slots in which some leaf starts (in the others no more is held than in the slot before, and no less
is free), one row for each of the children, which makes for a stronger relaxation, and no column of
its own for an ``nCk`` with only one partition to take from.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program and what its columns mean."""

    program: Program
    """Maximises what the expression is worth."""
    root: Branch
    """The expression's tree."""
    leaves: LeafTable
    """Its leaves, by number."""
    nodes: tuple[str, ...]
    """Names of the nodes, in the order of ``free_from`` and of the partitions."""
    free_from: Floats
    """First slot in which each node is free."""
    partitions: Partitions
    """Partitions of the nodes, by the leaves' sets."""
    slots: Floats
    """The slots that have supply rows, ascending."""
    free: Integers
    """Free nodes of every partition in every one of the slots."""
    part_leaf: Integers
    part_partition: Integers
    """The parts: shares of a partition that a leaf can be given; shape (parts,)."""
    part_column: Integers
    part_unit: Integers
    """Column of how much of the part is given, and how many nodes one of it stands for."""
    build_seconds: float
    """Time that compiling took."""

    def given(self, values: Floats) -> Integers:
        """Nodes given to every part (a leaf's share of a partition) by a solution's values."""
        return np.rint(values[self.part_column]).astype(np.int64) * self.part_unit

    def amounts(self, given: Integers) -> Integers:
        """Nodes given to every leaf; shape (leaves,)."""
        sums = np.bincount(self.part_leaf, given, self.leaves.counts.size)
        return sums.astype(np.int64)

    def values(self, given: Integers) -> Floats:
        """The program's columns for an allocation that nothing is given away in for nothing.

        Of nodes given to every part; leaves that add no worth are given none.
        """
        columns = np.zeros(self.program.objective.size)
        columns[self.part_column] = given // self.part_unit
        _set_columns(self.root, self.amounts(given), columns)
        return columns


def compile_expression(
    expression: strl.Expression,
    supply: strl.Supply,
    quantum_seconds: float,
    formulation: Formulation = "tight",
) -> Compiled:
    """The program whose best values are the best allocation of an expression.

    Several jobs are the children of a ``Sum``; starts count from now. ``supply`` says until when
    running jobs are expected to hold nodes. A leaf holds its nodes in every slot, of
    ``quantum_seconds``, that it touches. Raises ``InputError`` if a leaf starts before 0, or the
    quantum is not above 0.
    """
    began = time.perf_counter()
    asked = strl.leaves(expression)
    places: dict[frozenset[str], int] = {}
    sets = np.array([places.setdefault(leaf.nodes, len(places)) for leaf in asked])
    nodes = tuple(sorted(supply.nodes))
    partitions = refine(nodes, tuple(places))
    table = leaf_table(asked, sets, quantum_seconds)
    free_from = free_slots(nodes, supply, quantum_seconds)
    if formulation == "published":
        slots = np.arange(table.first.min(), table.last.max())
    else:
        slots = np.unique(table.first)
    free = free_nodes(partitions, free_from, slots)

    parts = _parts(partitions, table, free, slots)
    tree = _Tree(table, parts.room, formulation)
    root = tree.grow(expression)
    part_column, part_unit = _add_parts(tree, parts, free, slots)
    program = tree.builder.build()
    return Compiled(
        program=program,
        root=root,
        leaves=table,
        nodes=nodes,
        free_from=free_from,
        partitions=partitions,
        slots=slots,
        free=free,
        part_leaf=parts.leaf,
        part_partition=parts.partition,
        part_column=part_column,
        part_unit=part_unit,
        build_seconds=time.perf_counter() - began,
    )


class _Tree:
    """Grows the branches, and writes down columns, rows and entries as it goes.

    What a branch is worth flows into a row (or the objective) with a factor: both are handed down,
    so that no linear form is ever copied.
    """

    def __init__(self, table: LeafTable, room: Integers, formulation: Formulation) -> None:
        self.builder = ProgramBuilder()
        self.table = table
        self.tight = formulation == "tight"
        leaf_count = table.counts.size
        most = np.minimum(table.counts, room)
        reachable = table.linear | (most == table.counts)
        self._highest = np.where(reachable, table.values * most / table.counts, 0.0).tolist()
        self._work = (most * (table.last - table.first)).tolist()
        self._grown_leaves = 0
        self._branches = 0
        self.leaf_indicator = np.zeros(leaf_count, np.int64)
        self.leaf_row = np.zeros(leaf_count, np.int64)
        self.leaf_factor = np.zeros(leaf_count)
        self._upper: list[float] = []
        self._binary: list[bool] = []
        self._rows = 0
        self._entries: tuple[list[int], list[int], list[float]] = ([], [], [])

    def grow(self, expression: strl.Expression) -> Branch:
        """The tree of an expression; its columns and rows are in the builder afterwards."""
        root = self._grow(expression, self._column(upper=1.0, binary=True), _OBJECTIVE, 1.0)
        self.builder.add_columns(0.0, self._upper, self._binary)
        if self._rows:
            self.builder.add_rows(np.full(self._rows, -math.inf), 0.0)
        self.builder.add_entries(*self._entries)
        return root

    def _column(self, upper: float, *, binary: bool) -> int:
        self._upper.append(upper)
        self._binary.append(binary)
        return len(self._upper) - 1

    def _row(self) -> int:
        self._rows += 1
        return self._rows - 1

    def _enter(self, row: int, column: int, value: float) -> None:
        rows, columns, values = self._entries
        rows.append(row)
        columns.append(column)
        values.append(value)

    def _grow(self, expression: strl.Expression, indicator: int, row: int, factor: float) -> Branch:
        self._branches += 1
        branch = Branch(expression, self._branches - 1, indicator)
        match expression:
            case strl.NChooseK() | strl.LinearNChooseK():
                self._grow_leaf(branch, row, factor)
                return branch
            case strl.Maximum() | strl.Sum():
                self._grow_choice(branch, expression, row, factor)
            case strl.Minimum():
                self._grow_minimum(branch, expression, row, factor)
            case strl.Scale():
                child = self._grow(expression.child, indicator, row, factor * expression.factor)
                branch.children.append(child)
            case strl.Barrier():
                self._enter(row, indicator, factor * expression.value)
                below = self._row()
                self._enter(below, indicator, expression.value)
                branch.children.append(self._grow(expression.child, indicator, below, -1.0))
        counted = branch.children
        branch.highest = strl.combined_worth(expression, [child.highest for child in counted])
        if isinstance(expression, strl.Maximum):
            counted = [max(counted, key=lambda child: child.highest)]
        branch.work = sum(child.work for child in counted)
        if branch.level >= 0:
            self._upper[branch.level] = branch.highest
        return branch

    def _grow_leaf(self, branch: Branch, row: int, factor: float) -> None:
        branch.leaf = leaf = self._grown_leaves
        self._grown_leaves += 1
        self.leaf_indicator[leaf] = branch.indicator
        self.leaf_row[leaf] = row
        self.leaf_factor[leaf] = factor
        branch.highest, branch.work = self._highest[leaf], self._work[leaf]
        if not branch.highest:  # then all that shares the indicator is worth nothing
            self._upper[branch.indicator] = 0.0

    def _grow_choice(
        self, branch: Branch, expression: strl.Maximum | strl.Sum, row: int, factor: float
    ) -> None:
        one_row_each = self.tight and isinstance(expression, strl.Sum)
        if not one_row_each:
            together = self._row()
            share = 1 if isinstance(expression, strl.Maximum) else len(expression.children)
            self._enter(together, branch.indicator, -float(share))
        for each in expression.children:
            chosen = self._column(upper=1.0, binary=True)
            if one_row_each:
                together = self._row()
                self._enter(together, branch.indicator, -1.0)
            self._enter(together, chosen, 1.0)
            branch.children.append(self._grow(each, chosen, row, factor))

    def _grow_minimum(
        self, branch: Branch, expression: strl.Minimum, row: int, factor: float
    ) -> None:
        branch.level = self._column(upper=0.0, binary=False)
        self._enter(row, branch.level, factor)
        for each in expression.children:
            below = self._row()
            self._enter(below, branch.level, 1.0)
            branch.children.append(self._grow(each, branch.indicator, below, -1.0))


@dataclass(frozen=True, slots=True, eq=False)
class _PartitionShares:
    """Shares of partitions that leaves can be given; arrays have shape (parts,)."""

    leaf: Integers
    partition: Integers
    """Leaf, and the partition that it is given a share of."""
    begin: Integers
    end: Integers
    """Numbers of the slots, of those with supply rows, in which it is held."""
    most: Integers
    """Nodes that there can be at most."""
    of_leaf: Integers
    """Parts of every leaf; shape (leaves,)."""

    @property
    def room(self) -> Integers:
        """Nodes that every leaf can be given at most, were it alone; shape (leaves,)."""
        return np.bincount(self.leaf, self.most, self.of_leaf.size).astype(np.int64)


def _parts(
    partitions: Partitions, table: LeafTable, free: Integers, slots: Floats
) -> _PartitionShares:
    of_leaf = np.diff(partitions.set_starts)[table.sets]
    leaf = np.repeat(np.arange(of_leaf.size), of_leaf)
    at = partitions.set_starts[table.sets][leaf] + _within(of_leaf)
    partition = partitions.set_members[at]
    begin = np.searchsorted(slots, table.first)[leaf]
    end = np.searchsorted(slots, table.last)[leaf]
    most = np.minimum(table.counts[leaf], free[partition, begin])
    return _PartitionShares(leaf, partition, begin, end, most, of_leaf)


def _within(counts: Integers) -> Integers:
    """0, 1, ... up to each count, one after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return np.arange(total) - np.repeat(ends - counts, counts)


def _add_parts(
    tree: _Tree, parts: _PartitionShares, free: Integers, slots: Floats
) -> tuple[Integers, Integers]:
    """Add what leaves demand and what partitions supply; the column of every part, and its unit."""
    table, builder = tree.table, tree.builder
    whole = ~table.linear
    folded = whole & (parts.of_leaf == 1) if tree.tight else np.zeros_like(whole)
    own = ~folded[parts.leaf]
    columns = tree.leaf_indicator[parts.leaf]
    columns[own] = builder.add_columns(np.zeros(int(own.sum())), parts.most[own], True)
    units = np.where(own, 1, table.counts[parts.leaf])

    demand = np.full(folded.size, -1)
    lower = np.where(table.linear[~folded], -math.inf, 0.0)
    demand[~folded] = builder.add_rows(lower, 0.0)
    builder.add_entries(demand[parts.leaf[own]], columns[own], 1.0)
    builder.add_entries(demand[~folded], tree.leaf_indicator[~folded], -table.counts[~folded])

    worth = tree.leaf_factor * table.values
    builder.add_entries(tree.leaf_row[whole], tree.leaf_indicator[whole], worth[whole])
    shared = table.linear[parts.leaf]
    owners = parts.leaf[shared]
    builder.add_entries(tree.leaf_row[owners], columns[shared], (worth / table.counts)[owners])

    spans = parts.end - parts.begin
    held = np.repeat(np.arange(spans.size), spans)
    cells = parts.partition[held] * slots.size + parts.begin[held] + _within(spans)
    used = np.zeros(free.size, np.bool_)
    used[cells] = True
    rows = np.zeros(free.size, np.int64)
    rows[used] = builder.add_rows(np.full(int(used.sum()), -math.inf), free.ravel()[used])
    builder.add_entries(rows[cells], columns[held], units[held])
    return columns, units


def _set_columns(root: Branch, amounts: Integers, columns: Floats) -> None:
    """Set the indicators of all branches that are worth something, and the levels of ``min``."""
    worth = worths(root, amounts.tolist())
    ahead = [root]
    while ahead:
        branch = ahead.pop()
        if branch.number not in worth:
            continue
        columns[branch.indicator] = 1.0
        if branch.level >= 0:
            columns[branch.level] = worth[branch.number]
        ahead.extend(branch.children)
