"""Microsoft's Philly deep-learning jobs, as one table: submission, duration, gpus and cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces.delimited import read_delimited, with_numbers
from foresail.traces.reading import LINE, Notes, PlainReader, Sample
from foresail.traces.times import unix_seconds

_COLUMNS: Final = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
_EXAMPLE: Final = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 06:13:03,2951.0,1,2951.0,6214e9
2017-10-09 07:01:55,66.0,1,66.0,11cb48
"""


@register("reader", "philly")
class PhillyReader(PlainReader):
    """Philly jobs as a table of submission, duration, gpus and virtual cluster.

    A job is a gang of one task per gpu, each with one cpu (the table has no cpus), so that its
    width is its gpus wherever cpus are counted. The virtual cluster is the queue. Timestamps are
    read as UTC, ids are row numbers.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("philly.csv", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """The header line names exactly the five columns."""
        return sample.columns == _COLUMNS

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some ten thousand lines at a time."""
        notes.unix_times = True
        notes.header["unit of cpus"] = "gpu"
        for chunk in read_delimited(notes.source(), notes, _COLUMNS):
            gpus = ("num_gpus",)
            table = with_numbers(chunk, ("duration", *gpus), notes, required=gpus, whole=gpus)
            table = unix_seconds(table, "timestamp", "%Y-%m-%d %H:%M:%S", notes, "UTC", "timestamp")
            yield table.select(
                (pl.col(LINE) - 1).cast(pl.String).alias("job_id"),
                pl.col("timestamp").alias("submit_seconds"),
                pl.col("duration").alias("runtime_seconds"),
                pl.col("num_gpus").cast(pl.Int64).alias("tasks"),
                pl.lit(1.0).alias("cpus_per_task"),
                pl.lit(1.0).alias("gpus_per_task"),
                pl.col("cluster").alias("queue"),
                LINE,
            )
