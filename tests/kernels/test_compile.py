"""How kernels are cached."""

import subprocess
import sys
from pathlib import Path

import numba

from foresail.kernels.compile import part

USED = """
import sys, foresail
foresail.__version__ = sys.argv[1]
from kept import Kind, total
print(total(Kind(2.0)))
"""

KERNEL = """
from typing import NamedTuple
from foresail.kernels.compile import kernel

class {kind}(NamedTuple):
    amount: float

@kernel
def total(kind):
    return kind.amount + 1.0

Kind = {kind}
"""


def test_what_another_version_cached_is_not_looked_at(tmp_path: Path) -> None:
    """A class that a kernel was compiled for is gone in the next version: it is compiled again."""
    for version, kind in (("0.1", "Before"), ("0.2", "After")):
        (tmp_path / "kept.py").write_text(KERNEL.format(kind=kind))
        done = subprocess.run(
            [sys.executable, "-c", USED, version],
            cwd=tmp_path,
            env={"PYTHONPATH": ":".join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": "kept"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr


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
