"""``foresail cloud``: one file per command."""

from __future__ import annotations

import importlib
import pkgutil

from foresail.cli.log_options import CommandGroup

app = CommandGroup("What to own, what to rent, and what may be taken back.")
for module in pkgutil.iter_modules(__path__):
    app.named(module.name)(importlib.import_module(f"{__name__}.{module.name}").command)
