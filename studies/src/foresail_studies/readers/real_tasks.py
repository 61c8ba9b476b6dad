"""Instances of Alibaba's batch jobs of 2018, whose stages are read as jobs of many tasks."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Final

import polars as pl

from foresail.model.registry import Example, register
from foresail.traces.folder import table_chunks
from foresail.traces.measured import tasks_table
from foresail.traces.parquet import parquet_of
from foresail.traces.reading import Notes, PlainReader, Sample

_COLUMNS: Final[dict[str, pl.DataType]] = {
    "submit_seconds": pl.Int32(),
    "job": pl.String(),
    "stage": pl.String(),
    "runtime_seconds": pl.Float32(),
    "planned_cpu_percent": pl.Float32(),
    "planned_memory_share": pl.Float32(),
}
_ALL_ROWS: Final = 1 << 31
_KIND: Final = r"^([A-Za-z]+)"
"""Letters that a stage's name begins with: M of a map, R of a reduce, J of a join."""


@register("reader", "alibaba_instances")
class AlibabaInstancesReader(PlainReader):
    """Instances of batch jobs, a row each, as Parquet: job, stage, runtime, planned cpu and memory.

    A stage is a job, and an instance is a task of it (as SLearn takes what runs at once of a job);
    which stages wait for which is left out. Neither users nor names are known: ``executable`` is
    the kind of the stage with what was planned for an instance of it, by which stages resemble each
    other. Instances have as many cores as were planned; shares of a machine's memory are no bytes.
    """

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Two small stages of one job."""
        rows = {
            "submit_seconds": [0, 0, 5],
            "job": ["j_1", "j_1", "j_1"],
            "stage": ["M1", "M1", "R2_1"],
            "runtime_seconds": [12.0, 14.0, 3.0],
            "planned_cpu_percent": [100.0, 100.0, 50.0],
            "planned_memory_share": [0.3, 0.3, 0.5],
        }
        written = BytesIO()
        pl.DataFrame(rows, schema=_COLUMNS).write_parquet(written)
        return (Example({"instances.parquet": written.getvalue()}, "instances.parquet"),)

    def recognises(self, sample: Sample) -> bool:
        """A Parquet file, which has these columns."""
        if not (sample.path.is_file() and sample.text.startswith("PAR1")):
            return False
        with parquet_of(sample.path):
            return set(_COLUMNS) <= set(pl.read_parquet_schema(sample.path))

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once."""
        for rows in table_chunks(notes.path, _COLUMNS, _ALL_ROWS):
            each = rows.with_columns(
                pl.col("runtime_seconds").cast(pl.Float64),
                job_id=pl.concat_str("job", "stage", separator="."),
                cpus=pl.col("planned_cpu_percent").cast(pl.Float64) / 100.0,
            )
            notes.tasks = tasks_table(
                each.with_columns(task=pl.int_range(pl.len()).over("job_id")).drop("stage")
            )
            planned = pl.concat_str(
                pl.col("stage").str.extract(_KIND),
                pl.col("planned_cpu_percent").round(0),
                pl.col("planned_memory_share").round(2),
                separator=" ",
            )
            yield each.group_by("job_id", maintain_order=True).agg(
                pl.col("submit_seconds").first().cast(pl.Float64),
                pl.col("runtime_seconds").max(),
                pl.len().cast(pl.Int64).alias("tasks"),
                pl.col("cpus").first().alias("cpus_per_task"),
                planned.first().alias("executable"),
            )
