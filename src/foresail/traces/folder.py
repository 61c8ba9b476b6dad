"""The canonical workload folder: ``jobs.parquet``, ``meta.json``, and what else is known.

That is ``nodes.parquet``, ``tasks.parquet`` and ``usage.parquet``, each where the source has it.

A folder is written under a temporary name and renamed when it is complete, so that there is never
half a workload. ``convert`` streams: what it holds in memory does not grow with the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from foresail.model.documents import json_of
from foresail.model.errors import InputError
from foresail.model.short_form import misfit
from foresail.model.whole_files import to_be_written
from foresail.traces import schema
from foresail.traces.parquet import parquet_of, require_possible_pages
from foresail.traces.reading import Intake, finished, give_unique_ids, read
from foresail.traces.workload import LostRows, Workload, WorkloadMeta

JOBS_FILE: Final = "jobs.parquet"
NODES_FILE: Final = "nodes.parquet"
TASKS_FILE: Final = "tasks.parquet"
USAGE_FILE: Final = "usage.parquet"
META_FILE: Final = "meta.json"

_FURTHER_TABLES: Final = (
    (NODES_FILE, schema.NODES),
    (TASKS_FILE, schema.TASKS),
    (USAGE_FILE, schema.USAGE),
)
_OPTIONAL: Final = {USAGE_FILE: {schema.STAGE: pl.String()}}
"""Columns that files of these names may have, or not."""

_ROWS_PER_GROUP: Final = 1 << 17
_ROWS_SORTED_AT_ONCE: Final = 1 << 18
_EVERY_HOW_MANY_FOR_SPLITS: Final = 500


class MetaFile(BaseModel):
    """The layout of ``meta.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["foresail-workload"] = "foresail-workload"
    version: Literal[1] = 1
    source: str
    reader: str
    processors: int | None = None
    stated_processors: int | None = None
    origin_unix_seconds: float | None = None
    time_zone: str | None = None
    header: dict[str, str] = {}
    repairs: dict[str, int] = {}
    lost: tuple[LostRows, ...] = ()
    filters: tuple[tuple[str, int], ...] = ()
    examples: dict[str, str] = {}
    sha256: str | None = None

    @classmethod
    def describing(cls, meta: WorkloadMeta) -> MetaFile:
        """The file's content for what is known of a workload."""
        plain = {name: dict(getattr(meta, name)) for name in ("repairs", "header", "examples")}
        return cls(**asdict(meta) | plain)

    def meta(self) -> WorkloadMeta:
        """Return the facts of the workload."""
        known = self.model_dump(exclude={"format", "version", "lost"})
        return WorkloadMeta(**known, lost=self.lost)


def is_folder(path: Path) -> bool:
    """Test for a canonical workload folder."""
    return (path / META_FILE).is_file() and (path / JOBS_FILE).is_file()


def load_workload(path: Path, reader: str | None = None, **options: Any) -> Workload:
    """A canonical folder, or any log that a reader reads, in memory.

    Parameters are those of ``foresail.traces.reading.read``, which says what is raised.
    """
    if reader is None and not options and is_folder(path):
        return read_folder(path)
    return read(path, reader, **options)


def read_folder(path: Path) -> Workload:
    """The workload in a canonical folder.

    Raises ``InputError`` if a file is absent or damaged, or a column of the schema is absent or of
    another type.
    """
    jobs = _read_table(path / JOBS_FILE, schema.JOBS)
    return Workload(jobs, read_meta(path), *read_further_tables(path))


def read_further_tables(
    path: Path,
) -> tuple[pl.DataFrame | None, pl.DataFrame | None, pl.DataFrame | None]:
    """Nodes, tasks and usage in a canonical folder, each None where it has none.

    Raises as ``read_folder`` does.
    """
    nodes, tasks, usage = (
        _read_table(path / name, columns) if (path / name).exists() else None
        for name, columns in _FURTHER_TABLES
    )
    return nodes, tasks, usage


def read_meta(path: Path) -> WorkloadMeta:
    """Read what a canonical folder knows of its workload as a whole.

    Raises ``InputError`` if ``meta.json`` is absent or not what it should be.
    """
    file = path / META_FILE
    try:
        return MetaFile.model_validate(json_of(file)).meta()
    except ValidationError as error:
        raise misfit(error, file) from error


def table_chunks(path: Path, columns: dict[str, pl.DataType], rows: int) -> Iterator[pl.DataFrame]:
    """A Parquet file with these columns, so many rows at a time; raises as ``read_folder`` does."""
    _check_table(path, columns)
    with parquet_of(path):
        lazy = pl.scan_parquet(path)
        height = lazy.select(pl.len()).collect().item()
        for start in range(0, height, rows):
            yield lazy.slice(start, rows).collect()


def _check_table(path: Path, columns: dict[str, pl.DataType]) -> None:
    """Raise ``InputError`` unless a Parquet file has these columns with these types."""
    require_possible_pages(path)
    with parquet_of(path):
        found = pl.read_parquet_schema(path)
    optional = _OPTIONAL.get(path.name, {})
    known = {name: kind for name, kind in optional.items() if name in found}
    for name, kind in (columns | known).items():
        if found.get(name) != kind:
            value = found.get(name)
            raise InputError(
                "no column of this name and type",
                source=path,
                field=name,
                value=None if value is None else str(value),
                expected=str(kind),
            )


def _read_table(path: Path, columns: dict[str, pl.DataType]) -> pl.DataFrame:
    _check_table(path, columns)
    with parquet_of(path):
        return pl.read_parquet(path)


def write_folder(workload: Workload, path: Path) -> None:
    """Write a workload as a canonical folder; an earlier workload there is replaced.

    Raises ``InputError`` if the folder cannot be written, or something that is no workload is
    there.
    """
    with _replacing(path) as partial:
        workload.jobs.write_parquet(partial / JOBS_FILE, row_group_size=_ROWS_PER_GROUP)
        tables = (workload.nodes, workload.tasks, workload.usage)
        _write_rest(partial, workload.meta, tables)


def convert(
    path: Path,
    folder: Path,
    reader: str | None = None,
    *,
    strict: bool | None = None,
    processors: int | None = None,
    advance: Callable[[int], None] | None = None,
    **options: Any,
) -> WorkloadMeta:
    """Turn a log into a canonical folder, in bounded memory.

    The result is what ``write_folder(read(path), folder)`` gives. Where ids do not ascend, memory
    is a few words a job (to find ids used twice); nothing else grows with the log.

    Parameters are those of ``foresail.traces.reading.read``, which says what is raised; so is an
    ``InputError`` if the folder cannot be written, or something that is no workload is there.
    """
    intake = Intake(path, reader, strict, processors, advance, options)
    notes = intake.notes
    with _replacing(folder) as partial:
        parts: list[Path] = []
        for chunk in intake.chunks():
            if chunk.height:
                parts.append(_write_part(chunk, partial, len(parts)))
        if not intake.ids_ascend:
            give_unique_ids(_OnDisk(parts), notes)
        shift = intake.origin_shift()
        if not intake.ordered:
            parts = _sorted_parts(parts, partial, intake.rows)
        finished(pl.scan_parquet(parts), shift).sink_parquet(
            partial / JOBS_FILE, row_group_size=_ROWS_PER_GROUP
        )
        for part in partial.glob("part-*"):
            part.unlink()
        meta = intake.meta()
        _write_rest(partial, meta, (notes.nodes, notes.tasks, notes.usage))
    return meta


def _write_rest(partial: Path, meta: WorkloadMeta, tables: tuple[pl.DataFrame | None, ...]) -> None:
    for (name, _), table in zip(_FURTHER_TABLES, tables, strict=True):
        if table is not None:
            table.write_parquet(partial / name)
    text = MetaFile.describing(meta).model_dump_json(indent=2)
    (partial / META_FILE).write_text(text + "\n", encoding="utf-8")


def _write_part(chunk: pl.DataFrame, partial: Path, number: int, kind: str = "read") -> Path:
    path = partial / f"part-{kind}-{number:06d}.parquet"
    chunk.write_parquet(path, compression="lz4")
    return path


@dataclass(frozen=True)
class _OnDisk:
    """The chunks of a log, in its order, as files."""

    parts: list[Path]

    def ids(self) -> Iterator[pl.Series]:
        return (_column(part, "job_id") for part in self.parts)

    def rows(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.parts)

    def change(self, changed: Callable[[pl.DataFrame, int], pl.DataFrame]) -> None:
        first = 0
        for part in self.parts:
            before = pl.read_parquet(part)
            after = changed(before, first)
            first += before.height
            if after is not before:
                after.write_parquet(part, compression="lz4")


def _sorted_parts(parts: list[Path], partial: Path, rows: int) -> list[Path]:
    """The same rows in parts that are sorted and follow one another, equal times in file order.

    Each part is cut at the submit times that split the whole log evenly; the pieces between two of
    them are then sorted together.
    """
    samples = (_column(part, "submit_seconds").sort() for part in parts)
    some = np.sort(np.concatenate([s.gather_every(_EVERY_HOW_MANY_FOR_SPLITS) for s in samples]))
    shares = np.arange(_ROWS_SORTED_AT_ONCE, rows, _ROWS_SORTED_AT_ONCE) / rows
    splits = np.unique(np.quantile(some, shares, method="lower")) if shares.size else shares
    pieces: dict[int, list[Path]] = {}
    for part in parts:
        chunk = pl.read_parquet(part)
        bucket = np.searchsorted(splits, chunk["submit_seconds"].to_numpy(), side="right")
        for number in np.unique(bucket).tolist():
            before = pieces.setdefault(number, [])
            kind = f"piece-{number:06d}"
            before.append(_write_part(chunk.filter(bucket == number), partial, len(before), kind))
        part.unlink()
    return [
        _write_part(_sorted_together(pieces[number]), partial, number, "sorted")
        for number in sorted(pieces)
    ]


def _sorted_together(pieces: list[Path]) -> pl.DataFrame:
    together = pl.concat([pl.read_parquet(piece) for piece in pieces])
    for piece in pieces:
        piece.unlink()
    return together.sort("submit_seconds", maintain_order=True)


def _column(part: Path, name: str) -> pl.Series:
    return pl.read_parquet(part, columns=[name]).to_series()


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A new folder beside ``path`` that takes its place on success and vanishes on failure."""
    with to_be_written(path):
        taken = path.exists() and not is_folder(path) and (not path.is_dir() or any(path.iterdir()))
    if taken or path.suffix.lower() in _OF_FILES:
        raise InputError(
            "something that is no workload is there already" if taken else "the name of a file",
            source=path,
            expected="a new folder, an empty one or a workload to replace",
        )
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    with to_be_written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    try:
        yield partial
        _take_place(partial, path)
    except (OSError, pl.exceptions.ComputeError) as error:
        problem = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(f"cannot be written: {problem}", source=path) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


_OF_FILES: Final = (".csv", ".gz", ".json", ".parquet", ".swf", ".txt", ".xz", ".zip", ".zst")


def _take_place(partial: Path, path: Path) -> None:
    if not path.exists():
        partial.replace(path)
        return
    earlier = path.with_name(f".{path.name}.{uuid4().hex[:8]}.earlier")
    path.replace(earlier)
    partial.replace(path)
    shutil.rmtree(earlier)
