"""The samples of the GAIA artifact (Mustang, PAI, Azure): arrival, length and cpus of each job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import LARGEST_WHOLE, read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, PlainReader, Sample

_COLUMNS: Final = ("arrival_time", "length", "cpus")
_SECONDS_PER_HOUR: Final = 3600.0
_EXAMPLE: Final = "arrival_time,length,cpus\n0.0,0.75,4\n0.5,19.25,4\n1.5,2.0,0.5\n"


@register("reader", "gaia")
class GaiaReader(PlainReader):
    """Job samples of the GAIA artifact: arrival and length in hours, cpus; ids are row numbers.

    Hours become seconds rounded to the millisecond, since the files hold decimal fractions of
    hours. Whole cpus become that many tasks of one cpu, which start together.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("gaia.csv", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names exactly the three columns."""
        return sample.columns == _COLUMNS

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        for chunk in read_delimited(notes.source(), notes, _COLUMNS):
            table = with_numbers(chunk, _COLUMNS, notes, required=_COLUMNS)
            cpus = pl.col("cpus")
            whole = (cpus == cpus.floor()) & (cpus.abs() < LARGEST_WHOLE)
            yield table.select(
                (pl.col(LINE) - 1).cast(pl.String).alias("job_id"),
                _seconds("arrival_time").alias("submit_seconds"),
                _seconds("length").alias("runtime_seconds"),
                pl.when(whole).then("cpus").otherwise(1.0).cast(pl.Int64).alias("tasks"),
                pl.when(whole).then(1.0).otherwise("cpus").alias("cpus_per_task"),
                LINE,
            )


def _seconds(column: str) -> pl.Expr:
    return (pl.col(column) * _SECONDS_PER_HOUR).round(3)
