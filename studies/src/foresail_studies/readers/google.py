"""Google's cluster-usage traces of 2011 (CSV parts) and of 2019 (JSON lines, CSV or Parquet)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.documents import parsed_json
from foresail.model.errors import InputError, require_positive
from foresail.model.registry import Example, register
from foresail.traces.delimited import read_delimited
from foresail.traces.measured import task_keys, tasks_table, usage_table
from foresail.traces.parquet import parquet_of, require_possible_pages_of
from foresail.traces.reading import LINE, Notes, Sample
from foresail.traces.source import LogFile, head
from foresail.traces.text_values import with_numbers

MEMORY_UNIT: Final = "share of the largest machine"
_AFTER_THE_END: Final = 2.0**63
"""A time of 2 ** 63 - 1 as a float: the event came after the end of the trace."""

_MICROSECOND: Final = 1e-6
_STATUS: Final = {
    "finish": "completed",
    "fail": "failed",
    "kill": "cancelled",
    "evict": "cancelled",
    "lost": "unknown",
}
_ENDS: Final = tuple(_STATUS)

JOB_EVENT: Final = ("time", "type", "job_id", "user", "scheduling_class", "name", "logical_name")
TASK_EVENT: Final = ("time", "type", "job_id", "task", "priority", "cpus", "memory")
USAGE: Final = (
    *("start_time", "end_time", "job_id", "task"),
    *("average_cpus", "average_memory", "maximum_cpus", "maximum_memory", "sampled_cpus"),
)
_NUMBERS: Final = {"time", "task", "cpus", "memory", *USAGE} - {"job_id"}


@dataclass(frozen=True, slots=True)
class GoogleParameters:
    """Options of the readers of Google's traces.

    Parameters
    ----------
    cores_per_machine
        Cores of a machine of normalised capacity 1.0; 16 is the estimate of 3Sigma's authors.
    """

    cores_per_machine: float = 16.0

    def __post_init__(self) -> None:
        require_positive(self, "cores_per_machine")


def part_files(folder: Path, table: str, endings: tuple[str, ...]) -> list[Path]:
    """The files of one table, by name: in a sub-folder of its name, or named after it."""
    inside = folder / table
    names = inside.iterdir() if inside.is_dir() else folder.glob(f"{table}*")
    return sorted(
        path for path in names if path.is_file() and any(end in path.name for end in endings)
    )


def all_rows(
    files: Iterable[Path],
    chunks_of: Callable[[Path, Notes], Iterator[pl.DataFrame]],
    columns: tuple[str, ...],
    notes: Notes,
) -> pl.DataFrame:
    """The files' chunks as one table, its numeric columns turned to numbers, the others text.

    Rows with a bad number, or without a job, task or time, are dropped and counted. Times become
    seconds, null after the end of the trace.
    """
    numbers = tuple(name for name in columns if name in _NUMBERS)
    kinds = {name: pl.Float64() if name in numbers else pl.String() for name in columns}
    parts = [pl.DataFrame(schema=kinds)]
    for file in files:
        of_part = Notes(file, notes.strict, notes.advance)
        parts += [_checked(chunk, numbers, of_part) for chunk in chunks_of(file, of_part)]
        notes.repairs.update(of_part.repairs)
    return pl.concat(parts)


def _checked(chunk: pl.DataFrame, numbers: tuple[str, ...], notes: Notes) -> pl.DataFrame:
    times = [name for name in numbers if name.endswith("time")]
    required = [name for name in numbers if name == "task" or name in times]
    table = with_numbers(chunk, numbers, notes, required=required, whole=["task"])
    nameless = table["job_id"].is_null()
    notes.repair_rows("dropped_malformed_line", table, nameless, "job_id", "the job's id")
    named = table.filter(~nameless).drop(LINE)
    return named.with_columns(_seconds(name) for name in times)


def _seconds(name: str) -> pl.Expr:
    return pl.when(pl.col(name) < _AFTER_THE_END).then(pl.col(name) * _MICROSECOND).alias(name)


def with_event_names(chunk: pl.DataFrame, names: dict[str, str], notes: Notes) -> pl.DataFrame:
    """The chunk with names of events in ``type``, where there are codes (or the names themselves).

    Raises
    ------
    InputError
        When strict and there are unknown codes; else their rows are dropped and counted.
    """
    code = pl.col("type").str.strip_suffix(".0").str.to_lowercase()
    known = names | {name: name for name in names.values()}
    named = chunk.with_columns(code.replace_strict(known, default=None, return_dtype=pl.String))
    strange = named["type"].is_null()
    notes.repair_rows("dropped_unknown_event", chunk, strange, "type", ", ".join(names))
    return named.filter(~strange)


def tables(
    job_events: pl.DataFrame,
    task_events: pl.DataFrame,
    usage: pl.DataFrame,
    parameters: GoogleParameters,
    notes: Notes,
) -> Iterator[pl.DataFrame]:
    """The jobs, as one chunk; tasks and usage go to the notes, where there are any.

    Columns are those of ``JOB_EVENT``, ``TASK_EVENT`` (with names in ``type``) and ``USAGE``,
    times in seconds, cpus and memory normalised.
    """
    cores = parameters.cores_per_machine
    notes.header["memory_unit"] = MEMORY_UNIT
    notes.header["cores_per_machine"] = f"{cores:g}"
    jobs = _jobs(job_events)
    if task_events.height:
        tasks = _tasks(task_events, cores)
        notes.tasks = tasks_table(tasks)
        per_job = tasks.group_by("job_id").agg(
            tasks=pl.len(),
            cpus_per_task=pl.col("cpus").mean(),
            memory_bytes_per_task=pl.col("memory_bytes").mean(),
            priority=pl.col("priority").drop_nulls().last(),
        )
        jobs = jobs.join(per_job, on="job_id", how="left", maintain_order="left")
    if usage.height:
        notes.usage = _usage(usage, cores)
        if "tasks" not in jobs.columns:
            widths = notes.usage.group_by("job_id").agg(tasks=pl.col("task").n_unique())
            jobs = jobs.join(widths, on="job_id", how="left", maintain_order="left")
    absent = [name for name in ("tasks", "cpus_per_task") if name not in jobs.columns]
    jobs = jobs.with_columns(pl.lit(None).alias(name) for name in absent)
    jobs = jobs.with_columns(pl.col("tasks").fill_null(1))
    if notes.usage is not None:
        jobs = with_use(jobs, notes.usage)
    yield jobs.sort("submit_seconds", maintain_order=True)


def _jobs(events: pl.DataFrame) -> pl.DataFrame:
    """One row a job: first submission, first start, last end; what began before is unknown.

    A time of 0 means before the trace: the wait and runtime of such a job are unknown.
    """
    time, event = pl.col("time"), pl.col("type")
    ended = event.is_in(_ENDS)
    per_job = (
        events.sort("time", nulls_last=True, maintain_order=True)
        .group_by("job_id", maintain_order=True)
        .agg(
            submit=time.filter(event == "submit").first(),
            first=time.first(),
            start=time.filter(event == "schedule").first(),
            last_start=time.filter(event == "schedule").last(),
            end=time.filter(ended).last(),
            ending=event.filter(ended).last(),
            user=pl.col("user").drop_nulls().last(),
            executable=pl.col("logical_name").drop_nulls().last(),
            job_name=pl.col("name").drop_nulls().last(),
            scheduling_class=pl.col("scheduling_class").drop_nulls().last(),
        )
        .with_columns(submit=pl.coalesce("submit", "first"))
    )
    over = (pl.col("end") >= pl.col("last_start")).fill_null(value=True)
    ran = (pl.col("start") > 0) & over
    return per_job.select(
        "job_id",
        submit_seconds="submit",
        recorded_wait_seconds=pl.when(pl.col("submit") > 0).then(
            pl.col("start") - pl.col("submit")
        ),
        runtime_seconds=pl.when(ran).then(pl.col("end") - pl.col("start")),
        status=pl.when(over)
        .then(pl.col("ending").replace_strict(_STATUS, default=None, return_dtype=pl.String))
        .fill_null("unknown"),
        user="user",
        executable="executable",
        job_name="job_name",
        scheduling_class="scheduling_class",
    )


def _tasks(events: pl.DataFrame, cores: float) -> pl.DataFrame:
    """One row a task: the runtime of its last attempt, and the last request."""
    time, event = pl.col("time"), pl.col("type")
    ended = event.is_in(_ENDS)
    per_task = (
        events.sort("time", nulls_last=True, maintain_order=True)
        .group_by("job_id", "task", maintain_order=True)
        .agg(
            start=time.filter(event == "schedule").last(),
            end=time.filter(ended).last(),
            cpus=pl.col("cpus").drop_nulls().last() * cores,
            memory_bytes=pl.col("memory").drop_nulls().last(),
            priority=pl.col("priority").drop_nulls().last(),
        )
    )
    ran = (pl.col("start") > 0) & (pl.col("end") >= pl.col("start"))
    return per_task.with_columns(
        pl.col("task").cast(pl.Int64),
        runtime_seconds=pl.when(ran).then(pl.col("end") - pl.col("start")),
    )


def _usage(usage: pl.DataFrame, cores: float) -> pl.DataFrame:
    return usage_table(
        usage.select(
            "job_id",
            pl.col("task").cast(pl.Int64),
            start_seconds="start_time",
            end_seconds="end_time",
            average_cpus=pl.col("average_cpus") * cores,
            maximum_cpus=pl.col("maximum_cpus") * cores,
            sampled_cpus=pl.col("sampled_cpus") * cores,
            average_memory_bytes="average_memory",
            maximum_memory_bytes="maximum_memory",
        ).filter(pl.col("end_seconds") > pl.col("start_seconds"))
    )


def with_use(jobs: pl.DataFrame, usage: pl.DataFrame) -> pl.DataFrame:
    """The jobs with what they used on average per task, from the usage table.

    As elsewhere in the jobs table, ``used_cpu_seconds`` is per requested cpu; it is null where the
    request is unknown or 0. Sums go row by row, so that they are the same on every machine.
    """
    row_of_job = jobs.select("job_id").with_row_index("row")
    rows = usage.join(row_of_job, on="job_id", how="inner", maintain_order="left")
    row = rows["row"].to_numpy()
    seconds = (rows["end_seconds"] - rows["start_seconds"]).to_numpy()
    cpu = np.bincount(row, seconds * _known(rows["average_cpus"]), jobs.height)
    memory = np.bincount(row, seconds * _known(rows["average_memory_bytes"]), jobs.height)
    remembered = np.where(rows["average_memory_bytes"].is_not_null(), seconds, 0.0)
    memory_seconds = np.bincount(row, remembered, jobs.height)
    tasks = np.bincount(rows.unique(["row", *task_keys(rows)])["row"], minlength=jobs.height)
    cpus = pl.col("cpus_per_task")
    used = pl.DataFrame({"cpu": cpu, "memory": memory, "seconds": memory_seconds, "tasks": tasks})
    found = used.select(
        cpu=pl.when(pl.col("tasks") > 0).then(pl.col("cpu") / pl.col("tasks")),
        memory=pl.when(pl.col("seconds") > 0).then(pl.col("memory") / pl.col("seconds")),
    )
    return jobs.with_columns(
        used_cpu_seconds=pl.when(cpus > 0).then(found["cpu"] / cpus),
        used_memory_bytes=found["memory"],
    )


def _known(values: pl.Series) -> NDArray[np.float64]:
    """The values with 0 for what is unknown."""
    return values.fill_null(0.0).to_numpy()


_ENDINGS_2011: Final = (".csv",)
_ORIGIN_UNIX_SECONDS_2011: Final = 1_304_290_800.0 - 600.0
"""2011-05-01 19:00 in New York is second 600 of the trace."""

_EVENTS_2011: Final = {
    "0": "submit",
    "1": "schedule",
    "2": "evict",
    "3": "fail",
    "4": "finish",
    "5": "kill",
    "6": "lost",
    "7": "update_pending",
    "8": "update_running",
}
_JOB_EVENTS: Final = (
    *("time", "missing_info", "job_id", "type", "user", "scheduling_class"),
    *("name", "logical_name"),
)
_TASK_EVENTS: Final = (
    *("time", "missing_info", "job_id", "task", "machine_id", "type", "user"),
    *("scheduling_class", "priority", "cpus", "memory", "disk_space", "different_machines"),
)
_TASK_USAGE: Final = (
    *("start_time", "end_time", "job_id", "task", "machine_id", "average_cpus", "average_memory"),
    *("assigned_memory", "unmapped_page_cache", "total_page_cache", "maximum_memory"),
    *("disk_io_time", "local_disk_space", "maximum_cpus", "maximum_disk_io_time"),
    *("cycles_per_instruction", "memory_accesses_per_instruction", "sample_portion"),
    *("aggregation_type", "sampled_cpus"),
)
"""Columns of ``task_usage``; the first release has no ``sampled_cpus``."""
_EXAMPLE_2011: Final = (
    "700000000,,100,0,bob,0,run-8,sort\n705000000,,100,1,bob,0,run-8,sort\n"
    "1005000000,,100,4,bob,0,run-8,sort\n800000000,,200,0,bob,1,,sort\n",
    "700000000,,100,0,7,0,u,0,1,0.0625,0.125,0.001,0\n"
    "705000000,,100,0,7,1,u,0,1,0.0625,0.125,0.001,0\n"
    "1005000000,,100,0,7,4,u,0,1,0.0625,0.125,0.001,0\n",
    "705000000,805000000,100,0,7,0.03125,0.0625,0.1,0,0,0.125,0.01,0,0.0625,0.02,1.5,0.01,1,0,0.03\n",
)
"""Job events, task events and task usage."""


@register("reader", "google_2011", parameters=GoogleParameters)
class Google2011Reader:
    """Google's trace of 2011: a folder with ``job_events``, ``task_events`` and ``task_usage``.

    Each is a sub-folder of part files; the latter two may be absent, and of each there may be some
    parts only (all of them are more than a machine's memory holds). Wait and runtime go from the
    first submission over the first start to the last end; those of what began before the trace are
    unknown. A task's runtime is that of its last attempt. The logical job name is the executable;
    the job's name, scheduling class and priority are features. Cpus are normalised cpus x
    ``cores_per_machine``, memory stays a share of the largest machine.
    """

    def __init__(self, parameters: GoogleParameters) -> None:
        self._parameters = parameters

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        jobs, tasks, usage = (text.encode() for text in _EXAMPLE_2011)
        files = {
            "job_events/part-00000-of-00500.csv": jobs,
            "task_events/part-00000-of-00500.csv": tasks,
            "task_usage/part-00000-of-00500.csv": usage,
        }
        jobs_alone = dict(list(files.items())[:1])
        return (Example(jobs_alone), Example(files))

    def recognises(self, sample: Sample) -> bool:
        """A folder with a sub-folder ``job_events``."""
        return (sample.path / "job_events").is_dir()

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once: an event of a job may be in any part."""
        files = part_files(notes.path, "job_events", _ENDINGS_2011) if notes.path.is_dir() else []
        if not files:
            raise InputError(
                "no parts of job events", source=notes.path, expected="job_events/part-*.csv.gz"
            )
        notes.origin_unix_seconds = _ORIGIN_UNIX_SECONDS_2011
        notes.time_zone = "America/New_York"
        jobs = _read_2011(files, _JOB_EVENTS, JOB_EVENT, notes)
        of_tasks = part_files(notes.path, "task_events", _ENDINGS_2011)
        tasks = _read_2011(of_tasks, _TASK_EVENTS, TASK_EVENT, notes)
        of_usage = part_files(notes.path, "task_usage", _ENDINGS_2011)
        usage = _read_2011(of_usage, _TASK_USAGE, USAGE, notes)
        yield from tables(jobs, tasks, usage, self._parameters, notes)


def _read_2011(
    files: list[Path],
    layout: tuple[str, ...],
    columns: tuple[str, ...],
    notes: Notes,
) -> pl.DataFrame:
    def chunks_of(file: Path, of_part: Notes) -> Iterator[pl.DataFrame]:
        return _chunks_2011(file, layout, columns, of_part)

    return all_rows(files, chunks_of, columns, notes)


def _chunks_2011(
    file: Path, layout: tuple[str, ...], columns: tuple[str, ...], notes: Notes
) -> Iterator[pl.DataFrame]:
    """A part's rows; columns that an older release lacks are null."""
    fields = head(file).partition(b"\n")[0].count(b",") + 1
    header = layout[:-1] if layout is _TASK_USAGE and fields == len(layout) - 1 else layout
    known = tuple(name for name in columns if name in header)
    for chunk in read_delimited(LogFile(file, notes.advance), notes, known, header=header):
        absent = [name for name in columns if name not in known]
        whole = chunk.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
        yield (with_event_names(whole, _EVENTS_2011, notes) if "type" in columns else whole).select(
            *columns, LINE
        )


_ENDINGS_2019: Final = (".json", ".csv", ".parquet")
_ORIGIN_UNIX_SECONDS_2019: Final = 1_556_694_000.0 - 600.0
"""2019-05-01 00:00 in Los Angeles is second 600 of the traces."""

_EVENTS_2019: Final = {
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
_EXAMPLE_2019: Final[dict[str, list[dict[str, Any]]]] = {
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
        for name, rows in _EXAMPLE_2019.items():
            texts[f"{name}-0.json"] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            table = pl.DataFrame(rows)
            tables[f"{name}/000.csv"] = _flat(table).write_csv().encode()
            content = io.BytesIO()
            table.write_parquet(content)
            parquets[f"{name}.parquet"] = content.getvalue()
        return (Example(texts), Example(tables), Example(parquets))

    def recognises(self, sample: Sample) -> bool:
        """A folder with a table of collection events."""
        return sample.path.is_dir() and bool(
            part_files(sample.path, "collection_events", _ENDINGS_2019)
        )

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once: an event of a job may be in any part."""
        folder = notes.path
        if not folder.is_dir() or not part_files(folder, "collection_events", _ENDINGS_2019):
            raise InputError(
                "no collection events", source=folder, expected="collection_events-*.json.gz"
            )
        notes.origin_unix_seconds = _ORIGIN_UNIX_SECONDS_2019
        jobs = _read_2019("collection_events", _COLLECTION_EVENTS, JOB_EVENT, notes)
        tasks = _read_2019("instance_events", _INSTANCE_EVENTS, TASK_EVENT, notes)
        usage = _read_2019("instance_usage", _INSTANCE_USAGE, USAGE, notes)
        yield from tables(jobs, tasks, usage, self._parameters, notes)


def _read_2019(
    table: str,
    fields: dict[str, str],
    columns: tuple[str, ...],
    notes: Notes,
) -> pl.DataFrame:
    """One table's rows about jobs, by canonical name."""

    def chunks_of(file: Path, of_part: Notes) -> Iterator[pl.DataFrame]:
        for chunk in _chunks_2019(file, fields, of_part):
            of_jobs = _of_jobs(chunk)
            named = (
                with_event_names(of_jobs, _EVENTS_2019, of_part) if "type" in columns else of_jobs
            )
            yield named.select(*columns, LINE)

    files = part_files(notes.path, table, _ENDINGS_2019)
    return all_rows(files, chunks_of, columns, notes)


def _of_jobs(chunk: pl.DataFrame) -> pl.DataFrame:
    """Without alloc sets and their instances."""
    kind = pl.col("collection_type").str.strip_suffix(".0").str.to_lowercase()
    return chunk.filter(kind.is_in(_JOB) | kind.is_null())


def _chunks_2019(file: Path, fields: dict[str, str], notes: Notes) -> Iterator[pl.DataFrame]:
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
