"""Allocation to an expression: compile, begin with a quick plan, solve, clean up, name nodes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from foresail.milp.solver import Limits, ProgramSize, SolveStatus, find_solver, relative_gap
from foresail.model.distribution import Integers
from foresail.strl import expression as strl
from foresail.strl.compiling import Branch, Compiled, Formulation, compile_expression, worths

_ROUNDING = 1e-9


def trimmed(root: Branch, amounts: Sequence[int]) -> list[int]:
    """Nodes for every leaf, no more than given and worth as much as before.

    Where several children of a ``sum`` could be cut down, whole ones go first (those that hold most
    nodes for longest), then nodes of ``LnCk`` leaves, one at a time from the largest.
    """
    found = worths(root, amounts)
    trimming = _Trimming(amounts, found, [0] * len(amounts))
    trimming.keep(root, found.get(root.number, 0.0))
    return trimming.kept


@dataclass(slots=True)
class _Trimming:
    amounts: Sequence[int]
    found: dict[int, float]
    kept: list[int] = field(default_factory=list)

    def worth(self, branch: Branch) -> float:
        return self.found.get(branch.number, 0.0)

    def keep(self, branch: Branch, wanted: float) -> float:
        """Keep what a worth of ``wanted`` needs; returns what is kept is worth."""
        if wanted <= 0.0 or not self.worth(branch):
            return 0.0
        expression = branch.expression
        match expression:
            case strl.LinearNChooseK():
                needed = math.ceil(wanted * expression.count / expression.value - _ROUNDING)
                self.kept[branch.leaf] = max(needed, 1)
                return expression.value * self.kept[branch.leaf] / expression.count
            case strl.Maximum():
                return self.keep(max(branch.children, key=self.worth), wanted)
            case strl.Minimum():
                return min([self.keep(child, wanted) for child in branch.children])
            case strl.Sum():
                return self._keep_sum(branch, wanted)
            case strl.Scale():
                below = self.keep(branch.children[0], wanted / expression.factor)
                return expression.factor * below
            case strl.Barrier():
                self.keep(branch.children[0], expression.value)
                return expression.value
            case _:
                self.kept[branch.leaf] = self.amounts[branch.leaf]
                return expression.value

    def _keep_sum(self, branch: Branch, wanted: float) -> float:
        spare = self.worth(branch) - wanted
        positive = [each for each in branch.children if self.worth(each)]
        linear = [each for each in positive if isinstance(each.expression, strl.LinearNChooseK)]
        others = [each for each in positive if not isinstance(each.expression, strl.LinearNChooseK)]
        total = 0.0
        for child in sorted(others, key=lambda each: -each.work):
            worth = self.worth(child)
            kept = self.keep(child, worth - spare if worth > spare else 0.0)
            spare -= worth - kept
            total += kept
        for child in linear:
            self.kept[child.leaf] = self.amounts[child.leaf]
        while linear:
            largest = max(linear, key=lambda each: self.kept[each.leaf])
            leaf = largest.expression
            assert isinstance(leaf, strl.LinearNChooseK)
            unit = leaf.value / leaf.count
            if not self.kept[largest.leaf] or unit > spare * (1.0 + _ROUNDING):
                linear.remove(largest)
                total += unit * self.kept[largest.leaf]
            else:
                self.kept[largest.leaf] -= 1
                spare -= unit
        return total


def fill(compiled: Compiled, given: Integers) -> Integers:
    """Nodes for every part: those given, and more where they are worth something.

    What has been given stays. A child of a ``sum`` that is worth nothing yet is placed if it fits,
    children of the highest worth per node and slot first; of a ``max``, the child of the highest
    worth that fits; of a ``min``, all or none; under a ``barrier``, enough or none. Leaves take
    nodes first of the partitions that the fewest sets share.
    """
    filling = _Filling(compiled, given)
    filling.extend(compiled.root)
    return filling.given


class _Filling:
    def __init__(self, compiled: Compiled, given: Integers) -> None:
        table, slots = compiled.leaves, compiled.slots
        self.given = given.copy()
        self._begin: list[int] = np.searchsorted(slots, table.first).tolist()
        self._end: list[int] = np.searchsorted(slots, table.last).tolist()
        leaf_numbers = np.arange(table.counts.size + 1)
        self._starts: list[int] = np.searchsorted(compiled.part_leaf, leaf_numbers).tolist()
        self._partition = compiled.part_partition
        self._free = compiled.free.copy()
        for part in np.flatnonzero(given).tolist():
            self._hold(int(compiled.part_leaf[part]), part, int(given[part]))
        sharers = np.bincount(
            compiled.partitions.set_members, minlength=compiled.partitions.sizes.size
        )
        self._sharers = sharers[compiled.part_partition]
        self._worth = worths(compiled.root, compiled.amounts(given).tolist())
        self._taken: list[tuple[int, int, int]] = []

    def extend(self, branch: Branch) -> None:
        """Place what is worth nothing yet, below sums only: the rest depends on what was chosen."""
        if branch.number not in self._worth:
            self._place(branch)
        elif isinstance(branch.expression, strl.Sum):
            for child in sorted(branch.children, key=_density, reverse=True):
                self.extend(child)
        elif isinstance(branch.expression, strl.Scale):
            self.extend(branch.children[0])

    def _place(self, branch: Branch) -> float:
        """Give the branch what it needs, if it fits; returns what it is worth then."""
        if not branch.highest:
            return 0.0
        expression = branch.expression
        match expression:
            case strl.NChooseK() | strl.LinearNChooseK():
                return self._place_leaf(branch, expression)
            case strl.Maximum():
                best_first = sorted(branch.children, key=lambda each: each.highest, reverse=True)
                return next(filter(None, map(self._place, best_first)), 0.0)
            case strl.Sum():
                best_first = sorted(branch.children, key=_density, reverse=True)
                return sum(map(self._place, best_first))
            case strl.Scale():
                return expression.factor * self._place(branch.children[0])
            case strl.Minimum():
                return self._place_all(branch)
            case strl.Barrier():
                mark = len(self._taken)
                if strl.reaches(self._place(branch.children[0]), expression):
                    return expression.value
                self._give_back(mark)
                return 0.0

    def _place_all(self, branch: Branch) -> float:
        mark = len(self._taken)
        least = branch.highest
        for child in branch.children:
            worth = self._place(child)
            if not worth:
                self._give_back(mark)
                return 0.0
            least = min(least, worth)
        return least

    def _place_leaf(self, branch: Branch, leaf: strl.NChooseK | strl.LinearNChooseK) -> float:
        at = slice(self._starts[branch.leaf], self._starts[branch.leaf + 1])
        span = slice(self._begin[branch.leaf], self._end[branch.leaf])
        room = self._free[self._partition[at], span].min(axis=1)
        amount = min(int(room.sum()), leaf.count)
        if not amount or (amount < leaf.count and isinstance(leaf, strl.NChooseK)):
            return 0.0
        left = amount
        for offset in np.argsort(self._sharers[at], kind="stable").tolist():
            taken = min(left, int(room[offset]))
            if taken:
                self._hold(branch.leaf, at.start + offset, taken)
                self.given[at.start + offset] += taken
                self._taken.append((branch.leaf, at.start + offset, taken))
                left -= taken
        return leaf.value * amount / leaf.count

    def _hold(self, leaf: int, part: int, amount: int) -> None:
        self._free[self._partition[part], self._begin[leaf] : self._end[leaf]] -= amount

    def _give_back(self, mark: int) -> None:
        for leaf, part, amount in self._taken[mark:]:
            self._hold(leaf, part, -amount)
            self.given[part] -= amount
        del self._taken[mark:]


def _density(branch: Branch) -> Any:
    return branch.density


Allocation: TypeAlias = Mapping[int, frozenset[str]]
"""Nodes given to leaves, by the number of the leaf (``tree.leaves``); others are given none."""


def _named_nodes(compiled: Compiled, given: Integers) -> Allocation:
    """Named nodes for every leaf that is given some; of those free, the first by name.

    ``given`` are the nodes given to every part of the program; shape (parts,).
    """
    first, last = compiled.leaves.first, compiled.leaves.last
    parts = np.flatnonzero(given)
    leaf = compiled.part_leaf[parts]
    parts = parts[np.lexsort((leaf, first[leaf]))]
    free_from = compiled.free_from.copy()
    names: dict[int, list[str]] = {}
    members = {
        partition: np.flatnonzero(compiled.partitions.of_node == partition)
        for partition in np.unique(compiled.part_partition[parts]).tolist()
    }
    for part in parts.tolist():
        number = int(compiled.part_leaf[part])
        nodes = members[int(compiled.part_partition[part])]
        chosen = nodes[free_from[nodes] <= first[number]][: given[part]]
        free_from[chosen] = last[number]
        names.setdefault(number, []).extend(compiled.nodes[node] for node in chosen.tolist())
    return {number: frozenset(names[number]) for number in sorted(names)}


@dataclass(frozen=True, slots=True)
class SolvedRequest:
    """An allocation, and how good it is known to be."""

    allocation: Allocation
    """Names of the nodes that each leaf is given, by the leaf's number; none that adds no worth.
    Leaves that start later hold their nodes provisionally."""
    value: float
    """Worth of the allocation: at least ``quick_value``."""
    bound: float
    """Upper bound of the worth of any allocation."""
    quick_value: float
    """Worth of the quick plan that the solver began from."""
    status: SolveStatus
    """End of the solver's run. It found nothing: the quick plan is the answer."""
    size: ProgramSize
    """Columns and rows of the program."""
    build_seconds: float
    solve_seconds: float
    finish_seconds: float
    """Duration of compiling, of the solver, and of all the rest: quick plan, clean-up, names."""

    @property
    def gap(self) -> float:
        """By what share of its value the best allocation may be better."""
        return relative_gap(self.value, self.bound)


def solve(
    expression: strl.Expression,
    supply: strl.Supply,
    quantum_seconds: float,
    *,
    solver: str = "highs",
    limits: Limits | None = None,
    formulation: Formulation = "tight",
) -> SolvedRequest:
    """The best allocation of an expression that is found within the limits.

    The solver is a registered one; without limits it stops at the best. The others are as of
    ``compile_expression``.

    Raises ``InputError`` if a leaf starts before 0, the quantum is not above 0, or the solver's
    package is missing; ``UnknownNameError`` if there is no solver of this name.
    """
    back_end = find_solver(solver)
    began = time.perf_counter()
    compiled = compile_expression(expression, supply, quantum_seconds, formulation)
    quick = quick_plan(compiled)
    quick_value = _worth(compiled, quick)
    found = back_end.solve(compiled.program, limits or Limits(), compiled.values(quick))
    best = quick
    if found.values is not None:
        improved = _improved(compiled, compiled.given(found.values))
        if _worth(compiled, improved) > quick_value:
            best = improved
    value = _worth(compiled, best)
    allocation = _named_nodes(compiled, best)
    seconds = time.perf_counter() - began
    return SolvedRequest(
        allocation=allocation,
        value=value,
        bound=max(value, min(found.bound, compiled.root.highest)),
        quick_value=quick_value,
        status=found.status,
        size=compiled.program.size,
        build_seconds=compiled.build_seconds,
        solve_seconds=found.seconds,
        finish_seconds=seconds - compiled.build_seconds - found.seconds,
    )


def quick_plan(compiled: Compiled) -> Integers:
    """Nodes for every part (a leaf's share of a partition) by greedy alone: see ``greedy.fill``."""
    once = _improved(compiled, np.zeros(compiled.part_leaf.size, np.int64))
    return _improved(compiled, once)  # with what barriers did not need


def _improved(compiled: Compiled, given: Integers) -> Integers:
    """Drop nodes that add no worth, and with more where free nodes add some."""
    return _trimmed(compiled, fill(compiled, _trimmed(compiled, given)))


def _trimmed(compiled: Compiled, given: Integers) -> Integers:
    """Take back what adds no worth; of a leaf's partitions, from the one that gives most."""
    amounts = compiled.amounts(given)
    surplus = amounts - np.array(trimmed(compiled.root, amounts.tolist()))
    given = given.copy()
    for leaf in np.flatnonzero(surplus).tolist():
        at = slice(*np.searchsorted(compiled.part_leaf, [leaf, leaf + 1]))
        for _ in range(surplus[leaf]):
            given[at.start + np.argmax(given[at])] -= 1
    return given


def _worth(compiled: Compiled, given: Integers) -> float:
    found = worths(compiled.root, compiled.amounts(given).tolist())
    return found.get(compiled.root.number, 0.0)
