"""Shared parts of compiled code of all families: compiling, calling, columns, orders, queues."""

import importlib
import sys

_WANTED_BY_NUMBA = "scipy"

if _WANTED_BY_NUMBA not in sys.modules:
    # Numba imports this, a third of a second on slow machines, only to see whether it is there;
    # no kernel multiplies matrices.
    sys.modules[_WANTED_BY_NUMBA] = None  # type: ignore[assignment]
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[_WANTED_BY_NUMBA]
