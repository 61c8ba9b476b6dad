"""What tests of commands share: the command line, called; no progress, however slow it is."""

import math

import pytest

from foresail.cli import main as cli
from foresail.cli import progress_line


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    monkeypatch.setattr(progress_line, "PATIENCE_SECONDS", math.inf)


@pytest.fixture
def foresail(monkeypatch, capsys):
    """Call the command line; returns exit status, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["foresail", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    return call
