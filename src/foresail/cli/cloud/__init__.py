"""``foresail cloud``: one file per command, here or in packages that other distributions name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Final

from foresail.cli.log_options import CommandGroup
from foresail.model.errors import InputError
from foresail.model.registry import installed_packages

_OF_STUDIES: Final = ("sync", "waiting")


def group_of(packages: Iterable[str]) -> CommandGroup:
    """The commands of some packages; of those of the studies that are missing, what brings them."""
    group = CommandGroup("What to own, what to rent, and what may be taken back.")
    missing = set(_OF_STUDIES)
    for package in packages:
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            group.named(module.name)(importlib.import_module(f"{package}.{module.name}").command)
            missing.discard(module.name)
    for name in missing:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        group.command(name, hidden=True, context_settings=anything)(_refuse)
    return group


def _refuse() -> None:
    raise InputError("no published analyses are here", expected="foresail-studies to be installed")


app = group_of((__name__, *installed_packages("cloud.commands")))
