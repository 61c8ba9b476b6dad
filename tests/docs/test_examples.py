"""The examples run, and print what the documentation shows."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from foresail.checks.predictors import check_correction, check_predictor
from foresail.checks.readers import check_reader
from foresail.checks.schedulers import check_scheduler
from foresail.model.registry import Entry, find, load_plugin

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


@pytest.mark.parametrize(
    ("family", "name", "check"),
    [
        ("scheduler", "shortest_likely", check_scheduler),
        ("predictor", "mean_of_width", check_predictor),
        ("correction", "half_again", check_correction),
        ("reader", "minutes_log", check_reader),
    ],
)
def test_example_plug_in_is_found_by_its_name_and_keeps_the_rules(
    family: str, name: str, check: Callable[[Entry], None]
) -> None:
    """The plug-ins of the examples can be loaded from their files, as ``--plugin`` does."""
    load_plugin(EXAMPLES / f"{name}.py")
    entry = find(family, name)
    assert entry.summary
    check(entry)
