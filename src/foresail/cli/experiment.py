"""``foresail experiment``: published studies, a command that ``foresail-studies`` brings."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from foresail.model.errors import InputError


def _installed_command() -> typer.Typer:
    for point in entry_points(group="foresail.commands", name="experiment"):
        command: typer.Typer = point.load()
        return command
    raise InputError("no published studies are here", expected="foresail-studies to be installed")


app = _installed_command()
