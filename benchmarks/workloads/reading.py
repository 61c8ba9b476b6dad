"""Reading SWF into canonical columns against Polars parsing the same rows as plain CSV."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.traces.folder import load_workload
from foresail.traces.swf_writer import write_swf


@benchmark("reading")
def measure() -> Iterator[Measurement]:
    """One uncompressed log of 100,000 jobs."""
    workload = logs.generated(100_000)
    with tempfile.TemporaryDirectory() as folder:
        swf, csv = Path(folder) / "log.swf", Path(folder) / "log.csv"
        write_swf(workload, swf)
        rows = [line.split() for line in swf.read_text().splitlines() if line[:1] != ";"]
        csv.write_text("".join(",".join(row) + "\n" for row in rows))
        seconds, reference = best_in_turns(
            1.0, lambda: load_workload(swf), lambda: pl.read_csv(csv, has_header=False)
        )
    yield Measurement("reading swf", seconds, "Polars reads CSV", reference, len(workload), "job")
