"""The canonical workload folder as a log like any other, in chunks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.registry import Example, register
from foresail.traces import folder, schema
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.reading import Notes, PlainReader, Sample
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

_ROWS_AT_ONCE: Final = 1 << 17


@register("reader", "canonical")
class CanonicalReader(PlainReader):
    """A canonical workload folder; what it knows of its source, repairs and filters is kept."""

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        jobs = {
            "job_id": ["a", "b", "c"],
            "submit_seconds": [0.0, 5.0, 5.0],
            "tasks": [1, 2, 1],
            "runtime_seconds": [60.0, 30.5, None],
            "requested_seconds": [120.0, None, 60.0],
            "user": ["ann", "bob", None],
        }
        tasks = tasks_table({"job_id": ["a"], "task": [0], "runtime_seconds": [60.0]})
        usage = usage_table(
            {"job_id": ["a"], "task": [0], "start_seconds": [0.0], "end_seconds": [9.0]}
        )
        meta = WorkloadMeta("tiny", "hand", 4, header={"Note": "none"}, repairs={"dropped": 1})
        workload = Workload(jobs_table(jobs), meta, tasks=tasks, usage=usage)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "workload"
            folder.write_folder(workload, path)
            return (Example({each.name: each.read_bytes() for each in sorted(path.iterdir())}),)

    def recognises(self, sample: Sample) -> bool:
        """The folder has jobs and meta facts."""
        return folder.is_folder(sample.path)

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, some hundred thousand at a time."""
        meta = folder.read_meta(notes.path)
        notes.earlier = meta
        notes.processors = meta.processors
        notes.origin_unix_seconds = meta.origin_unix_seconds
        notes.time_zone = meta.time_zone
        notes.header |= meta.header
        notes.nodes, notes.tasks, notes.usage = folder.read_further_tables(notes.path)
        jobs = notes.path / folder.JOBS_FILE
        for chunk in folder.table_chunks(jobs, schema.JOBS, _ROWS_AT_ONCE):
            yield _without_room_for_nulls(chunk)


def _without_room_for_nulls(chunk: pl.DataFrame) -> pl.DataFrame:
    """The same chunk; columns in which nothing is known hold one null, whatever its height."""
    unknown = [name for name in chunk.columns if chunk[name].null_count() == chunk.height]
    return chunk.with_columns(
        pl.lit(None, dtype=chunk.schema[name]).alias(name) for name in unknown
    )
