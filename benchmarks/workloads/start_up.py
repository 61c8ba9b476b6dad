"""From the shell's prompt to the table: ``foresail simulate`` against importing what it needs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.traces.swf_writer import write_swf

_BIN = Path(sys.executable).parent


def _run(program: str, *arguments: str | Path) -> None:
    subprocess.run([_BIN / program, *arguments], check=True, capture_output=True)


@benchmark("start-up")
def measure() -> Iterator[Measurement]:
    """A log of 2,000 jobs, so that little else than starting is measured."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.swf"
        write_swf(logs.generated(2_000), log)
        whole, help_page, reference = best_in_turns(
            4.0,
            lambda: _run("foresail", "simulate", log, "--with", "easy"),
            lambda: _run("foresail", "--help"),
            lambda: _run("python", "-c", "import numba, polars, pydantic, typer, rich"),
        )
    yield Measurement("start-up simulate", whole, "importing libraries", reference, 1, "start")
    yield Measurement("start-up help", help_page, "importing libraries", reference, 1, "start")
