"""Files with plug-ins of one's own: what commands that look for names are told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer


def _loaded(plugins: list[Path] | None) -> list[Path] | None:
    """The files, once what they register can be found."""
    if plugins:
        from foresail.model.registry import load_plugin

        for plugin in plugins:
            load_plugin(plugin)
    return plugins


Plugins: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A file with plug-ins of your own; may be repeated.",
        callback=_loaded,
    ),
]
"""They are loaded as the command line is read, before any name is looked for."""
