"""Slurm as a distribution of its own: its budget, its contracts, and what is said without it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import foresail
from architecture.floors import ROOT
from foresail.model.registry import find

SOURCE = ROOT / "slurm" / "src" / "foresail_slurm"
MOST_LINES = 2_820

USES = """
import sys
from foresail.model.registry import find
assert find("cluster", "local").build is not None
print(sorted(each for each in sys.modules if each.startswith("foresail_slurm")))
"""


def test_it_is_small() -> None:
    """All of it within its budget: whoever raises that says what left instead."""
    lines = sum(each.read_bytes().count(b"\n") for each in SOURCE.rglob("*.py"))
    assert lines <= MOST_LINES


def test_it_keeps_to_its_joints() -> None:
    """Import contracts: nothing stands on it, and it needs no more than they name."""
    lint = str(Path(sys.executable).with_name("lint-imports"))
    command = [lint, "--no-cache", "--no-logo", "--config", "slurm/imports.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_the_version_and_is_found() -> None:
    """Versions are exactly the product's; the cluster is the registry's, by the entry point."""
    project = tomllib.loads((ROOT / "slurm" / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"foresail=={foresail.__version__}" in project["dependencies"]
    assert find("cluster", "slurm").build.__module__ == "foresail_slurm.adapters.slurm"


def test_who_does_not_use_it_loads_none_of_it() -> None:
    """Another cluster is found without it."""
    done = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
