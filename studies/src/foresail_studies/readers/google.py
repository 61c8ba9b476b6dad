"""Google's cluster-usage trace of 2011, in CSV parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import InputError, require_positive
from foresail.model.registry import Example, register
from foresail.traces.delimited import read_delimited
from foresail.traces.mapping import with_numbers
from foresail.traces.measured import task_keys, tasks_table, usage_table
from foresail.traces.reading import LINE, Notes, Sample
from foresail.traces.source import LogFile, head

MEMORY_UNIT: Final = "share of the largest machine"
_AFTER_THE_END: Final = 2.0**63
"""A time of 2 ** 63 - 1 as a float: the event came after the end of the trace."""

_MICROSECOND: Final = 1e-6
_ORIGIN_UNIX_SECONDS: Final = 1_304_290_800.0 - 600.0
"""2011-05-01 19:00 in New York is second 600 of the trace."""
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
    """Options of the reader of Google's trace.

    Parameters
    ----------
    cores_per_machine
        Cores of a machine of normalised capacity 1.0; 16 is the estimate of 3Sigma's authors.
    """

    cores_per_machine: float = 16.0

    def __post_init__(self) -> None:
        require_positive(self, "cores_per_machine")


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


def _with_event_names(chunk: pl.DataFrame, notes: Notes) -> pl.DataFrame:
    """The chunk with names of events in ``type``; rows with unknown codes are dropped and counted.

    Raises ``InputError`` when strict and there are any.
    """
    codes = {str(code): name for code, name in enumerate(_EVENTS)}
    code = pl.col("type").str.strip_suffix(".0")
    named = chunk.with_columns(code.replace_strict(codes, default=None, return_dtype=pl.String))
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


_EVENTS: Final = (
    *("submit", "schedule", "evict", "fail", "finish", "kill", "lost"),
    *("update_pending", "update_running"),
)
"""Events by their codes, from 0 on."""
_COLUMNS: Final = {
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

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """All jobs at once: an event of a job may be in any part."""
        if not _part_files(notes.path / "job_events"):
            expected = "job_events/*.csv.gz"
            raise InputError("no job events", source=notes.path, expected=expected)
        notes.origin_unix_seconds, notes.time_zone = _ORIGIN_UNIX_SECONDS, "America/New_York"
        jobs, tasks, usage = (
            _table(table, columns, notes)
            for table, columns in zip(_COLUMNS, (JOB_EVENT, TASK_EVENT, USAGE), strict=True)
        )
        yield tables(jobs, tasks, usage, self._parameters, notes)


def _part_files(folder: Path) -> list[Path]:
    """The files of one table, by name."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in paths if path.is_file() and ".csv" in path.name)


def _table(table: str, columns: tuple[str, ...], notes: Notes) -> pl.DataFrame:
    """A table as a whole, its numeric columns turned to numbers, the others text.

    Rows with a bad number, or without a job, task or time, are dropped and counted. Times become
    seconds, null after the end of the trace.
    """
    numbers = tuple(name for name in columns if name in _NUMBERS)
    kinds = {name: pl.Float64() if name in numbers else pl.String() for name in columns}
    parts = [pl.DataFrame(schema=kinds)]
    for path in _part_files(notes.path / table):
        of_part = Notes(path, notes.strict, notes.advance)
        header = _COLUMNS[table]
        fields = head(path).partition(b"\n")[0].count(b",") + 1
        if table == "task_usage" and fields == len(header) - 1:
            header = header[:-1]
        wanted = [name for name in header if name in columns]
        for rows in read_delimited(LogFile(path, notes.advance), of_part, wanted, header=header):
            absent = [pl.lit(None, pl.String).alias(each) for each in columns if each not in rows]
            chunk = rows.with_columns(absent)
            if "type" in columns:
                chunk = _with_event_names(chunk, of_part)
            parts.append(_checked(chunk.select(*columns, LINE), numbers, of_part))
        notes.repairs.update(of_part.repairs)
    return pl.concat(parts)
