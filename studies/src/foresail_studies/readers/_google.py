"""Parts that Google's two cluster-usage traces share: from events and usage to the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import require_positive
from foresail.traces.measured import task_keys, tasks_table, usage_table
from foresail.traces.reading import LINE, Notes
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
