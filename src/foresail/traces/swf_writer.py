"""Writing a workload in the Standard Workload Format, for other tools.

The format: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

import polars as pl
import zstandard

from foresail.model.errors import InputError
from foresail.model.whole_files import require_replaceable
from foresail.traces.workload import Workload

SWF_SUFFIXES: Final = (".swf", ".swf.gz", ".swf.zst")
"""Names that end so are written; the last part says how they are compressed."""

_KIBIBYTE: Final = 1024.0
_LINES_AT_ONCE: Final = 1 << 16
_STATUS: Final = {"failed": 0, "completed": 1, "partial": 2, "cancelled": 5}
_DIRECTIVE: Final = re.compile(r"[A-Z][A-Za-z]+")
_FROM_META: Final = frozenset(
    {"Version", "MaxJobs", "MaxRecords", "MaxProcs", "UnixStartTime", "TimeZoneString"}
)
_PROCESSORS_PER_NODE: Final = r"^\{[^}]*\}\s.*\s\d+:ppn=(\d+)"
_CODED: Final = ("user", "group", "executable", "queue", "partition")


def is_swf_name(path: Path) -> bool:
    """Test for a name that ``write_swf`` writes."""
    return path.name.lower().endswith(SWF_SUFFIXES)


def write_swf(workload: Workload, path: Path) -> None:
    """Write a workload as an SWF file, whole or not at all.

    Unknown becomes -1. Names of users, groups, executables, queues and partitions that are no
    numbers become numbers in order of appearance, as do job ids; a note in the header says which
    is which. What the format has no field for (deadlines, gpus, features) is left out.

    Raises ``InputError`` if the name does not end in one of ``SWF_SUFFIXES``, the file cannot be
    written, or what is there is no file.
    """
    if not is_swf_name(path):
        raise InputError(
            "not a name for an SWF file",
            source=path,
            expected="a name ending in " + ", ".join(SWF_SUFFIXES),
        )
    require_replaceable(path)
    jobs, notes = _numbered(workload.jobs)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(partial, path.suffix.lower()) as stream:
            stream.write(("\n".join(_header(workload, notes)) + "\n").encode())
            for part in jobs.iter_slices(_LINES_AT_ONCE):
                line = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
                lines = _fields(part).select(line).to_series()
                stream.write(("\n".join(lines.to_list()) + "\n").encode())
        partial.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=path) from error
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _opened(partial: Path, suffix: str) -> Iterator[IO[bytes] | BufferedIOBase]:
    """A new file, compressed as the suffix says; equal jobs give equal bytes."""
    with partial.open("wb") as raw:
        if suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                yield packed
        elif suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as packed:
                yield packed
        else:
            yield raw


def _header(workload: Workload, notes: list[str]) -> list[str]:
    meta = workload.meta
    lines = ["; Version: 2.2", f"; MaxJobs: {len(workload)}", f"; MaxRecords: {len(workload)}"]
    if meta.processors is not None:
        lines.append(f"; MaxProcs: {meta.processors}")
    if meta.origin_unix_seconds is not None:
        lines.append(f"; UnixStartTime: {_shortest(meta.origin_unix_seconds)}")
    if meta.time_zone is not None:
        lines.append(f"; TimeZoneString: {meta.time_zone}")
    for name, text in meta.header.items():
        if name in _FROM_META:
            continue
        for part in text.splitlines() or [""]:
            directive = _DIRECTIVE.fullmatch(name) is not None
            lines.append(f"; {name}: {part}" if directive else f"; Note: {name}: {part}")
    lines += [f"; Note: filter {name}: {touched} jobs" for name, touched in meta.filters]
    return lines + [f"; Note: {' '.join(note.splitlines())}" for note in notes]


def _shortest(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _numbered(jobs: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The jobs with numbers in the place of ids and names, and notes on these."""
    notes: list[str] = []
    ids = _id_numbers(jobs["job_id"], notes)
    codes = [_codes(name, jobs[name], notes).alias(name) for name in _CODED]
    after = jobs["after_job_id"].replace_strict(
        jobs["job_id"], ids, default=-1, return_dtype=pl.Int64
    )
    return jobs.with_columns(ids.alias("job_id"), *codes, after.alias("after_job_id")), notes


def _fields(jobs: pl.DataFrame) -> pl.DataFrame:
    """The 18 fields of numbered jobs as text, and whatever followed them in the source."""
    cpus = (jobs["tasks"] * jobs["cpus_per_task"]).ceil()
    status = jobs["status"].replace_strict(_STATUS, default=-1, return_dtype=pl.Int64)
    columns = [
        *(jobs[name] for name in ("job_id", "submit_seconds", "recorded_wait_seconds")),
        jobs["runtime_seconds"],
        jobs["allocated_cpus"].ceil(),
        jobs["used_cpu_seconds"],
        jobs["used_memory_bytes"] / _KIBIBYTE,
        cpus,
        jobs["requested_seconds"],
        _requested_memory(jobs, cpus),
        status,
        *(jobs[name] for name in (*_CODED, "after_job_id", "think_seconds")),
    ]
    texts = {str(number): _text(column) for number, column in enumerate(columns)}
    return pl.DataFrame({**texts, "extra": jobs["extra"]})


def _requested_memory(jobs: pl.DataFrame, cpus: pl.Series) -> pl.Series:
    """KiB per processor; bytes per node in MetaCentrum's lines, whose further fields say so."""
    memory = jobs["memory_bytes_per_task"]
    extended = jobs["extra"].str.starts_with("{").fill_null(value=False)
    per_node = jobs["extra"].str.extract(_PROCESSORS_PER_NODE).cast(pl.Float64).fill_null(cpus)
    return (memory * per_node).zip_with(extended, memory / _KIBIBYTE)


def _text(column: pl.Series) -> pl.Series:
    """Numbers as short as they can be read back exactly; -1 for unknown."""
    known = column.fill_null(-1)
    if not known.dtype.is_float():
        return known.cast(pl.String)
    whole = known.is_finite() & (known == known.floor()) & (known.abs() < 2.0**53)
    integers = known.zip_with(whole, pl.Series([0.0])).cast(pl.Int64).cast(pl.String)
    return integers.zip_with(whole, known.cast(pl.String))


def _id_numbers(ids: pl.Series, notes: list[str]) -> pl.Series:
    """The ids themselves if all are numbers; else 1, 2, 3 ..."""
    numbers = _as_numbers(ids)
    if numbers is not None:
        return numbers
    notes.append("jobs are numbered anew; their ids were no numbers")
    return pl.Series(range(1, ids.len() + 1), dtype=pl.Int64)


def _codes(kind: str, names: pl.Series, notes: list[str]) -> pl.Series:
    """The names themselves if all are numbers; else numbers from 1 in order of appearance."""
    numbers = _as_numbers(names)
    if numbers is not None:
        return numbers
    known = names.drop_nulls().unique(maintain_order=True).to_list()
    notes += [f"{kind} {number} is {name}" for number, name in enumerate(known, start=1)]
    code = {name: number for number, name in enumerate(known, start=1)}
    return names.replace_strict(code, default=None, return_dtype=pl.Int64)


def _as_numbers(names: pl.Series) -> pl.Series | None:
    """The names as numbers, if all known ones are whole numbers from zero written plainly."""
    numbers = names.cast(pl.Int64, strict=False)
    same = (numbers.cast(pl.String) == names) & (numbers >= 0)
    return (
        numbers if same.fill_null(value=False).sum() == names.len() - names.null_count() else None
    )
