"""Traces of Yarn's scheduler load simulator (SLS), which SLearn's simulator DSS takes as well."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from foresail.model.errors import InputError
from foresail.model.registry import NoParameters, register
from foresail.traces import schema
from foresail.traces.reading import Notes, Sample

_MILLISECONDS: Final = 1000.0
_MEBIBYTE: Final = 2.0**20
_EXPECTED: Final = "JSON objects with job.start.ms and job.tasks, one after another"


@register("reader", "sls")
class SlsReader:
    """SLS and DSS traces: JSON objects one after another, each a job with classes of equal tasks.

    ``c.nr`` tasks of a class run for ``c.dur`` milliseconds each in ``c.mem`` MiB; the type is
    their stage, and no stage waits for another. The runtime of the job is that of its longest task
    (all at once). ``job.end.ms`` is left out: in the files at hand it is before the start.
    """

    def __init__(self, parameters: NoParameters) -> None:
        del parameters

    def recognises(self, sample: Sample) -> bool:
        """It begins with an object that has a start."""
        return sample.text.lstrip().startswith("{") and '"job.start.ms"' in sample.text

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, all at once: a job's tasks are kept in any case."""
        text = b"".join(notes.source().blocks()).decode("utf-8", errors="replace")
        jobs: dict[str, dict[str, Any]] = {}
        tasks: list[dict[str, Any]] = []
        for line, record in _records(text, notes):
            try:
                job, classes = _job(record)
                if job["job_id"] in jobs:
                    raise ValueError(f"the id {job['job_id']} is used twice")
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(
                    f"not a job of this layout ({type(error).__name__}: {error})",
                    source=notes.path,
                    line=line,
                    expected=_EXPECTED,
                ) from error
            jobs[job["job_id"]] = job
            tasks.extend(classes)
        if not jobs:
            raise InputError("holds no jobs", source=notes.path, expected=_EXPECTED)
        notes.tasks = _expanded(pl.DataFrame(tasks))
        yield pl.DataFrame(list(jobs.values()))


def _records(text: str, notes: Notes) -> Iterator[tuple[int, Any]]:
    """Each JSON value with the line on which it begins."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        try:
            record, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(
                f"not JSON: {error.msg}", source=notes.path, line=error.lineno, expected=_EXPECTED
            ) from error
        yield line, record


def _job(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    classes: list[dict[str, Any]] = [
        {
            "job_id": str(record["job.id"]),
            "stage": str(each["c.type"]) if "c.type" in each else None,
            "count": int(each.get("c.nr", 1)),
            "runtime_seconds": float(each["c.dur"]) / _MILLISECONDS,
            "memory_bytes": float(each["c.mem"]) * _MEBIBYTE if "c.mem" in each else None,
        }
        for each in record["job.tasks"]
    ]
    if not classes:
        raise ValueError("no tasks")
    job = {
        "job_id": str(record["job.id"]),
        "submit_seconds": float(record["job.start.ms"]) / _MILLISECONDS,
        "runtime_seconds": max(each["runtime_seconds"] for each in classes),
        "tasks": sum(each["count"] for each in classes),
        "cpus_per_task": 1.0,
        "memory_bytes_per_task": max((each["memory_bytes"] or 0.0) for each in classes) or None,
        "user": record.get("job.user"),
        "queue": record.get("job.queue.name"),
    }
    return job, classes


def _expanded(classes: pl.DataFrame) -> pl.DataFrame:
    """A row a task."""
    table = classes.select(
        "job_id",
        pl.col("stage").cast(pl.String),
        pl.lit(None, dtype=pl.String).alias("after_stages"),
        pl.int_ranges(pl.col("count")).alias("task"),
        "runtime_seconds",
        pl.lit(1.0).alias("cpus"),
        pl.col("memory_bytes").cast(pl.Float64),
    ).explode("task")
    number = pl.int_range(pl.len()).over("job_id", "stage").alias("task")
    return table.with_columns(number).cast(dict(schema.TASKS))  # type: ignore[arg-type]
