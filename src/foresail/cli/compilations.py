"""Notes what Numba compiles, as something that is being done, without importing Numba for it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from foresail.cli.progress import doing


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
