"""What Numba compiles, kernel by kernel, and how long that takes.

``python -m benchmarks.compiling`` makes small uses of everything in its process and writes JSON. An
empty cache (``NUMBA_CACHE_DIR``) is up to the caller; ``measured`` has one, and a fresh process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import event
from numba.core.dispatcher import Dispatcher

import foresail
import foresail_studies
from benchmarks.bare_easy import TYPES, bare_easy

REFERENCE: Final = "bare EASY loop"
_PACKAGES: Final = ("foresail", "foresail_studies")
_USES_PER_REFERENCE: Final = 2
"""The reference is compiled among the kernels: what else the machine does slows both alike."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, by its module and name."""

    name: str
    """Without the package's."""
    times: int
    """How often it was compiled: once for every combination of its arguments' types."""
    own_seconds: float
    seconds: float
    """Processor time of all of them, without and with what they call."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """All that was compiled."""

    kernels: tuple[Kernel, ...]
    """Those of Foresail; what is Numba's own counts to the kernel it was compiled for."""
    reference_seconds: float
    """Processor time for ``benchmarks.bare_easy`` in the same process: the median of several."""
    unreached: tuple[str, ...]
    """Kernels that nothing compiled."""

    @property
    def seconds(self) -> float:
        """Of all together."""
        return sum(kernel.own_seconds for kernel in self.kernels)

    def ratio(self, seconds: float) -> float:
        """Seconds per second of the reference."""
        return seconds / self.reference_seconds

    def table(self) -> str:
        """A line for each kernel, those of the longest own time first, and the sum."""
        lines = [f"{'kernel':60}{'times':>6}{'own':>8}{'with called':>13}{'ratio':>8}"]
        lines += [
            f"{each.name:60}{each.times:6}{each.own_seconds:8.2f}{each.seconds:13.2f}"
            f"{self.ratio(each.own_seconds):8.2f}"
            for each in sorted(self.kernels, key=lambda each: -each.own_seconds)
        ]
        times = sum(each.times for each in self.kernels)
        ratio = self.ratio(self.seconds)
        lines.append(f"{'together':60}{times:6}{self.seconds:8.2f}{'':13}{ratio:8.2f}")
        lines.append(f"{REFERENCE:66}{self.reference_seconds:8.2f}")
        lines += [f"not compiled: {name}" for name in self.unreached]
        return "\n".join(lines)


class _Clock(event.Listener):  # type: ignore[misc]
    """Processor seconds of each compilation, with and without those it causes."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, float]] = []
        self._open: list[list[float]] = []

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - as Numba calls it
        """One more, inside those that are open."""
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        """The innermost is done; what is not Foresail's is part of what it was compiled for."""
        began, called = self._open.pop()
        seconds = time.process_time() - began
        name = _name(event.data["dispatcher"])
        if name is None:
            return
        if self._open:
            self._open[-1][1] += seconds
        self.rows.append((name, seconds - called, seconds))

    def kernels(self) -> Iterator[Kernel]:
        """What was compiled, the times of one kernel together."""
        for name in sorted({row[0] for row in self.rows}):
            rows = [row for row in self.rows if row[0] == name]
            yield Kernel(name, len(rows), sum(row[1] for row in rows), sum(row[2] for row in rows))


def _name(dispatcher: Dispatcher) -> str | None:
    function = dispatcher.py_func
    package, _, module = function.__module__.partition(".")
    return f"{module}.{function.__qualname__}" if package in _PACKAGES else None


@contextmanager
def _listening() -> Iterator[_Clock]:
    clock = _Clock()
    with event.install_listener("numba:compile", clock):
        yield clock


def _reference_seconds() -> float:
    dispatcher = numba.njit(error_model="numpy")(bare_easy)
    began = time.process_time()
    dispatcher.compile(TYPES)
    return time.process_time() - began


def _unreached() -> Iterator[str]:
    """Kernels of which no signature is compiled, in packages of kernels and all that was used."""
    for package in (foresail, foresail_studies):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".kernels." in module.name:
                importlib.import_module(module.name)
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] in _PACKAGES:
            for each in vars(module).values():
                if isinstance(each, Dispatcher) and not each.signatures:
                    yield _name(each) or ""


def compiled_here(names: Sequence[str] = ()) -> Compiled:
    """Make small uses (by name; else all), and say what they compile in this process."""
    _reference_seconds()  # the first one also sets up Numba and LLVM
    references = [_reference_seconds()]
    with _listening() as clock:
        # What is imported is compiled as late as that, if at import.
        from benchmarks.small_uses import SMALL_USES

        for number, (name, use) in enumerate(SMALL_USES.items()):
            if not names or name in names:
                if number % _USES_PER_REFERENCE == 0:
                    references.append(_reference_seconds())
                gc.collect()  # else some kernel is charged with it
                gc.disable()
                with contextlib.redirect_stdout(io.StringIO()):
                    use()
                gc.enable()
    reference = statistics.median(references)
    return Compiled(tuple(clock.kernels()), reference, tuple(sorted(set(_unreached()))))


def measured(names: Sequence[str] = ()) -> Compiled:
    """The same in a fresh process with an empty cache.

    Raises
    ------
    subprocess.CalledProcessError
        If a use fails; its message went to standard error.
    """
    with tempfile.TemporaryDirectory() as cache:
        ran = subprocess.run(
            [sys.executable, "-m", "benchmarks.compiling", *names],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            cwd=Path(__file__).resolve().parents[1],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    record = json.loads(ran.stdout)
    kernels = tuple(Kernel(**each) for each in record.pop("kernels"))
    return Compiled(kernels, record["reference_seconds"], tuple(record["unreached"]))


if __name__ == "__main__":
    json.dump(asdict(compiled_here(sys.argv[1:])), sys.stdout)
