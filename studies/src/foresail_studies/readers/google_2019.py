"""Google's cluster-usage traces of 2019: exports as JSON lines, CSV or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl

from foresail.model.documents import parsed_json
from foresail.model.errors import InputError
from foresail.model.registry import Example, register
from foresail.traces.delimited import read_delimited
from foresail.traces.parquet import parquet_of, require_possible_pages_of
from foresail.traces.reading import LINE, Notes, Sample
from foresail.traces.source import LogFile, head
from foresail_studies.readers._google import (
    JOB_EVENT,
    TASK_EVENT,
    USAGE,
    GoogleParameters,
    all_rows,
    part_files,
    tables,
    with_event_names,
)

_ENDINGS: Final = (".json", ".csv", ".parquet")
_ORIGIN_UNIX_SECONDS: Final = 1_556_694_000.0 - 600.0
"""2019-05-01 00:00 in Los Angeles is second 600 of the traces."""

_EVENTS: Final = {
    "0": "submit",
    "1": "queue",
    "2": "enable",
    "3": "schedule",
    "4": "evict",
    "5": "fail",
    "6": "finish",
    "7": "kill",
    "8": "lost",
    "9": "update_pending",
    "10": "update_running",
}
_COLLECTION_EVENTS: Final = {
    "time": "time",
    "type": "type",
    "job_id": "collection_id",
    "user": "user",
    "scheduling_class": "scheduling_class",
    "name": "collection_name",
    "logical_name": "collection_logical_name",
    "collection_type": "collection_type",
}
_INSTANCE_EVENTS: Final = {
    "time": "time",
    "type": "type",
    "job_id": "collection_id",
    "task": "instance_index",
    "priority": "priority",
    "cpus": "resource_request.cpus",
    "memory": "resource_request.memory",
    "collection_type": "collection_type",
}
_INSTANCE_USAGE: Final = {
    "start_time": "start_time",
    "end_time": "end_time",
    "job_id": "collection_id",
    "task": "instance_index",
    "average_cpus": "average_usage.cpus",
    "average_memory": "average_usage.memory",
    "maximum_cpus": "maximum_usage.cpus",
    "maximum_memory": "maximum_usage.memory",
    "sampled_cpus": "random_sample_usage.cpus",
    "collection_type": "collection_type",
}
_REQUIRED: Final = ("time", "type", "job_id", "start_time", "end_time", "task")
_JOB: Final = ("0", "job")
_JSON_LINES_AT_ONCE: Final = 1 << 16
_JOB_EXAMPLE: Final = {
    "collection_id": "100",
    "collection_type": "0",
    "user": "bob",
    "scheduling_class": "1",
    "collection_name": "run-8",
    "collection_logical_name": "sort",
}
_TASK_EXAMPLE: Final = {
    "collection_id": "100",
    "instance_index": "0",
    "collection_type": "0",
    "priority": "103",
    "resource_request": {"cpus": 0.0625, "memory": 0.125},
}
_TIMES: Final = {"0": "700000000", "3": "705000000", "6": "1005000000"}
_EXAMPLE: Final[dict[str, list[dict[str, Any]]]] = {
    "collection_events": [{"time": at, "type": of, **_JOB_EXAMPLE} for of, at in _TIMES.items()],
    "instance_events": [{"time": at, "type": of, **_TASK_EXAMPLE} for of, at in _TIMES.items()],
    "instance_usage": [
        {
            "start_time": "705000000",
            "end_time": "805000000",
            "collection_id": "100",
            "instance_index": "0",
            "collection_type": "0",
            "average_usage": {"cpus": 0.03125, "memory": 0.0625},
            "maximum_usage": {"cpus": 0.0625, "memory": 0.125},
            "random_sample_usage": {"cpus": 0.03125},
        }
    ],
}


@register("reader", "google_2019", parameters=GoogleParameters)
class Google2019Reader:
    """Google's traces of 2019: a folder with exports of one cell's tables.

    The tables ``collection_events``, ``instance_events`` and ``instance_usage`` are sub-folders or
    files named after them, as JSON lines, CSV (nested columns as ``average_usage.cpus`` or
    ``average_usage_cpus``) or Parquet; the latter two may be absent. Alloc sets and their instances
    are left out. All else is as in ``google_2011``.
    """

    def __init__(self, parameters: GoogleParameters) -> None:
        self._parameters = parameters

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        texts, tables, parquets = {}, {}, {}
        for name, rows in _EXAMPLE.items():
            texts[f"{name}-0.json"] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            table = pl.DataFrame(rows)
            tables[f"{name}/000.csv"] = _flat(table).write_csv().encode()
            content = io.BytesIO()
            table.write_parquet(content)
            parquets[f"{name}.parquet"] = content.getvalue()
        return (Example(texts), Example(tables), Example(parquets))

    def recognises(self, sample: Sample) -> bool:
        """A folder with a table of collection events."""
        return sample.path.is_dir() and bool(part_files(sample.path, "collection_events", _ENDINGS))

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once: an event of a job may be in any part."""
        folder = notes.path
        if not folder.is_dir() or not part_files(folder, "collection_events", _ENDINGS):
            raise InputError(
                "no collection events", source=folder, expected="collection_events-*.json.gz"
            )
        notes.origin_unix_seconds = _ORIGIN_UNIX_SECONDS
        jobs = _read("collection_events", _COLLECTION_EVENTS, JOB_EVENT, notes)
        tasks = _read("instance_events", _INSTANCE_EVENTS, TASK_EVENT, notes)
        usage = _read("instance_usage", _INSTANCE_USAGE, USAGE, notes)
        yield from tables(jobs, tasks, usage, self._parameters, notes)


def _read(
    table: str,
    fields: dict[str, str],
    columns: tuple[str, ...],
    notes: Notes,
) -> pl.DataFrame:
    """One table's rows about jobs, by canonical name."""

    def chunks_of(file: Path, of_part: Notes) -> Iterator[pl.DataFrame]:
        for chunk in _chunks(file, fields, of_part):
            of_jobs = _of_jobs(chunk)
            named = with_event_names(of_jobs, _EVENTS, of_part) if "type" in columns else of_jobs
            yield named.select(*columns, LINE)

    files = part_files(notes.path, table, _ENDINGS)
    return all_rows(files, chunks_of, columns, notes)


def _of_jobs(chunk: pl.DataFrame) -> pl.DataFrame:
    """Without alloc sets and their instances."""
    kind = pl.col("collection_type").str.strip_suffix(".0").str.to_lowercase()
    return chunk.filter(kind.is_in(_JOB) | kind.is_null())


def _chunks(file: Path, fields: dict[str, str], notes: Notes) -> Iterator[pl.DataFrame]:
    if ".parquet" in file.name:
        yield _parquet(file, fields, notes)
    elif ".json" in file.name:
        yield from _json_lines(file, fields, notes)
    else:
        yield from _csv(file, fields, notes)


def _parquet(file: Path, fields: dict[str, str], notes: Notes) -> pl.DataFrame:
    content = b"".join(LogFile(file, notes.advance).blocks())
    require_possible_pages_of(content, file)
    with parquet_of(file):
        table = _flat(pl.read_parquet(io.BytesIO(content)))
        known = _names(table.columns, fields, file)
        chosen = [
            (pl.lit(None) if at is None else pl.col(at)).cast(pl.String).alias(name)
            for name, at in known.items()
        ]
        return table.select(chosen).with_row_index(LINE, offset=1)


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """The table with columns ``outer.inner`` for its structs."""
    for name, kind in table.schema.items():
        if isinstance(kind, pl.Struct):
            inner = table[name].struct.unnest()
            named = inner.rename({part: f"{name}.{part}" for part in inner.columns})
            table = table.drop(name).hstack(named)
    return table


def _csv(file: Path, fields: dict[str, str], notes: Notes) -> Iterator[pl.DataFrame]:
    first = head(file).decode("utf-8-sig", errors="replace").partition("\n")[0]
    known = _names([name.strip().strip('"') for name in first.split(",")], fields, file)
    wanted = [at for at in known.values() if at is not None]
    for chunk in read_delimited(LogFile(file, notes.advance), notes, wanted):
        chosen = [
            (pl.lit(None, pl.String) if at is None else pl.col(at)).alias(name)
            for name, at in known.items()
        ]
        yield chunk.select(*chosen, LINE)


def _names(columns: list[str], fields: dict[str, str], file: Path) -> dict[str, str | None]:
    """The file's column for each canonical name; nested ones may be joined by an underscore."""
    found: dict[str, str | None] = {}
    for name, field in fields.items():
        candidates = (field, field.replace(".", "_"))
        found[name] = next((one for one in candidates if one in columns), None)
        if found[name] is None and name in _REQUIRED:
            raise InputError("no such column", source=file, field=field)
    return found


def _json_lines(file: Path, fields: dict[str, str], notes: Notes) -> Iterator[pl.DataFrame]:
    """A file's rows, some ten thousand at a time; lines that are no objects are counted."""
    paths = {name: tuple(field.split(".")) for name, field in fields.items()}
    kinds = dict.fromkeys(paths, pl.String()) | {LINE: pl.Int64()}
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(_lines(LogFile(file, notes.advance)), start=1):
        if not line.strip():
            continue
        found = _parsed(line)
        if found is None:
            notes.repair(
                "dropped_malformed_line", line=number, value=line[:80], expected="a JSON object"
            )
            continue
        rows.append((*(_text(found, path) for path in paths.values()), number))
        if len(rows) >= _JSON_LINES_AT_ONCE:
            yield pl.DataFrame(rows, kinds, orient="row")
            rows = []
    yield pl.DataFrame(rows, kinds, orient="row")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = parsed_json(line.decode(), None)
    except (InputError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _text(found: Any, path: tuple[str, ...]) -> str | None:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return None if found is None else str(found)


def _lines(source: LogFile) -> Iterator[bytes]:
    rest = b""
    for block in source.blocks():
        whole, newline, after = (rest + block).rpartition(b"\n")
        if newline:
            yield from whole.split(b"\n")
        rest = after
    if rest:
        yield rest
