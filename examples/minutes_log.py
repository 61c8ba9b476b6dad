"""A reader in one file: a table whose times are minutes, one job a line.

`foresail simulate LOG --plugin minutes_log.py` recognises such logs by their header. Run as a
script, it reads three jobs and prints them.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from foresail.model.registry import register
from foresail.traces.delimited import TableFileReader
from foresail.traces.folder import load_workload
from foresail.traces.mapping import with_numbers
from foresail.traces.reading import LINE, Notes

MINUTE_SECONDS = 60.0


@register("reader", "minutes_log")
class MinutesLogReader(TableFileReader):
    """Jobs of a table with the columns id, who, came, ran and cores; times are minutes."""

    columns = ("id", "who", "came", "ran", "cores")
    example = "id,who,came,ran,cores\n1,ann,0,30,4\n2,bob,5,90,8\n3,ann,6,12.5,4\n"

    def jobs(self, chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
        """Return the jobs of some rows; whatever is no number is an error with its line."""
        numbers = ("came", "ran", "cores")
        return with_numbers(chunk, numbers, notes, required=numbers).select(
            job_id="id",
            user="who",
            submit_seconds=pl.col("came") * MINUTE_SECONDS,
            runtime_seconds=pl.col("ran") * MINUTE_SECONDS,
            tasks=pl.lit(1),
            cpus_per_task="cores",
            **{LINE: LINE},
        )


def main() -> None:
    """Read the example and print what was understood."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "log.csv")
        log.write_text(MinutesLogReader.example, encoding="utf-8")
        jobs = load_workload(log).jobs
    for name, user, came, ran, cpus in jobs.select(
        "job_id", "user", "submit_seconds", "runtime_seconds", "cpus_per_task"
    ).iter_rows():
        print(f"job {name} of {user}: came at {came:.0f} s, ran {ran:.0f} s on {cpus:.0f} cpus")


if __name__ == "__main__":
    main()
