"""Where the real logs are: beside the checkout for those who build Foresail, absent for users."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(relative: str) -> Path:
    """Path of a file under ``../shared``; skips the test, saying so, where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"{relative} is not here: ../shared exists only beside the builders' checkout")
    return path
