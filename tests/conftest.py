"""Settings for all tests: the tests' own modules are importable, Hypothesis is deterministic."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("foresail", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("foresail")


@pytest.fixture(autouse=True)
def _registry_as_shipped(monkeypatch):
    """What a test registers is gone after it; the package's own plug-ins are found before it."""
    from foresail.model import registry

    for family in registry.FAMILIES:
        list(registry.entries(family))
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


@pytest.fixture
def foresail(monkeypatch, capsys):
    """Call the command line; returns exit status, standard output and standard error."""
    from foresail.cli import main as cli

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["foresail", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    return call
