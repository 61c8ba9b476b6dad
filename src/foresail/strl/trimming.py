"""The clean-up after a solve: nodes that add nothing to an allocation's worth are taken back.

A program's best values may hold such nodes: children of a ``min`` of which another one went empty,
or more nodes than a ``barrier`` needs. Source: spec tetrisched sections 6 and 12 (T-6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from foresail.strl.branch import Branch, worths
from foresail.strl.expression import Barrier, LinearNChooseK, Maximum, Minimum, Scale, Sum

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
            case LinearNChooseK():
                needed = math.ceil(wanted * expression.count / expression.value - _ROUNDING)
                self.kept[branch.leaf] = max(needed, 1)
                return expression.value * self.kept[branch.leaf] / expression.count
            case Maximum():
                return self.keep(max(branch.children, key=self.worth), wanted)
            case Minimum():
                return min([self.keep(child, wanted) for child in branch.children])
            case Sum():
                return self._keep_sum(branch, wanted)
            case Scale():
                below = self.keep(branch.children[0], wanted / expression.factor)
                return expression.factor * below
            case Barrier():
                self.keep(branch.children[0], expression.value)
                return expression.value
            case _:
                self.kept[branch.leaf] = self.amounts[branch.leaf]
                return expression.value

    def _keep_sum(self, branch: Branch, wanted: float) -> float:
        spare = self.worth(branch) - wanted
        positive = [each for each in branch.children if self.worth(each)]
        linear = [each for each in positive if isinstance(each.expression, LinearNChooseK)]
        others = [each for each in positive if not isinstance(each.expression, LinearNChooseK)]
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
            assert isinstance(leaf, LinearNChooseK)
            unit = leaf.value / leaf.count
            if not self.kept[largest.leaf] or unit > spare * (1.0 + _ROUNDING):
                linear.remove(largest)
                total += unit * self.kept[largest.leaf]
            else:
                self.kept[largest.leaf] -= 1
                spare -= unit
        return total
