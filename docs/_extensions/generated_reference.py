"""Reference made from the code: plug-ins, the command line, names, columns, Python's interface.

It is written to ``docs/_generated`` before Sphinx looks for pages, so that a plug-in or a command
is documented by being there. Files ending in ``.md`` are pages, those in ``.txt`` parts of others.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from field_docs import field_docs
from python_interface import connect, python_pages
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from foresail.cli.main import COMMANDS, app_of
from foresail.control.policy import DEFAULTS, named_policies
from foresail.model.registry import FAMILIES, PUBLISHED, Entry, entries, installed_packages
from foresail.schedulers.order_expression import NAMED_ORDERS
from foresail.traces import schema

TITLES = {
    "scheduler": "Schedulers",
    "task_scheduler": "Task schedulers",
    "predictor": "Predictors",
    "correction": "Corrections",
    "reader": "Readers",
    "filter": "Filters",
    "generator": "Generators",
    "analysis": "Analyses",
    "solver": "Solvers",
    "price_source": "Price sources",
    "study": "Studies",
    "cluster": "Clusters",
    "execution": "Executions",
}
"""Family to the heading of its page; ``page_name`` makes the page's file of that."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook into Sphinx."""
    app.connect("builder-inited", write_pages)
    connect(app)
    return {"parallel_read_safe": True}


def page_name(family: str) -> str:
    """The file of a family's page, without its suffix."""
    return TITLES[family].lower().replace(" ", "_")


def write_pages(app: Sphinx) -> None:
    """Write all generated pages, leaving those alone that are the same as before."""
    folder = Path(app.srcdir) / "_generated"
    folder.mkdir(exist_ok=True)
    texts = {f"{page_name(family)}.md": family_page(family) for family in FAMILIES}
    texts["command-line.md"] = command_line_page()
    texts["default-parts.txt"] = table("part", "default", DEFAULTS)
    texts["named-policies.txt"] = table("name", "stands for", named_policies())
    texts["named-orders.txt"] = table("name", "stands for", NAMED_ORDERS)
    texts |= dict(python_pages())
    for name in ("JOBS", "TASKS", "USAGE", "NODES", "SCHEDULE"):
        columns = getattr(schema, name)
        texts[f"{name.lower()}-columns.txt"] = table("column", "type", columns)
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def family_page(family: str) -> str:
    """All plug-ins of a family with their parameters."""
    packages = FAMILIES[family][:1] or installed_packages(family)
    sections = [f"# {TITLES[family]}"]
    sections += [
        literal_code(inspect.getdoc(importlib.import_module(name)) or "") for name in packages
    ]
    sections += [plugin_section(entry) for entry in entries(family)]
    return "\n\n".join(sections) + "\n"


def table(key: str, value: str, rows: Mapping[str, Any]) -> str:
    """Two columns of code."""
    lines = [f"| {key} | {value} |", "|---|---|"]
    return (
        "\n".join([*lines, *(f"| `{left}` | `{right}` |" for left, right in rows.items())]) + "\n"
    )


def plugin_section(entry: Entry) -> str:
    """One plug-in: its name, its docstring, where it is defined and what can be set."""
    prose, _ = split_docstring(entry.build)
    short = [each for each, long in PUBLISHED.get(entry.family, {}).items() if long == entry.name]
    also = [f"Short: `{each}`." for each in short]
    place = f"Defined in `{entry.build.__module__}`."
    lines = [f"## `{entry.name}`", "", prose, *also, "", place, ""]
    lines += parameter_table(entry.parameters)
    return "\n".join(lines).rstrip()


def parameter_table(record: type) -> list[str]:
    """A row per field of the record: name, type, default, and what is said of it."""
    fields = dataclasses.fields(record)
    if not fields:
        return ["It has no parameters."]
    meanings: dict[str, str] = {}
    for base in reversed(record.__mro__):
        meanings |= split_docstring(base)[1]
        for names, text in field_docs(base):
            meanings |= dict.fromkeys(names, literal_code(" ".join(text.split())))
    types = get_type_hints(record)
    rows = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for each in fields:
        cells = (
            f"`{each.name}`",
            f"`{type_text(types[each.name])}`",
            default_of(each),
            meanings.get(each.name, ""),
        )
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return rows


def type_text(hint: Any) -> str:
    """A type as people read it: choices as their values, plain names without modules."""
    if get_origin(hint) is Literal:
        return " | ".join(map(str, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def default_of(field: dataclasses.Field[Any]) -> str:
    """The default as code, or that the user must give the value."""
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "required"


def split_docstring(documented: Any) -> tuple[str, dict[str, str]]:
    """The prose before the first underlined section, and the meaning of each parameter by name."""
    text = inspect.getdoc(documented) or ""
    head, *sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    bodies = dict(zip(sections[::2], sections[1::2], strict=True))
    meanings: dict[str, str] = {}
    for names, meaning in parameter_items(bodies.get("Parameters", "")):
        for name in names.split(","):
            meanings[name.strip()] = literal_code(" ".join(meaning.split()))
    return literal_code(head.strip()), meanings


def parameter_items(body: str) -> Iterator[tuple[str, str]]:
    """Pairs of (names, indented description) of a NumPy-style parameter section."""
    for item in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", body, flags=re.MULTILINE):
        yield item[1], item[2]


def literal_code(text: str) -> str:
    """Docstrings mark code with two backquotes, Markdown with one."""
    return text.replace("``", "`")


def command_line_page() -> str:
    """Every command with its arguments and options, as Typer tells them."""
    sections = ["# Command line", "Errors in the input end with exit status 2 and one line."]
    for name in COMMANDS:
        if name != "experiment":  # studies have a page of their own
            command = typer.main.get_command(app_of(name))
            context = typer.Context(command, info_name=name)
            sections.append(
                get_docs_for_click(
                    obj=command, ctx=context, indent=1, name=name, call_prefix="foresail"
                ).strip()
            )
    return "\n\n".join(sections) + "\n"
