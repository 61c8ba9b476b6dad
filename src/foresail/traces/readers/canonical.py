"""The canonical workload folder as a log like any other, in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from foresail.model.registry import register
from foresail.traces import folder, schema
from foresail.traces.reading import Notes, PlainReader, Sample

_ROWS_AT_ONCE: Final = 1 << 17


@register("reader", "canonical")
class CanonicalReader(PlainReader):
    """A canonical workload folder; what it knows of its source, repairs and filters is kept."""

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
