"""From the shell's prompt to the table: warm commands against importing what they need."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import logs
from benchmarks.measuring import Measurement, benchmark, best_in_turns
from foresail.traces.swf_writer import write_swf

_BIN = Path(sys.executable).parent


def _run(program: str, *arguments: str | Path) -> None:
    subprocess.run([_BIN / program, *arguments], check=True, capture_output=True)


@benchmark("start-up")
def measure() -> Iterator[Measurement]:
    """A log of 2,000 jobs, so that little else than starting is measured, and a real one."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.swf"
        write_swf(logs.generated(2_000), log)
        commands: dict[str, tuple[str | Path, ...]] = {
            "help": ("--help",),
            "simulate": ("simulate", log, "--with", "easy"),
            "compare": ("compare", log),
            "inspect": ("trace", "inspect", log),
        }
        real = logs.path_of("KTH-SP2")
        if real.exists():
            commands["simulate KTH-SP2"] = ("simulate", real, "--with", "easy")
        *ours, reference = best_in_turns(
            4.0 * len(commands),
            *(partial(_run, "foresail", *arguments) for arguments in commands.values()),
            lambda: _run("python", "-c", "import numba, polars, pydantic, typer, rich"),
        )
    for name, seconds in zip(commands, ours, strict=True):
        yield Measurement(f"start-up {name}", seconds, "importing libraries", reference, 1, "start")
