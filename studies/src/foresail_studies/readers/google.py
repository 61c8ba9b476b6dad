"""Google's cluster-usage traces of 2011 (CSV parts) and of 2019 (JSON lines)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.documents import parsed_json
from foresail.model.errors import InputError, require_positive
from foresail.model.registry import Example, register
from foresail.traces.delimited import read_delimited
from foresail.traces.measured import task_keys, tasks_table, usage_table
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


def part_files(folder: Path, table: str, ending: str) -> list[Path]:
    """The files of one table, by name: in a sub-folder of its name, or named after it."""
    inside = folder / table
    names = inside.iterdir() if inside.is_dir() else folder.glob(f"{table}*")
    return sorted(path for path in names if path.is_file() and ending in path.name)


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


def with_event_names(chunk: pl.DataFrame, names: tuple[str, ...], notes: Notes) -> pl.DataFrame:
    """The chunk with names of events in ``type``, where there are codes (or the names themselves).

    Raises
    ------
    InputError
        When strict and there are unknown codes; else their rows are dropped and counted.
    """
    code = pl.col("type").str.strip_suffix(".0").str.to_lowercase()
    codes = {str(code): name for code, name in enumerate(names)}
    known = codes | {name: name for name in names}
    named = chunk.with_columns(code.replace_strict(known, default=None, return_dtype=pl.String))
    strange = named["type"].is_null()
    notes.repair_rows("dropped_unknown_event", chunk, strange, "type", ", ".join(codes))
    return named.filter(~strange)


def tables(
    job_events: pl.DataFrame,
    task_events: pl.DataFrame,
    usage: pl.DataFrame,
    parameters: GoogleParameters,
    notes: Notes,
) -> pl.DataFrame:
    """The jobs; tasks and usage go to the notes, where there are any.

    Columns are those of ``JOB_EVENT``, ``TASK_EVENT`` (with names in ``type``) and ``USAGE``,
    times in seconds, cpus and memory normalised.
    """
    cores = parameters.cores_per_machine
    notes.header["memory_unit"] = MEMORY_UNIT
    notes.header["cores_per_machine"] = f"{cores:g}"
    tasks = _tasks(task_events, cores)
    per_job = tasks.group_by("job_id").agg(
        tasks=pl.len(),
        cpus_per_task=pl.col("cpus").mean(),
        memory_bytes_per_task=pl.col("memory_bytes").mean(),
        priority=pl.col("priority").drop_nulls().last(),
    )
    if tasks.height:
        notes.tasks = tasks_table(tasks)
    elif usage.height:
        per_job = usage.group_by("job_id").agg(tasks=pl.col("task").n_unique())
    jobs = _jobs(job_events).join(per_job, on="job_id", how="left", maintain_order="left")
    absent = [pl.lit(None, pl.Float64).alias("cpus_per_task")]
    jobs = jobs.with_columns(pl.col("tasks").fill_null(1), *absent[: "cpus_per_task" not in jobs])
    if usage.height:
        notes.usage = _usage(usage, cores)
        jobs = with_use(jobs, notes.usage)
    return jobs.sort("submit_seconds", maintain_order=True)


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


_EVENTS_2011: Final = (
    *("submit", "schedule", "evict", "fail", "finish", "kill", "lost"),
    *("update_pending", "update_running"),
)
_EVENTS_2019: Final = (
    *("submit", "queue", "enable", "schedule", "evict", "fail", "finish", "kill", "lost"),
    *("update_pending", "update_running"),
)
"""Events by their codes, from 0 on."""
_COLUMNS_2011: Final = {
    "job_events": (
        *("time", "missing_info", "job_id", "type", "user", "scheduling_class"),
        *("name", "logical_name"),
    ),
    "task_events": (
        *("time", "missing_info", "job_id", "task", "machine_id", "type", "user"),
        *("scheduling_class", "priority", "cpus", "memory", "disk_space", "different_machines"),
    ),
    "task_usage": (
        *("start_time", "end_time", "job_id", "task", "machine_id", "average_cpus"),
        *("average_memory", "assigned_memory", "unmapped_page_cache", "total_page_cache"),
        *("maximum_memory", "disk_io_time", "local_disk_space", "maximum_cpus"),
        *("maximum_disk_io_time", "cycles_per_instruction", "memory_accesses_per_instruction"),
        *("sample_portion", "aggregation_type", "sampled_cpus"),
    ),
}
"""Columns of each table; the first release has no ``sampled_cpus``."""
_EVENT_2019: Final = {
    "time": "time",
    "type": "type",
    "job_id": "collection_id",
    "collection_type": "collection_type",
}
_FIELDS_2019: Final = {
    "collection_events": {
        **_EVENT_2019,
        "user": "user",
        "scheduling_class": "scheduling_class",
        "name": "collection_name",
        "logical_name": "collection_logical_name",
    },
    "instance_events": {
        **_EVENT_2019,
        "task": "instance_index",
        "priority": "priority",
        "cpus": "resource_request.cpus",
        "memory": "resource_request.memory",
    },
    "instance_usage": {
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
    },
}
_JOB: Final = ("0", "job")
_JSON_LINES_AT_ONCE: Final = 1 << 16


class _GoogleReader:
    """What the readers of both traces share: tables of job events, task events and usage."""

    TABLES: ClassVar[Mapping[str, object]]
    """Its tables by name, in this order."""
    ENDING: ClassVar[str]
    """Of the files' names, but for that of a compression."""
    EVENTS: ClassVar[tuple[str, ...]]
    ORIGIN_UNIX_SECONDS: ClassVar[float]
    TIME_ZONE: ClassVar[str | None] = None

    def __init__(self, parameters: GoogleParameters) -> None:
        self._parameters = parameters

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once: an event of a job may be in any part."""
        first, *_ = self.TABLES
        if not notes.path.is_dir() or not part_files(notes.path, first, self.ENDING):
            name = first.replace("_", " ")
            raise InputError(f"no {name}", source=notes.path, expected=f"{first}/*{self.ENDING}.gz")
        notes.origin_unix_seconds = self.ORIGIN_UNIX_SECONDS
        notes.time_zone = self.TIME_ZONE or notes.time_zone
        jobs, tasks, usage = (
            self._table(table, columns, notes)
            for table, columns in zip(self.TABLES, (JOB_EVENT, TASK_EVENT, USAGE), strict=True)
        )
        yield tables(jobs, tasks, usage, self._parameters, notes)

    def _table(self, table: str, columns: tuple[str, ...], notes: Notes) -> pl.DataFrame:
        """A table as a whole, its numeric columns turned to numbers, the others text.

        Rows with a bad number, or without a job, task or time, are dropped and counted. Times
        become seconds, null after the end of the trace.
        """
        numbers = tuple(name for name in columns if name in _NUMBERS)
        kinds = {name: pl.Float64() if name in numbers else pl.String() for name in columns}
        parts = [pl.DataFrame(schema=kinds)]
        for file in part_files(notes.path, table, self.ENDING):
            of_part = Notes(file, notes.strict, notes.advance)
            for rows in self._rows(table, LogFile(file, notes.advance), of_part):
                absent = [
                    pl.lit(None, pl.String).alias(each) for each in columns if each not in rows
                ]
                chunk = rows.with_columns(absent)
                if "type" in columns:
                    chunk = with_event_names(chunk, self.EVENTS, of_part)
                parts.append(_checked(chunk.select(*columns, LINE), numbers, of_part))
            notes.repairs.update(of_part.repairs)
        return pl.concat(parts)

    def _rows(self, table: str, file: LogFile, notes: Notes) -> Iterator[pl.DataFrame]:
        """A file's rows as text, by canonical name."""
        raise NotImplementedError


@register("reader", "google_2011", parameters=GoogleParameters)
class Google2011Reader(_GoogleReader):
    """Google's trace of 2011: a folder with ``job_events``, ``task_events`` and ``task_usage``.

    Each is a sub-folder of part files; the latter two may be absent, and of each there may be some
    parts only (all of them are more than a machine's memory holds). Wait and runtime go from the
    first submission over the first start to the last end; those of what began before the trace are
    unknown. A task's runtime is that of its last attempt. The logical job name is the executable;
    the job's name, scheduling class and priority are features. Cpus are normalised cpus x
    ``cores_per_machine``, memory stays a share of the largest machine.
    """

    TABLES = _COLUMNS_2011
    ENDING = ".csv"
    EVENTS = _EVENTS_2011
    ORIGIN_UNIX_SECONDS = 1_304_290_800.0 - 600.0
    """2011-05-01 19:00 in New York is second 600 of the trace."""
    TIME_ZONE = "America/New_York"

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        texts = {
            "job_events": "700000000,,100,0,bob,0,run-8,sort\n705000000,,100,1,bob,0,run-8,sort\n"
            "1005000000,,100,4,bob,0,run-8,sort\n800000000,,200,0,bob,1,,sort\n",
            "task_events": "700000000,,100,0,7,0,u,0,1,0.0625,0.125,0.001,0\n"
            "705000000,,100,0,7,1,u,0,1,0.0625,0.125,0.001,0\n"
            "1005000000,,100,0,7,4,u,0,1,0.0625,0.125,0.001,0\n",
            "task_usage": "705000000,805000000,100,0,7,0.03125,0.0625,0.1,0,0,0.125,0.01,0,0.0625,"
            "0.02,1.5,0.01,1,0,0.03\n",
        }
        files = {f"{name}/part-00000-of-00500.csv": text.encode() for name, text in texts.items()}
        return (Example(dict(list(files.items())[:1])), Example(files))

    def recognises(self, sample: Sample) -> bool:
        """A folder with a sub-folder ``job_events``."""
        return (sample.path / "job_events").is_dir()

    def _rows(self, table: str, file: LogFile, notes: Notes) -> Iterator[pl.DataFrame]:
        header = _COLUMNS_2011[table]
        fields = head(notes.path).partition(b"\n")[0].count(b",") + 1
        if table == "task_usage" and fields == len(header) - 1:
            header = header[:-1]
        wanted = [name for name in header if name in {*JOB_EVENT, *TASK_EVENT, *USAGE}]
        yield from read_delimited(file, notes, wanted, header=header)


@register("reader", "google_2019", parameters=GoogleParameters)
class Google2019Reader(_GoogleReader):
    """Google's traces of 2019: a folder with exports of one cell's tables as JSON lines.

    The tables ``collection_events``, ``instance_events`` and ``instance_usage`` are sub-folders or
    files named after them; the latter two may be absent. Alloc sets and their instances are left
    out. All else is as in ``google_2011``.
    """

    TABLES = _FIELDS_2019
    ENDING = ".json"
    EVENTS = _EVENTS_2019
    ORIGIN_UNIX_SECONDS = 1_556_694_000.0 - 600.0
    """2019-05-01 00:00 in Los Angeles is second 600 of the traces."""

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        job = {"collection_id": "100", "collection_type": "0"}
        name = {"user": "bob", "scheduling_class": "1", "collection_name": "run-8"}
        task = {"instance_index": "0", "resource_request": {"cpus": 0.0625, "memory": 0.125}}
        use = {"start_time": "705000000", "end_time": "805000000", "instance_index": "0"}
        average = {"average_usage": {"cpus": 0.03125, "memory": 0.0625}}
        times = {"0": "700000000", "3": "705000000", "6": "1005000000"}
        events = [{"time": at, "type": code, **job} for code, at in times.items()]
        rows: dict[str, list[dict[str, Any]]] = {
            "collection_events": [event | name for event in events],
            "instance_events": [event | task for event in events],
            "instance_usage": [job | use | average],
        }
        lines = {
            f"{table}-0.json": "".join(f"{json.dumps(row)}\n" for row in each).encode()
            for table, each in rows.items()
        }
        return (Example(lines),)

    def recognises(self, sample: Sample) -> bool:
        """A folder with a table of collection events."""
        return sample.path.is_dir() and bool(
            part_files(sample.path, "collection_events", self.ENDING)
        )

    def _rows(self, table: str, file: LogFile, notes: Notes) -> Iterator[pl.DataFrame]:
        """Some ten thousand at a time, of jobs alone; lines that are no objects are counted."""
        fields = {name: tuple(path.split(".")) for name, path in _FIELDS_2019[table].items()}
        kinds = dict.fromkeys(fields, pl.String()) | {LINE: pl.Int64()}
        kind = pl.col("collection_type").str.strip_suffix(".0").str.to_lowercase()
        of_jobs = kind.is_in(_JOB) | kind.is_null()
        rows: list[tuple[Any, ...]] = []
        for number, line in enumerate(_lines(file), start=1):
            if not line.strip():
                continue
            found = _parsed(line)
            if found is None:
                notes.repair(
                    "dropped_malformed_line", line=number, value=line[:80], expected="a JSON object"
                )
                continue
            rows.append((*(_text(found, path) for path in fields.values()), number))
            if len(rows) >= _JSON_LINES_AT_ONCE:
                yield pl.DataFrame(rows, kinds, orient="row").filter(of_jobs)
                rows = []
        yield pl.DataFrame(rows, kinds, orient="row").filter(of_jobs)


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
