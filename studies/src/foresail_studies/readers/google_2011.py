"""Google's cluster-usage trace of 2011: CSV parts without header lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import Example, register
from foresail.traces.delimited import read_delimited
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

_ENDINGS: Final = (".csv",)
_ORIGIN_UNIX_SECONDS: Final = 1_304_290_800.0 - 600.0
"""2011-05-01 19:00 in New York is second 600 of the trace."""

_EVENTS: Final = {
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
_EXAMPLE: Final = (
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
        jobs, tasks, usage = (text.encode() for text in _EXAMPLE)
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
        files = part_files(notes.path, "job_events", _ENDINGS) if notes.path.is_dir() else []
        if not files:
            raise InputError(
                "no parts of job events", source=notes.path, expected="job_events/part-*.csv.gz"
            )
        notes.origin_unix_seconds = _ORIGIN_UNIX_SECONDS
        notes.time_zone = "America/New_York"
        jobs = _read(files, _JOB_EVENTS, JOB_EVENT, notes)
        of_tasks = part_files(notes.path, "task_events", _ENDINGS)
        tasks = _read(of_tasks, _TASK_EVENTS, TASK_EVENT, notes)
        of_usage = part_files(notes.path, "task_usage", _ENDINGS)
        usage = _read(of_usage, _TASK_USAGE, USAGE, notes)
        yield from tables(jobs, tasks, usage, self._parameters, notes)


def _read(
    files: list[Path],
    layout: tuple[str, ...],
    columns: tuple[str, ...],
    notes: Notes,
) -> pl.DataFrame:
    def chunks_of(file: Path, of_part: Notes) -> Iterator[pl.DataFrame]:
        return _chunks(file, layout, columns, of_part)

    return all_rows(files, chunks_of, columns, notes)


def _chunks(
    file: Path, layout: tuple[str, ...], columns: tuple[str, ...], notes: Notes
) -> Iterator[pl.DataFrame]:
    """A part's rows; columns that an older release lacks are null."""
    fields = head(file).partition(b"\n")[0].count(b",") + 1
    header = layout[:-1] if layout is _TASK_USAGE and fields == len(layout) - 1 else layout
    known = tuple(name for name in columns if name in header)
    for chunk in read_delimited(LogFile(file, notes.advance), notes, known, header=header):
        absent = [name for name in columns if name not in known]
        whole = chunk.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
        yield (with_event_names(whole, _EVENTS, notes) if "type" in columns else whole).select(
            *columns, LINE
        )
