"""Groups of commands: a package with one file per command, each defining it as ``command``.

A file's name is its command's name; nothing lists the files. They import the heavy libraries
inside ``command``, so that the group's help is quick.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

import typer

from foresail.cli.option_records import with_option_records


def group_of(package: str, folders: Iterable[str], summary: str) -> typer.Typer:
    """The group of a package (its ``__name__`` and ``__path__``), without what begins with _."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=summary)
    for module in pkgutil.iter_modules(folders):
        if not module.name.startswith("_"):
            command = importlib.import_module(f"{package}.{module.name}").command
            app.command(module.name)(with_option_records(command))
    return app
