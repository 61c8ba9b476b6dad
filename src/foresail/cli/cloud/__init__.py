"""``foresail cloud``: one file per command, each defining its function as ``command``.

The file's name is the command's name; nothing lists the files. They import the heavy libraries
inside ``command``, so that the group's help is quick.
"""

from __future__ import annotations

import importlib
import pkgutil

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def cloud() -> None:
    """What to own, what to rent, what may be taken back, and what waiting for each other costs."""


for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        _command = importlib.import_module(f"{__name__}.{_module.name}").command
        app.command(_module.name)(_command)
