"""What records say of their fields: the text below one, or below several without a gap."""

from __future__ import annotations

import ast
import inspect
import textwrap


def field_docs(record: type) -> list[tuple[list[str], str]]:
    """Names of fields that share a text, and the text; a field without any is left out."""
    try:
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    except (OSError, TypeError):  # made by a call, not by a class statement
        return []
    assert isinstance(found, ast.ClassDef)
    told: list[tuple[list[str], str]] = []
    names: list[str] = []
    last = 0
    for node in found.body:
        if node.lineno > last + 1:
            names = []
        last = node.end_lineno or node.lineno
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Expr(value=ast.Constant(value=str() as text)) if names:
                told.append((names, inspect.cleandoc(text)))
                names = []
            case _:
                names = []
    return told
