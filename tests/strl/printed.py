"""Expressions as text, for comparing and for reading them back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from foresail.strl.expression import (
    Barrier,
    Expression,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    children,
)
from foresail.strl.tokens import compress

_WIDTH: Final = 100
_WORDS: Final = MappingProxyType(
    {
        NChooseK: "nCk",
        LinearNChooseK: "LnCk",
        Maximum: "max",
        Minimum: "min",
        Sum: "sum",
        Scale: "scale",
        Barrier: "barrier",
    }
)


def format_expression(
    expression: Expression,
    node_sets: Mapping[str, frozenset[str]] | None = None,
    name: str | None = None,
) -> str:
    """The text of an expression, which parses as the same one.

    Where a leaf's nodes are one of ``node_sets``, its name is written; ``name = `` goes before the
    expression, if it is given one. What does not fit on a line is broken after commas.
    """
    names: dict[frozenset[str], str] = {}
    for known, nodes in (node_sets or {}).items():
        names.setdefault(nodes, known)
    before = "" if name is None else f"{name} = "
    return before + "\n".join(_lines(expression, names, _WIDTH - len(before)))


def _lines(expression: Expression, names: Mapping[frozenset[str], str], width: int) -> list[str]:
    whole = _flat(expression, names)
    below = children(expression)
    if not below or len(whole) <= width:
        return [whole]
    lines = [f"{_WORDS[type(expression)]}("]
    for child in below:
        lines.extend("    " + line for line in _lines(child, names, width - 5))
        lines[-1] += ","
    match expression:
        case Scale():
            lines.append(f"    {exact(expression.factor)}")
        case Barrier():
            lines.append(f"    {exact(expression.value)}")
        case _:
            lines[-1] = lines[-1].removesuffix(",")
    return [*lines, ")"]


def _flat(expression: Expression, names: Mapping[frozenset[str], str]) -> str:
    """The text of an expression on one line."""
    below = [_flat(child, names) for child in children(expression)]
    match expression:
        case NChooseK() | LinearNChooseK():
            nodes = names.get(expression.nodes) or "{" + compress(expression.nodes) + "}"
            numbers = (expression.start_seconds, expression.duration_seconds, expression.value)
            below = [nodes, str(expression.count), *map(exact, numbers)]
        case Scale():
            below.append(exact(expression.factor))
        case Barrier():
            below.append(exact(expression.value))
        case _:
            pass
    return f"{_WORDS[type(expression)]}({', '.join(below)})"


def exact(number: float) -> str:
    """The shortest text that is exactly this number."""
    whole = abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else repr(float(number))
