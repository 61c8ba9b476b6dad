"""Progress of a command, said on standard error once something has taken two seconds.

Code that takes long says so with ``doing`` (or ``reading``); it neither knows nor cares whether
anybody looks. Lower floors take a plain function, ``progressed(done, total)``, or a
``foresail.model.protocols.ProgressCallback``. On a terminal rich draws one line that moves and is
gone at the end; elsewhere there is a plain line now and then; nothing at all where a program asked
for the output.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from foresail.model.words import duration, number

if TYPE_CHECKING:
    from rich.live import Live

    from foresail.model.protocols import Progress

PATIENCE_SECONDS = 2.0
"""Longest silence of work in progress."""

_PLAIN_SECONDS: Final = 10.0
_PLAIN_SHARE: Final = 0.1
"""A plain line comes after so many seconds, or this share of the time so far if that is more."""

_REDRAWN_SECONDS: Final = 0.125
_WHEEL_WIDTH: Final = 3
_CUT: Final = "..."
_DAY: Final = 86_400.0
_MEGABYTE: Final = 1e6
_FORMATS_OF_PROGRAMS: Final = ("json", "csv")


def _in_counts(done: float, total: float | None) -> str:
    """Write counts: ``3 of 11``."""
    return number(done) if total is None else f"{number(done)} of {number(total)}"


def in_shares(done: float, total: float | None) -> str:
    """Write a share: ``45 %``."""
    return _in_counts(done, total) if not total else f"{100.0 * done / total:.0f} %"


def in_bytes(done: float, total: float | None) -> str:
    """Write bytes: ``12 of 340 MB``."""
    whole = "" if total is None else f" of {number(round(total / _MEGABYTE))}"
    return f"{number(round(done / _MEGABYTE))}{whole} MB"


def in_days(done: float, total: float | None) -> str:
    """Write seconds as days: ``day 140 of 340``."""
    whole = "" if total is None else f" of {number(int(total / _DAY) + 1)}"
    return f"day {number(int(done / _DAY) + 1)}{whole}"


@dataclass(slots=True, eq=False)
class Doing:
    """One thing that is being done, in words such as ``reading KTH-SP2``, and how far it is.

    ``total`` is how much there is to be done, in any unit, if that is known; ``said`` puts what is
    done into words.
    """

    what: str
    total: float | None = None
    said: Callable[[float, float | None], str] = _in_counts
    done: float = 0.0
    measure: Progress | None = None
    seen_at: float | None = None
    seen_done: float = 0.0

    def progressed(self, done: float, total: float | None) -> None:
        """Take note of how far it is."""
        self.done, self.total = done, total

    def begin(self, what: str, done: float, total: float | None) -> None:
        """Go on with something else, unless it is the same."""
        if what != self.what:
            self.what, self.seen_at = what, None
        self.progressed(done, total)

    def watch(self, measure: Progress) -> None:
        """Ask this how far it is, whenever that is to be shown."""
        self.measure = measure

    def words(self) -> str:
        """Say what is done, and how much of it if that is known."""
        if self.measure is not None:
            self.progressed(*self.measure())
        if not self.done and self.total is None:
            return self.what
        return f"{self.what}: {self.said(self.done, self.total)}"

    def seconds_left(self, now: float) -> float | None:
        """Return how long the rest takes if it goes on as since it was first looked at."""
        if self.seen_at is None:
            self.seen_at, self.seen_done = now, self.done
        progress = self.done - self.seen_done
        if self.total is None or progress <= 0 or now <= self.seen_at:
            return None
        return max(0.0, (self.total - self.done) * (now - self.seen_at) / progress)


_stack: list[Doing] = []
"""Work in progress, each item a part of the one before it."""

_threads: list[_ProgressThread] = []
"""Threads that show it; none where nothing is done, or progress is not shown."""

_is_shown = False


@contextmanager
def doing(
    what: str, total: float | None = None, said: Callable[[float, float | None], str] = _in_counts
) -> Iterator[Doing]:
    """Say what is being done meanwhile; within something else that is done, a part of that."""
    entered = Doing(what, total, said)
    _stack.append(entered)
    _compilations.listen()
    if _is_shown and not _threads:
        _threads.append(_ProgressThread())
    try:
        yield entered
    finally:
        _stack.remove(entered)
        if not _stack:
            _end_thread()


@contextmanager
def reading(path: Path) -> Iterator[Callable[[int], None]]:
    """Say that a file is read; yields a function to call with the number of bytes just read."""
    total = float(path.stat().st_size) if path.is_file() else None
    with doing(f"reading {path.name}", total, in_bytes) as entered:

        def advance(count: int) -> None:
            entered.done += count

        yield advance


def sentence(now: float, elapsed: float, width: int | None = None) -> str:
    """Say what is being done, since when, and how long it may still take.

    No longer than the width: what is done gives way to how long it takes.
    """
    entered = list(_stack)
    words = ", ".join(each.words() for each in entered) or "working"
    estimates = [each.seconds_left(now) for each in entered]
    left = next((seconds for seconds in reversed(estimates) if seconds is not None), None)
    rest = "" if left is None else f", about {duration(max(1, round(left)))} left"
    times = f" ({duration(round(elapsed))}{rest})"
    if width is not None and len(words) + len(times) > width:
        words = words[: max(0, width - len(times) - len(_CUT))] + _CUT
    return words + times


class Compilations:
    """Enters what is compiled, and what number it is, into what is being done."""

    def __init__(self) -> None:
        self._listens = False
        self._depth = 0
        self._count = 0
        self._doing = ExitStack()

    def listen(self) -> None:
        """Begin to take note, once a command has imported Numba."""
        if self._listens or not hasattr(sys.modules.get("numba"), "njit"):
            return
        from numba.core import event

        noting = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                noting.begun(event.data["dispatcher"].py_func.__module__)

            def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
                noting.ended()

        self._listens = True
        event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]

    def begun(self, module: str) -> None:
        """Note that a module's kernel is compiled; parts of one being compiled do not count."""
        self._depth += 1
        if self._depth > 1:
            return
        self._count += 1
        *packages, name = module.split(".")
        said = f"{packages[-1]} {name}" if name.startswith("_") and packages else name
        words = " ".join(said.replace("_", " ").split())
        self._doing.enter_context(
            doing(f"compiling {words}, part {self._count}, once for all later runs")
        )

    def ended(self) -> None:
        """Note that what was begun last is compiled."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._doing.close()


_compilations = Compilations()


class _ProgressThread(threading.Thread):
    """Shows what is being done, once that has taken a while, until it is ended."""

    def __init__(self) -> None:
        super().__init__(name="progress", daemon=True)
        self._began = time.monotonic()
        self._over = threading.Event()
        self._moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.start()

    def run(self) -> None:
        """Have a line move on a terminal; write plain lines elsewhere, ever more rarely."""
        if self._over.wait(min(PATIENCE_SECONDS, threading.TIMEOUT_MAX)):
            return
        with suppress(OSError, ValueError):  # nobody reads standard error any more
            if self._moves:
                with _moving_line(self._began):
                    self._over.wait()
            pause = 0.0
            while not self._over.wait(pause):
                _compilations.listen()
                elapsed = time.monotonic() - self._began
                print(sentence(time.monotonic(), elapsed), file=sys.stderr, flush=True)  # noqa: T201
                pause = max(_PLAIN_SECONDS, _PLAIN_SHARE * elapsed)

    def end(self) -> None:
        """Say nothing more."""
        self._over.set()
        self.join()


def _moving_line(began: float) -> Live:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console, wheel = Console(file=sys.stderr, markup=False, highlight=False), Spinner("line")

    def line() -> Spinner:
        _compilations.listen()
        now = time.monotonic()
        wheel.update(text=Text(sentence(now, now - began, console.width - _WHEEL_WIDTH)))
        return wheel

    return Live(
        console=console,
        get_renderable=line,
        refresh_per_second=1.0 / _REDRAWN_SECONDS,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else it is left alone
    )


@contextmanager
def progress_shown(arguments: Sequence[str]) -> Iterator[None]:
    """Say what is being done meanwhile, unless the arguments ask for output for a program."""
    global _is_shown
    _is_shown = not for_a_program(arguments)
    try:
        yield
    finally:
        stop_showing()


def stop_showing() -> None:
    """Show nothing more: a command shows by itself what it does, or a program reads its output."""
    global _is_shown
    _is_shown = False
    _end_thread()


def _end_thread() -> None:
    while _threads:
        _threads.pop().end()


def for_a_program(arguments: Sequence[str]) -> bool:
    """Return whether command line arguments ask for output that a program reads."""
    joined = " ".join(arguments).replace("--format=", "--format ")
    return any(f"--format {name}" in joined for name in _FORMATS_OF_PROGRAMS)
