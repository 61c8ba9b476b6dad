"""Requests in words: what is asked for, which alternatives there are, and what each is worth."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeAlias

from foresail.model import words
from foresail.strl.expression import (
    Barrier,
    Document,
    Expression,
    Leaf,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    highest_value,
)
from foresail.strl.tokens import listed

_WIDTH: Final = 100
_INDENT: Final = "  "
_MOST_STARTS: Final = 4

_JOINED: Final = MappingProxyType(
    {
        Minimum: "all of these, for what the least of them is worth:",
        Sum: "any of these, for what they are worth together:",
    }
)

_Names: TypeAlias = Mapping[frozenset[str], str]


def explain(document: Document) -> list[str]:
    """Lines of at most 100 columns that say what a file asks for.

    Alternatives that differ only in their start are one line; indentation shows what belongs to
    what.
    """
    names: dict[frozenset[str], str] = {}
    for name, nodes in document.node_sets.items():
        names.setdefault(nodes, name)
    lines = []
    for name, expression in document.requests.items():
        most = words.number(highest_value(expression))
        lines.append(f"{name} is worth {most} at most. It asks for")
        lines.extend(_told(expression, names, 1))
        lines.append("")
    lines.extend(_supply(document))
    return lines


def _supply(document: Document) -> Iterator[str]:
    supply = document.supply
    there_are = f"There are {words.count(len(supply.nodes), 'node')}: {listed(supply.nodes)}."
    yield from textwrap.wrap(there_are, _WIDTH)
    until: dict[float, set[str]] = {}
    for node, free_again in supply.busy_until.items():
        until.setdefault(free_again, set()).add(node)
    for free_again, nodes in sorted(until.items()):
        busy = f"Busy until {words.duration(free_again)}: {listed(nodes)}."
        yield from textwrap.wrap(busy, _WIDTH)


def _told(expression: Expression, names: _Names, level: int) -> Iterator[str]:
    """The lines of an expression, indented by its level."""
    match expression:
        case NChooseK() | LinearNChooseK():
            yield from _line(_leaves((expression,), names), level)
        case Maximum():
            groups = [tuple(same) for _, same in groupby(expression.children, _but_for_start)]
            if len(groups) > 1:
                yield from _line("one of these:", level)
            for options in groups:
                yield from _alternatives(options, names, level + (len(groups) > 1))
        case Minimum() | Sum():
            yield from _line(_JOINED[type(expression)], level)
            for child in expression.children:
                yield from _told(child, names, level + 1)
        case Scale():
            times = words.number(expression.factor)
            yield from _line(f"this, but worth {times} times as much:", level)
            yield from _told(expression.child, names, level + 1)
        case Barrier():
            value = words.number(expression.value)
            yield from _line(f"this, worth {value} if it reaches that much, else nothing:", level)
            yield from _told(expression.child, names, level + 1)


def _but_for_start(expression: Expression) -> tuple[object, ...]:
    """Return what alternatives have in common that are worded together: all but start and value."""
    if isinstance(expression, NChooseK | LinearNChooseK):
        return type(expression), expression.nodes, expression.count, expression.duration_seconds
    return (id(expression),)


def _alternatives(options: Sequence[Expression], names: _Names, level: int) -> Iterator[str]:
    """The lines of alternatives that have all but start and value in common."""
    if len(options) == 1:
        yield from _told(options[0], names, level)
    else:
        yield from _line(_leaves(options, names), level)


def _leaves(options: Sequence[Expression], names: _Names) -> str:
    """Leaves that differ only in start and value, in words."""
    leaves = [each for each in options if isinstance(each, NChooseK | LinearNChooseK)]
    first = leaves[0]
    upto = "up to " if isinstance(first, LinearNChooseK) else ""
    nodes = names.get(first.nodes)
    size = words.count(len(first.nodes), "node")
    of = f"{nodes} ({size})" if nodes else f"{listed(first.nodes)} ({size})"
    lasting = words.duration(first.duration_seconds)
    return f"{upto}{first.count:,} of {of} for {lasting}, {_starts(leaves)}"


def _starts(leaves: Sequence[Leaf]) -> str:
    """Starts and values of leaves that are otherwise alike, in words."""
    starts = [words.duration(leaf.start_seconds) for leaf in leaves]
    worth = [words.number(leaf.value) for leaf in leaves]
    share = ", or its share of that" if isinstance(leaves[0], LinearNChooseK) else ""
    if len(leaves) > _MOST_STARTS:
        among = f"from one of {len(leaves):,} starts between {starts[0]} and {starts[-1]}"
        value = worth[0] if len(set(worth)) == 1 else f"{worth[0]} at first, {worth[-1]} at last"
        return f"{among}: worth {value}{share}"
    if len(set(worth)) == 1:
        return f"from {words.listed(starts, 'or')}: worth {worth[0]}{share}"
    each = [f"{start} (worth {value})" for start, value in zip(starts, worth, strict=True)]
    return f"from {words.listed(each, 'or')}{share}"


def _line(text: str, level: int) -> list[str]:
    bullet = _INDENT * (level - 1) + "- "
    return textwrap.wrap(text, _WIDTH, initial_indent=bullet, subsequent_indent=" " * len(bullet))
