"""A quick plan: children of a ``sum`` in order of worth per node and slot, each where it fits.

It stands in where a solver finds nothing in time, begins a solve, and fills what a solve left over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foresail.model.arrays import Integers
from foresail.strl.branch import Branch, worths
from foresail.strl.compiling import Compiled
from foresail.strl.expression import (
    Barrier,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)
from foresail.strl.tree import reaches


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
        elif isinstance(branch.expression, Sum):
            for child in sorted(branch.children, key=_density, reverse=True):
                self.extend(child)
        elif isinstance(branch.expression, Scale):
            self.extend(branch.children[0])

    def _place(self, branch: Branch) -> float:
        """Give the branch what it needs, if it fits; returns what it is worth then."""
        if not branch.highest:
            return 0.0
        expression = branch.expression
        match expression:
            case NChooseK() | LinearNChooseK():
                return self._place_leaf(branch, expression)
            case Maximum():
                best_first = sorted(branch.children, key=_highest, reverse=True)
                return next(filter(None, map(self._place, best_first)), 0.0)
            case Sum():
                best_first = sorted(branch.children, key=_density, reverse=True)
                return sum(map(self._place, best_first))
            case Scale():
                return expression.factor * self._place(branch.children[0])
            case Minimum():
                return self._place_all(branch)
            case Barrier():
                mark = len(self._taken)
                if reaches(self._place(branch.children[0]), expression):
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

    def _place_leaf(self, branch: Branch, leaf: NChooseK | LinearNChooseK) -> float:
        at = slice(self._starts[branch.leaf], self._starts[branch.leaf + 1])
        span = slice(self._begin[branch.leaf], self._end[branch.leaf])
        room = self._free[self._partition[at], span].min(axis=1)
        amount = min(int(room.sum()), leaf.count)
        if not amount or (amount < leaf.count and isinstance(leaf, NChooseK)):
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


def _highest(branch: Branch) -> Any:
    return branch.highest
