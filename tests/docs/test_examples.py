"""The examples run, and print what the documentation shows."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_prints_what_is_shown(script: Path, tmp_path: Path) -> None:
    """Run in an empty folder, ``NAME.py`` writes exactly ``NAME.out`` to standard output."""
    result = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == script.with_suffix(".out").read_text("utf-8")
