"""Kernels that are compiled while a service runs: once on a machine, when they are first needed."""

from __future__ import annotations

import logging
from typing import Any, Final

from numba.core import event

_LOG: Final = logging.getLogger("foresail.service")
_WORDS: Final = "what the policy needs is being compiled, once on this machine: that takes a while"


class CompileWatch(event.Listener):
    """Notes whether something is compiled, from when it listens on."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_told = False

    def listen(self) -> None:
        """Begin to take note."""
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Take no more note."""
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]

    @property
    def remark(self) -> str:
        """What people should know now; empty if nothing is compiled."""
        return _WORDS if self._depth else ""

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """Something is compiled, for itself or as part of what is."""
        self._depth += 1
        if not self._is_told:
            self._is_told = True
            _LOG.info("%s", _WORDS)

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
        """What was begun last is compiled."""
        self._depth = max(0, self._depth - 1)
