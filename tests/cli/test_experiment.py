"""Commands that other distributions bring, where these are not installed."""

from __future__ import annotations

from importlib import metadata
from importlib.machinery import ModuleSpec

import pytest
from typer.testing import CliRunner

from foresail.cli.main import app, app_of
from foresail.model.errors import InputError

ELSEWHERE = {"experiment": "foresail-studies", "slurm": "foresail-slurm"}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_command_that_is_not_installed_says_what_brings_it(monkeypatch, name):
    """One line names the distribution; ``tests/studies`` and ``tests/slurm`` try the command."""
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    with pytest.raises(InputError, match=f"expected {ELSEWHERE[name]} to be installed"):
        app_of(name)


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("installed", [True, False])
def test_help_shows_a_command_where_it_can_be_called(monkeypatch, name, installed):
    """Each distribution shows its own, and need not be there."""
    here = ELSEWHERE[name].replace("-", "_")
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda package: ModuleSpec(package, None) if installed and package == here else None,
    )
    words = CliRunner().invoke(app, ["--help"]).stdout.split()
    assert "campaign" in words
    assert [each for each in ELSEWHERE if each in words] == ([name] if installed else [])
