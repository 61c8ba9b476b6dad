"""Costs that grow with the queue, at the largest short sizes; ``--growth short`` has the table."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.growth import rows
from benchmarks.measuring import Measurement, benchmark


@benchmark("growth")
def measure() -> Iterator[Measurement]:
    """A row of the table each; processor seconds."""
    for row in rows():
        pair = row.measure(row.short[-1])
        yield Measurement(
            f"growth {row.name}", pair.seconds, row.reference, pair.reference, 1, "run"
        )
