"""What a command is doing, in words, for ``foresail.cli.progress_line`` to tell.

Code that takes long says so with ``doing`` (or ``reading``); it neither knows nor cares whether
anybody looks. Lower floors take a plain function, ``progressed(done, total)``, or a
``foresail.model.protocols.ProgressCallback``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from foresail.model.words import duration, number

if TYPE_CHECKING:
    from foresail.model.protocols import Progress

_CUT: Final = "..."
_DAY: Final = 86_400.0
_MEGABYTE: Final = 1e6


def in_counts(done: float, total: float | None) -> str:
    """As ``3 of 11``."""
    return number(done) if total is None else f"{number(done)} of {number(total)}"


def in_shares(done: float, total: float | None) -> str:
    """As ``45 %``."""
    return in_counts(done, total) if not total else f"{100.0 * done / total:.0f} %"


def in_bytes(done: float, total: float | None) -> str:
    """As ``12 of 340 MB``."""
    whole = "" if total is None else f" of {number(round(total / _MEGABYTE))}"
    return f"{number(round(done / _MEGABYTE))}{whole} MB"


def in_days(done: float, total: float | None) -> str:
    """As ``day 140 of 340``, of seconds."""
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
    said: Callable[[float, float | None], str] = in_counts
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
        """What is done, and how much of it if that is known."""
        if self.measure is not None:
            self.progressed(*self.measure())
        if not self.done and self.total is None:
            return self.what
        return f"{self.what}: {self.said(self.done, self.total)}"

    def seconds_left(self, now: float) -> float | None:
        """How long the rest takes if it goes on as since it was first looked at."""
        if self.seen_at is None:
            self.seen_at, self.seen_done = now, self.done
        progress = self.done - self.seen_done
        if self.total is None or progress <= 0 or now <= self.seen_at:
            return None
        return max(0.0, (self.total - self.done) * (now - self.seen_at) / progress)


_stack: list[Doing] = []
"""What is being done now, each a part of what is before it."""


@contextmanager
def doing(
    what: str, total: float | None = None, said: Callable[[float, float | None], str] = in_counts
) -> Iterator[Doing]:
    """Say what is being done meanwhile; within something else that is done, a part of that."""
    entered = Doing(what, total, said)
    _stack.append(entered)
    try:
        yield entered
    finally:
        _stack.remove(entered)


@contextmanager
def reading(path: Path) -> Iterator[Callable[[int], None]]:
    """What to call with the number of bytes just read."""
    total = float(path.stat().st_size) if path.is_file() else None
    with doing(f"reading {path.name}", total, in_bytes) as entered:

        def advance(count: int) -> None:
            entered.done += count

        yield advance


def sentence(now: float, elapsed: float, width: int | None = None) -> str:
    """What is being done, since when, and how long it may still take.

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
