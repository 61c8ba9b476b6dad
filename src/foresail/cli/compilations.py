"""Notes what Numba compiles, for ``foresail.cli.progress``, without importing Numba for it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from foresail.cli.progress import Doing, doing


class Compilations:
    """Enters what is compiled, and what number it is, into what is being done."""

    def __init__(self) -> None:
        self._listening = False
        self._depth = 0
        self._count = 0
        self._doing = ExitStack()

    def listen(self) -> None:
        """Begin to take note, once a command has imported Numba."""
        if self._listening or not hasattr(sys.modules.get("numba"), "njit"):
            return
        from numba.core import event

        noting = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                noting.begun(event.data["dispatcher"].py_func.__module__)

            def on_end(self, event: Any) -> None:  # noqa: ARG002 - the signature is Numba's
                noting.ended()

        event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
        self._listening = True

    def begun(self, module: str) -> None:
        """Something of a module is compiled; parts of what is being compiled do not count."""
        self._depth += 1
        if self._depth > 1:
            return
        self._count += 1
        name = module.rpartition(".")[2].strip("_").replace("_", " ")
        entered: AbstractContextManager[Doing] = doing(
            f"compiling {name}, part {self._count}, once for all later runs"
        )
        self._doing.enter_context(entered)

    def ended(self) -> None:
        """What was begun last is compiled."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._doing.close()
