"""Signals that end a run: how many interrupts there have been, and a descriptor that wakes."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Self


class Interrupts:
    """Counts SIGINT as one interrupt and SIGTERM as two, while it is entered.

    ``descriptor`` is readable after each, until ``taken``.
    """

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        self.descriptor, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_before = signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._handlers = {
            number: signal.signal(number, self._interrupt)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.descriptor)
        os.close(self._woken)

    def taken(self) -> None:
        """Let the descriptor be readable again only after the next signal."""
        os.read(self.descriptor, 4096)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.count += 2 if number == signal.SIGTERM else 1
