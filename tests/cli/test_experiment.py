"""``foresail experiment`` where no studies are installed."""

from __future__ import annotations

from importlib import metadata
from importlib.machinery import ModuleSpec

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app, app_of
from foresail.model.errors import InputError


def test_without_studies_the_command_says_what_brings_them(monkeypatch):
    """One line that names the distribution; with it, ``tests/studies`` tries the command."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    with pytest.raises(InputError, match="foresail-studies"):
        app_of("experiment")


@pytest.mark.parametrize("installed", [True, False])
def test_help_shows_the_command_where_it_can_be_called(monkeypatch, installed):
    """Studies are a distribution of their own, which need not be there."""
    spec = ModuleSpec("foresail_studies", None) if installed else None
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    said = CliRunner().invoke(app, ["--help"]).stdout
    assert "campaign" in said
    assert ("experiment" in said) == installed
