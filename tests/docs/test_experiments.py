"""Every script of ``experiments/`` finds what it imports, modules of the tests among it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(ROOT.glob("experiments/*/*.py"))
IMPORT = """
import pathlib, runpy, sys
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
runpy.run_path(sys.argv[1], run_name="imported")
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_finds_what_it_imports(script):
    """It is imported as it is run: from the repository, with the path that its usage names."""
    needs_tests = "PYTHONPATH=tests python" in script.read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "tests" if needs_tests else ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
