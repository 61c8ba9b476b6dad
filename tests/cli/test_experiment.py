"""``foresail experiment`` where no studies are installed."""

from __future__ import annotations

from importlib import metadata

import pytest

from foresail.cli.main import app_of
from foresail.model.errors import InputError


def test_without_studies_the_command_says_what_brings_them(monkeypatch):
    """One line that names the distribution; with it, ``tests/studies`` tries the command."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    with pytest.raises(InputError, match="foresail-studies"):
        app_of("experiment")
