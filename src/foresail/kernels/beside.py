"""Two processes compile what is not in the cache yet: this one, and one beside it.

``python -m foresail.kernels.beside FOLDER NAME ...`` is the other one. Each claims a step before it
compiles it, by making a file in the folder; this process begins at the end of the list, and both
stop where they meet. What one has compiled, the other finds in the cache on disk.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from numba.core import event

from foresail.kernels.calling import step_address
from foresail.kernels.compile import Step

_PACKAGE: Final = "foresail."
_COMPILING: Final = "numba:compile"


def name_of(step: Step) -> str:
    """Module and name of a step."""
    return f"{step.__module__}:{step.__qualname__}"


def _claimed(folder: Path, name: str) -> bool:
    """Claim a step; False if the other process has done so."""
    try:
        (folder / name.replace(":", "-")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class _Beside(event.Listener):
    """Starts the other process as soon as anything is compiled here; a full cache needs none."""

    def __init__(self, steps: Sequence[Step], folder: Path) -> None:
        self._steps = tuple(dict.fromkeys(steps))
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        """Something begins to be compiled."""
        names = [name_of(step) for step in self._steps]
        theirs = [name for name in names if name.startswith(_PACKAGE)]
        if self._process is None and theirs:
            command = [sys.executable, "-m", "foresail.kernels.beside", str(self._folder), *theirs]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def on_end(self, event: Any) -> None:
        """Something has been compiled."""

    def meet(self) -> None:
        """Compile here from the end of the list until the two meet, then wait for the other."""
        for step in reversed(self._steps):
            if not _claimed(self._folder, name_of(step)):
                break
            step_address(step)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """End the other process, if it still works."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def compiling_beside(steps: Sequence[Step]) -> Iterator[_Beside]:
    """While in here, a second process compiles steps if the cache on disk is found wanting.

    Parameters
    ----------
    steps
        The longest to compile first. Steps from outside the package are left to this process.

    Yields
    ------
    An object whose ``meet()`` compiles what is left of them here too, and returns when all are.
    """
    with tempfile.TemporaryDirectory(prefix="foresail-") as folder:
        beside = _Beside(steps, Path(folder))
        if not steps or (os.cpu_count() or 1) == 1:
            yield beside
            return
        event.register(_COMPILING, beside)
        try:
            yield beside
        finally:
            event.unregister(_COMPILING, beside)
            beside.stop()


def main() -> None:
    """Compile the steps named on the command line until one is claimed."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        if not _claimed(folder, name):
            break
        module, _, attribute = name.partition(":")
        step_address(getattr(importlib.import_module(module), attribute))


if __name__ == "__main__":
    main()
