"""STRL as text: expressions as the paper prints them, and files of requests that stand alone.

::

    nodes {m[1-4]}                     # what there is; all nodes that are mentioned, if left out
    busy {m1} until 90s                # running jobs
    slot 10s                           # length of a slot of the plan
    gpu = {m1, m2}
    all = gpu + {m3, m4}
    job1 = max(nCk(gpu, 2, 0, 2h, 4), nCk(all, k=2, s=0, dur=3h, v=3))

Names are defined before they are used. What no other expression uses is a request.
Source: Tumanov et al., TetriSched (EuroSys 2016), section 4; spec tetrisched section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from foresail.model.documents import text_of
from foresail.model.errors import InputError
from foresail.strl.document import Document, Reading
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
from foresail.strl.node_names import compress
from foresail.strl.parser import NAME, NAME_FORM, RESERVED, Parser
from foresail.strl.tokens import exact
from foresail.strl.tree import children

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


def parse_expression(text: str, source: object | None = None) -> Expression:
    """The expression that a text is.

    Raises
    ------
    InputError
        With line and column of the first thing that is wrong, what was found and what expected.
    """
    parser = Parser(text, source)
    parser.skip_newlines()
    expression = parser.expression()
    parser.skip_newlines()
    parser.expect_end()
    return expression


def parse(text: str, source: object | None = None) -> Document:
    """What a file of requests says.

    Raises
    ------
    InputError
        With line and column of the first thing that is wrong, what was found and what expected.
    """
    reading = examine(text, source)
    if reading.errors:
        raise reading.errors[0]
    return reading.document


def read(path: Path) -> Document:
    """What the file at this path says.

    Raises
    ------
    InputError
        If it cannot be read, or as ``parse`` does.
    """
    return parse(text_of(path), path)


def examine(text: str, source: object | None = None) -> Reading:
    """What a file of requests says, with every statement's first error instead of only one."""
    return Parser(text, source).reading()


def format_expression(
    expression: Expression,
    node_sets: Mapping[str, frozenset[str]] | None = None,
    name: str | None = None,
) -> str:
    """The text of an expression, which ``parse_expression`` turns into the same one.

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
            nodes = names.get(expression.nodes) or format_nodes(expression.nodes)
            numbers = (expression.start_seconds, expression.duration_seconds, expression.value)
            below = [nodes, str(expression.count), *map(exact, numbers)]
        case Scale():
            below.append(exact(expression.factor))
        case Barrier():
            below.append(exact(expression.value))
        case _:
            pass
    return f"{_WORDS[type(expression)]}({', '.join(below)})"


def format_nodes(nodes: frozenset[str]) -> str:
    """The text of a set of nodes, with ranges: ``{gpu1, n[1-256]}``."""
    return "{" + compress(nodes) + "}"


def format_document(document: Document) -> str:
    """The text of a file of requests, which ``parse`` turns into the same document.

    Raises
    ------
    InputError
        If a request or a set has a name that a text cannot give it.
    """
    for name in (*document.node_sets, *document.requests):
        if name.lower() in RESERVED or not NAME.fullmatch(name):
            raise InputError("not a name", value=name, expected=NAME_FORM)
    lines = [f"nodes {format_nodes(document.supply.nodes)}"]
    until: dict[float, set[str]] = {}
    for node, free_again in document.supply.busy_until.items():
        until.setdefault(free_again, set()).add(node)
    lines.extend(
        f"busy {format_nodes(frozenset(nodes))} until {exact(free_again)}"
        for free_again, nodes in sorted(until.items())
    )
    if document.supply.slot_seconds is not None:
        lines.append(f"slot {exact(document.supply.slot_seconds)}")
    lines.extend(f"{name} = {format_nodes(nodes)}" for name, nodes in document.node_sets.items())
    lines.extend(
        format_expression(expression, document.node_sets, name)
        for name, expression in document.requests.items()
    )
    return "\n".join(lines) + "\n"
