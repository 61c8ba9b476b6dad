"""How kernels are cached."""

import subprocess
import sys
from pathlib import Path

import numba
import pytest

from foresail.kernels.compile import part

USED = """
from foresail_kept import Kind, total
print(total(Kind(2.0)))
"""

KERNEL = """
from foresail.kernels.compile import kernel
from foresail_kinds import (
    MORE,
    Kind,
)

@kernel
def total(kind):
    return kind.amount + MORE
"""

KINDS = """
from typing import NamedTuple

MORE = {more}

class {kind}(NamedTuple):
    amount: float

Kind = {kind}
"""


@pytest.mark.parametrize(("kind", "more"), [("Before", 3.0), ("After", 1.0)])
def test_what_other_sources_left_is_not_looked_at(tmp_path: Path, kind: str, more: float) -> None:
    """A kernel is compiled again once a class or a constant of another module has changed."""
    for kinds in (KINDS.format(kind="Before", more=1.0), KINDS.format(kind=kind, more=more)):
        (tmp_path / "foresail_kept.py").write_text(KERNEL)
        (tmp_path / "foresail_kinds.py").write_text(kinds)
        done = subprocess.run(
            [sys.executable, "-B", "-c", USED],
            cwd=tmp_path,
            env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": "kept"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, f"{2.0 + more}\n"), done.stderr


def test_a_full_disk_keeps_no_kernel_and_stops_nobody(tmp_path: Path) -> None:
    """What no room is left for is compiled for this run only."""
    (tmp_path / "foresail_kept.py").write_text(KERNEL)
    (tmp_path / "foresail_kinds.py").write_text(KINDS.format(kind="Before", more=1.0))
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
    done = subprocess.run(
        [sys.executable, "-B", "-c", full + USED],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": "kept"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr
    assert not list((tmp_path / "kept").rglob("*.nbc"))


@part
def _next(number: int) -> int:
    return number + 1


@numba.njit
def _three(number: int) -> int:
    return _next(0) + _next(1) + _next(number)


def test_a_part_is_compiled_once_for_all_constants() -> None:
    """Numba would compile it for 0, for 1 and for whole numbers in general."""
    assert _three(5) == 9
    assert len(_next.nopython_signatures) == 1
