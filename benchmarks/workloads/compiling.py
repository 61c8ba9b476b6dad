"""What a newcomer waits for: compiling every kernel, against a bare EASY loop over ten arrays."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.compiling import REFERENCE, measured
from benchmarks.measuring import Measurement, benchmark


@benchmark("compiling")
def measure() -> Iterator[Measurement]:
    """Small uses of everything in a fresh process without a cache; a line per kernel is printed."""
    compiled = measured()
    print(compiled.table(), flush=True)
    slowest = max(each.own_seconds for each in compiled.kernels)
    deepest = max(each.seconds for each in compiled.kernels)
    for name, seconds in (
        ("together", compiled.seconds),
        ("slowest kernel", slowest),
        ("slowest with what it calls", deepest),
    ):
        yield Measurement(
            f"compiling {name}",
            seconds,
            REFERENCE,
            compiled.reference_seconds,
            len(compiled.kernels),
            "kernel",
        )
