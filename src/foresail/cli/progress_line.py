"""Says on standard error what a command is doing, once it has taken two seconds.

On a terminal there is one line that moves and is gone at the end; elsewhere a plain line now and
then; nothing at all where a program asked for the output.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TextIO, cast

from foresail.cli.progress import doing, sentence


class Compilations:
    """Enters what is compiled, and what number it is, into what is being done."""

    def __init__(self) -> None:
        self._listener: Any = None
        self._depth = 0
        self._count = 0
        self._doing = ExitStack()

    def listen(self) -> None:
        """Begin to take note, once a command has imported Numba."""
        if self._listener is not None or not hasattr(sys.modules.get("numba"), "njit"):
            return
        from numba.core import event

        noting = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                noting.begun(event.data["dispatcher"].py_func.__module__)

            def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
                noting.ended()

        self._listener = Listener()
        event.register("numba:compile", self._listener)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Take no more note."""
        if self._listener is None:
            return
        from numba.core import event

        event.unregister("numba:compile", self._listener)  # type: ignore[no-untyped-call]
        self._doing.close()

    def begun(self, module: str) -> None:
        """Something of a module is compiled; parts of what is being compiled do not count."""
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
        """What was begun last is compiled."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._doing.close()


PATIENCE_SECONDS = 2.0
"""How long a command may be silent."""

_PLAIN_SECONDS: Final = 10.0
_PLAIN_SHARE: Final = 0.1
"""A plain line comes after so many seconds, or this share of the time so far if that is more."""

_REDRAWN_SECONDS: Final = 0.125
_WHEEL: Final = "|/-\\"
_BESIDE: Final = 3
"""Columns of the wheel, a space, and the last one, in which a terminal may break the line."""

_CLEARED: Final = "\r\x1b[2K"
_FORMATS_OF_PROGRAMS: Final = ("json", "csv")


class ProgressLine:
    """Says on a stream what is being done, as a line that moves or as plain lines.

    ``tick`` does it if it is time; ``clear`` takes the moving line away for other output.
    """

    def __init__(self, stream: TextIO, moving: bool, now: float) -> None:
        self._stream = stream
        self._moving = moving
        self._began = now
        self._next = now + PATIENCE_SECONDS
        self._turns = 0
        self._drawn = False
        self._line_is_open = False
        self._lock = threading.RLock()

    def tick(self, now: float) -> None:
        """Say what is being done, if it is time to."""
        with self._lock:
            if now < self._next or self._line_is_open:
                return
            elapsed = now - self._began
            if self._moving:
                self._next = now + _REDRAWN_SECONDS
                self._draw(sentence(now, elapsed, _width(self._stream) - _BESIDE))
            else:
                line = sentence(now, elapsed)
                self._next = now + max(_PLAIN_SECONDS, _PLAIN_SHARE * elapsed)
                self._stream.write(f"{line}\n")
                self._stream.flush()

    def _draw(self, line: str) -> None:
        self._turns += 1
        self._stream.write(f"{_CLEARED}{_WHEEL[self._turns % len(_WHEEL)]} {line}")
        self._stream.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the moving line away."""
        with self._lock:
            if self._drawn:
                self._stream.write(_CLEARED)
                self._stream.flush()
                self._drawn = False

    def write_beside(self, stream: TextIO, text: str) -> int:
        """Write something else to the same terminal: the line makes room for it."""
        with self._lock:
            self.clear()
            if text:
                self._line_is_open = not text.endswith("\n")
            return stream.write(text)


class _Beside:
    """A stream to the terminal on which the line moves."""

    def __init__(self, stream: TextIO, teller: ProgressLine) -> None:
        self._stream = stream
        self._teller = teller

    def write(self, text: str) -> int:
        """As the stream itself does."""
        return self._teller.write_beside(self._stream, text)

    def writelines(self, lines: Sequence[str]) -> None:
        """As the stream itself does."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _TellerThread:
    """A teller that a thread of its own asks, and the streams that it has taken over."""

    def __init__(self) -> None:
        stream = sys.stderr
        moving = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._teller = ProgressLine(stream, moving, time.monotonic())
        self._compilations = Compilations()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._replaced: list[tuple[str, TextIO]] = []
        if moving:
            self._replaced = [
                (name, each)
                for name, each in (("stdout", sys.stdout), ("stderr", stream))
                if each.isatty()
            ]
        for name, each in self._replaced:
            setattr(sys, name, cast("TextIO", _Beside(each, self._teller)))
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_REDRAWN_SECONDS):
            self._compilations.listen()
            try:
                self._teller.tick(time.monotonic())
            except (OSError, ValueError):  # nobody reads standard error any more
                return

    def end(self) -> None:
        """Say nothing more, and give the streams back."""
        self._over.set()
        self._thread.join()
        self._compilations.stop()
        self._teller.clear()
        for name, each in self._replaced:
            setattr(sys, name, each)
        self._replaced = []


_running: list[_TellerThread] = []


@contextmanager
def progress_shown(arguments: Sequence[str]) -> Iterator[None]:
    """Tell what is being done meanwhile, unless the arguments ask for output for a program."""
    if not for_a_program(arguments):
        _running.append(_TellerThread())
    try:
        yield
    finally:
        stop_showing()


def stop_showing() -> None:
    """Show nothing more: a command shows by itself what it does, or a program reads its output."""
    while _running:
        _running.pop().end()


def for_a_program(arguments: Sequence[str]) -> bool:
    """Whether command line arguments ask for output that a program reads."""
    joined = " ".join(arguments).replace("--format=", "--format ")
    return any(f"--format {name}" in joined for name in _FORMATS_OF_PROGRAMS)


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
