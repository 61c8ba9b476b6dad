"""``foresail experiment`` where no studies are installed."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata

import pytest

from foresail.model.errors import InputError


def test_without_studies_the_command_says_what_brings_them(monkeypatch):
    """One line that names the distribution; with it, ``tests/studies`` tries the command."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    monkeypatch.delitem(sys.modules, "foresail.cli.experiment", raising=False)
    with pytest.raises(InputError, match="foresail-studies"):
        importlib.import_module("foresail.cli.experiment")
