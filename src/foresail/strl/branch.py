"""The tree of a compiled expression: its columns, what it may be worth, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foresail.strl.expression import (
    Barrier,
    Expression,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)
from foresail.strl.tree import reaches


@dataclass(slots=True, eq=False)
class Branch:
    """A place in an expression's tree."""

    expression: Expression
    """What stands there."""
    number: int
    """Its number, parents before children."""
    indicator: int
    """Binary column that must be 1 for the branch to be given anything."""
    leaf: int = -1
    """Number of the leaf; -1 for an operator."""
    level: int = -1
    """Column of what a ``min`` is worth; -1 for the others."""
    highest: float = 0.0
    """What the branch is worth at most, were it alone."""
    work: float = 0.0
    """Slots times nodes of a way to ``highest``."""
    children: list[Branch] = field(default_factory=list)
    """Branches below, in order."""

    @property
    def density(self) -> float:
        """What it may be worth for each node and slot."""
        return self.highest / self.work if self.work else 0.0


def worths(root: Branch, amounts: Sequence[int]) -> dict[int, float]:
    """What the branches are worth, by their numbers, for the nodes given to every leaf.

    Those worth nothing are left out.
    """
    found: dict[int, float] = {}
    _worth(root, amounts, found)
    return found


def _worth(branch: Branch, amounts: Sequence[int], found: dict[int, float]) -> float:
    expression = branch.expression
    if isinstance(expression, NChooseK | LinearNChooseK):
        worth = _leaf_worth(expression, amounts[branch.leaf])
    else:
        below = [_worth(child, amounts, found) for child in branch.children]
        match expression:
            case Maximum():
                worth = max(below)
            case Minimum():
                worth = min(below)
            case Sum():
                worth = sum(below)
            case Scale():
                worth = expression.factor * below[0]
            case Barrier():
                worth = expression.value if reaches(below[0], expression) else 0.0
    if worth > 0.0:
        found[branch.number] = worth
    return worth


def _leaf_worth(leaf: NChooseK | LinearNChooseK, amount: int) -> float:
    if not amount:
        return 0.0
    if isinstance(leaf, NChooseK):
        return leaf.value if amount == leaf.count else 0.0
    return leaf.value * amount / leaf.count if amount <= leaf.count else 0.0
