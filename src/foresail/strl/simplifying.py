"""Smaller expressions that are worth the same: folded, flattened, and without hopeless leaves.

Source: spec tetrisched sections 4.2 and 8.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from foresail.strl.expression import (
    Barrier,
    Expression,
    Leaf,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
)
from foresail.strl.tree import highest_value, reaches


@dataclass(frozen=True, slots=True)
class Simplified:
    """An expression without what can never count, and which of its leaves were which."""

    expression: Expression | None
    """What is left; None where nothing could ever be worth anything."""
    origins: tuple[int, ...]
    """For each leaf of ``expression``, by its number, the number of the leaf that it was."""


_Kept: TypeAlias = tuple[Expression, tuple[int, ...]]
"""An expression that may be worth something, and the numbers its leaves had."""


def simplify(expression: Expression) -> Simplified:
    """The expression with the same value under every allocation, and no more than it needs.

    Left out: leaves worth nothing, ``nCk`` of more nodes than its set has, and every ``min`` and
    ``barrier`` that this makes unreachable. An ``LnCk`` of more nodes than its set has becomes one
    of the whole set. Operators of one child vanish; ``max`` in ``max``, ``sum`` in ``sum`` and
    ``min`` in ``min`` become one; ``scale`` becomes values of leaves, and so does a ``barrier``
    over an ``nCk``.

    The value under an allocation is that of the original under the same one, given to the leaves
    that ``origins`` names (to the rounding of products).
    """
    kept = _Pass().simplified(expression, 1.0)
    return Simplified(None, ()) if kept is None else Simplified(*kept)


class _Pass:
    """One walk over an expression, which numbers the leaves as it meets them."""

    def __init__(self) -> None:
        self._numbers = count()

    def simplified(self, expression: Expression, factor: float) -> _Kept | None:
        """What is left of ``factor`` times the expression; None when that is worth nothing."""
        match expression:
            case NChooseK() | LinearNChooseK():
                return self._leaf(expression, factor)
            case Scale():
                return self.simplified(expression.child, factor * expression.factor)
            case Barrier():
                return self._barrier(expression, factor)
            case Minimum():
                every = [self.simplified(child, factor) for child in expression.children]
                kept = [child for child in every if child is not None]
                return _joined(Minimum, kept) if len(kept) == len(every) else None
            case Maximum() | Sum():
                some = [self.simplified(child, factor) for child in expression.children]
                return _joined(type(expression), [child for child in some if child is not None])

    def _leaf(self, leaf: Leaf, factor: float) -> _Kept | None:
        number = next(self._numbers)
        value = leaf.value * factor
        if not value > 0.0:
            return None
        if leaf.count > len(leaf.nodes):
            if isinstance(leaf, NChooseK):
                return None
            value *= len(leaf.nodes) / leaf.count
        least = min(leaf.count, len(leaf.nodes))
        return replace(leaf, count=least, value=value), (number,)

    def _barrier(self, barrier: Barrier, factor: float) -> _Kept | None:
        kept = self.simplified(barrier.child, factor)
        raised = Barrier(barrier.child, barrier.value * factor)
        if kept is None or raised.value == 0.0 or not reaches(highest_value(kept[0]), raised):
            return None
        child, origins = kept
        if isinstance(child, NChooseK):
            return replace(child, value=raised.value), origins
        return replace(raised, child=child), origins


def _joined(kind: type[Maximum | Minimum | Sum], kept: list[_Kept]) -> _Kept | None:
    if len(kept) < 2:
        return kept[0] if kept else None
    flat = tuple(child for expression, _ in kept for child in _alike(kind, expression))
    return kind(flat), tuple(number for _, origins in kept for number in origins)


def _alike(kind: type[Maximum | Minimum | Sum], expression: Expression) -> Iterator[Expression]:
    """The children of an expression of this kind, else the expression itself."""
    if isinstance(expression, kind):
        yield from expression.children
    else:
        yield expression
