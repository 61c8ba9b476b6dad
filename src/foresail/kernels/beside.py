"""Two processes compile what is not in the cache yet: this one, and one beside it.

``python -m foresail.kernels.beside FOLDER TASK ...`` is the other one. Each claims a task before it
does it, by making a file in the folder; this process begins at the end of the list, and both stop
where they meet. What one has compiled, the other finds in the cache on disk.
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
from typing import Any, Final, NamedTuple, TypeAlias

from numba.core import event

from foresail.kernels.compile import Step
from foresail.kernels.steps import step_address

_PACKAGE: Final = "foresail."
_COMPILING: Final = "numba:compile"


class Rehearsal(NamedTuple):
    """A function of the package that uses, and so compiles, kernels, in the other process.

    ``function`` is module and name with a colon between; it is given the ``argument``.
    """

    function: str
    argument: str


Task: TypeAlias = Step | Rehearsal


def _text(task: Task) -> str:
    """A task as a word of a command line."""
    if isinstance(task, Step):
        return f"{task.__module__}:{task.__qualname__}"
    return f"{task.function}={task.argument}"


def _done(text: str) -> None:
    """Do a task."""
    name, _, argument = text.partition("=")
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, Step):
        step_address(found)
    else:
        found(argument)


def _claimed(folder: Path, number: int) -> bool:
    """Claim a task; False if the other process has done so."""
    try:
        (folder / str(number)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class BackgroundCompiler(event.Listener):
    """Starts the other process once anything is compiled here; a full cache needs none."""

    def __init__(self, tasks: Sequence[Task], folder: Path) -> None:
        self._tasks = tuple(
            task for task in dict.fromkeys(tasks) if _text(task).startswith(_PACKAGE)
        )
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        """Note that a compilation begins."""
        if self._process is None and self._tasks:
            command = [sys.executable, "-m", "foresail.kernels.beside", str(self._folder)]
            self._process = subprocess.Popen(
                [*command, *map(_text, self._tasks)], stdin=subprocess.DEVNULL
            )

    def on_end(self, event: Any) -> None:
        """Note that a compilation has ended."""

    def measure(self) -> tuple[float, float]:
        """Return how many tasks have been begun by either process, and how many there are."""
        try:
            return len(list(self._folder.iterdir())), len(self._tasks)
        except FileNotFoundError:  # asked by another thread when all is over
            return len(self._tasks), len(self._tasks)

    def meet(self) -> None:
        """Compile here from the end of the list until the two meet, then wait for the other."""
        for number, task in reversed(list(enumerate(self._tasks))):
            if isinstance(task, Rehearsal) or not _claimed(self._folder, number):
                break
            step_address(task)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """End the other process, if it still works."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def compiling_beside(tasks: Sequence[Task]) -> Iterator[BackgroundCompiler]:
    """While in here, a second process compiles if the cache on disk is found wanting.

    ``tasks`` are steps to compile and rehearsals: these first, then the longest. Those from outside
    the package are left to this process. What is yielded has ``meet()``, which compiles what is
    left of them here too, and returns when all are; its ``measure()`` says how far they are.
    """
    with tempfile.TemporaryDirectory(prefix="foresail-") as folder:
        beside = BackgroundCompiler(tasks, Path(folder))
        if not tasks or (os.cpu_count() or 1) == 1:
            yield beside
            return
        event.register(_COMPILING, beside)
        try:
            yield beside
        finally:
            event.unregister(_COMPILING, beside)
            beside.stop()


def main() -> None:
    """Do the tasks of the command line until one is claimed by the other process."""
    folder = Path(sys.argv[1])
    for number, text in enumerate(sys.argv[2:]):
        if not _claimed(folder, number):
            break
        _done(text)


if __name__ == "__main__":
    main()
