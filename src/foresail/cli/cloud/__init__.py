"""``foresail cloud``: one file per command, here or in packages that other distributions name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from foresail.cli.log_options import CommandGroup
from foresail.model.registry import installed_packages

COMMANDS: Final = "cloud.commands"
"""Behind ``foresail.``: the group of entry points that name such packages."""

app = CommandGroup("What to own, what to rent, and what may be taken back.")
for _package in (__name__, *installed_packages(COMMANDS)):
    for _module in pkgutil.iter_modules(importlib.import_module(_package).__path__):
        app.named(_module.name)(importlib.import_module(f"{_package}.{_module.name}").command)
