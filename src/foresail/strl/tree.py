"""Walking expressions: their children, their leaves in order, and the most they can be worth."""

from __future__ import annotations

from collections.abc import Iterator

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


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below this one; none below a leaf."""
    match expression:
        case Maximum() | Minimum() | Sum():
            return expression.children
        case Scale() | Barrier():
            return (expression.child,)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, parents before children, left to right."""
    ahead = [expression]
    while ahead:
        current = ahead.pop()
        yield current
        ahead.extend(reversed(children(current)))


def leaves(expression: Expression) -> tuple[Leaf, ...]:
    """The leaves from left to right; a leaf's number is its place here, from 0.

    Equal leaves are as many leaves as there are places where they stand.
    """
    return tuple(each for each in walk(expression) if isinstance(each, NChooseK | LinearNChooseK))


def depth(expression: Expression) -> int:
    """Levels of the tree; 1 for a leaf."""
    return 1 + max(map(depth, children(expression)), default=0)


def highest_value(expression: Expression) -> float:
    """What the expression is worth at most, whatever it is given.

    A bound: nodes that two leaves would both need are not looked at.
    """
    match expression:
        case NChooseK():
            reachable = expression.count <= len(expression.nodes)
            return expression.value if reachable else 0.0
        case LinearNChooseK():
            most = min(expression.count, len(expression.nodes))
            return expression.value * most / expression.count
        case Maximum():
            return max(map(highest_value, expression.children))
        case Minimum():
            return min(map(highest_value, expression.children))
        case Sum():
            return sum(map(highest_value, expression.children))
        case Scale():
            return expression.factor * highest_value(expression.child)
        case Barrier():
            return expression.value if reaches(highest_value(expression.child), expression) else 0.0


_ROUNDING = 1e-9


def reaches(worth: float, barrier: Barrier) -> bool:
    """Whether a child that is worth this much is worth the barrier's value.

    Shares of values do not add up exactly; a billionth below the value is enough.
    """
    return worth >= barrier.value * (1.0 - _ROUNDING)
