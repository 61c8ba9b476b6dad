"""Commands of these tests say nothing of their progress, however slow the machine is."""

import math

import pytest

from foresail.cli import telling


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    monkeypatch.setattr(telling, "PATIENCE_SECONDS", math.inf)
