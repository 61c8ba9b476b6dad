"""What tests of commands share: no progress, however slow it is."""

import math

import pytest

from foresail.cli import progress


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", math.inf)
