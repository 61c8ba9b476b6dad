"""Memory is given back."""

from __future__ import annotations

import sys

import psutil
import pytest

from foresail.service.running import give_back_free_memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other C libraries do not")
def test_what_was_freed_in_pieces_is_given_back():
    """Of 60 MB of small pieces every thousandth stays; most of the rest goes back to the system."""
    process = psutil.Process()
    give_back_free_memory()
    pieces = [bytes(600) for _ in range(100_000)]
    full = process.memory_info().rss
    pieces[:] = [each for at, each in enumerate(pieces) if at % 1000 == 0]
    give_back_free_memory()
    assert full - process.memory_info().rss > 30e6
