"""Options that several commands of ``foresail cloud`` share, and options from a file."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from foresail.model.documents import toml_of
from foresail.model.errors import InputError

Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", metavar="DIR", help="Write a report and its numbers.")
]


def _from_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options that a file gives for those that were not given."""
    if path is not None and not context.resilient_parsing:
        name = str(context.info_name)
        context.default_map = _defaults(context, path, _table(path, name))
    return path


Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        help="Options in a table with the command's name; what is given here goes first.",
        callback=_from_file,
        is_eager=True,
    ),
]


def _table(path: Path, name: str) -> Mapping[str, Any]:
    table = toml_of(path).get(name)
    if not isinstance(table, dict):
        raise InputError("has no such table", source=path, field=name, expected=f"[{name}]")
    return table


def _defaults(context: typer.Context, path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """The file's values by parameter, each checked as if it had been written as an option."""
    options = {
        option.lstrip("-"): parameter
        for parameter in context.command.params
        for option in parameter.opts
        if option.startswith("--") and option not in ("--config", "--help")
    }
    defaults = {}
    for key, value in table.items():
        written = key.replace("_", "-")
        if written not in options:
            near = get_close_matches(written, options) or sorted(options)
            raise InputError("no such option", source=path, field=key, expected=" or ".join(near))
        parameter = options[written]
        alone = getattr(parameter, "multiple", False) and not isinstance(value, list)
        given = [value] if alone else value
        try:
            parameter.process_value(context, given)
        except Exception as error:
            problem = getattr(error, "message", "cannot be")
            raise InputError(problem, source=path, field=key, value=value) from error
        defaults[str(parameter.name)] = given
    return defaults
