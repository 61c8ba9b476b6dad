"""Options that several commands share, declared once as a record that these commands take whole."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

import typer


def group_of(package: str, folders: Iterable[str], summary: str) -> typer.Typer:
    """The group of a package (its ``__name__`` and ``__path__``), without what begins with _."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=summary)
    for module in pkgutil.iter_modules(folders):
        if not module.name.startswith("_"):
            command = importlib.import_module(f"{package}.{module.name}").command
            app.command(module.name)(with_option_records(command))
    return app


def with_option_records(command: Callable[..., None]) -> Callable[..., None]:
    """The command for Typer: options in place of each parameter that is a record of options.

    A record is a dataclass whose fields are annotated as parameters of commands are. Its options
    have the fields' defaults, and stand in the help where the record stands in the command.
    """
    signature = inspect.signature(command, eval_str=True)
    records: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        for option in (
            inspect.signature(records[name], eval_str=True).parameters.values()
            if name in records
            else [parameter]
        )
    ]

    @wraps(command)
    def asked(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{each.name: given.pop(each.name) for each in fields(record)})
        command(**given)

    asked.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    asked.__annotations__ = {option.name: option.annotation for option in options}
    return asked
