"""Traces of Yarn's scheduler load simulator (SLS), which SLearn's simulator DSS takes as well."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import polars as pl

from foresail.model.documents import json_values
from foresail.model.errors import InputError
from foresail.model.example import Example
from foresail.model.registry import register
from foresail.traces import schema
from foresail.traces.reading import Notes, PlainReader, Sample

_MILLISECONDS: Final = 1000.0
_MEBIBYTE: Final = 2.0**20
_MOST_TASKS: Final = 1_000_000
"""Of a class: each gets a row of the tasks table, so that a wrong digit would fill the memory."""
_EXPECTED: Final = "JSON objects with job.start.ms and job.tasks, one after another"
_EXAMPLE: Final = """\
{"job.start.ms": 1786000, "job.end.ms": 200000, "job.queue.name": "queue_1", "job.id": "job_0",
 "job.user": "default", "job.tasks": [
  {"c.dur": 490000, "c.mem": 9400, "c.type": "reduce", "c.nr": 3},
  {"c.dur": 1000, "c.mem": 512, "c.type": "map", "c.nr": 2}]}
{"job.start.ms": 1796000, "job.id": "job_1", "job.tasks": [{"c.dur": 500}]}
"""


@register("reader", "sls")
class SlsReader(PlainReader):
    """SLS and DSS traces: JSON objects one after another, each a job with classes of equal tasks.

    ``c.nr`` tasks of a class run for ``c.dur`` milliseconds each in ``c.mem`` MiB; the type is
    their stage, and no stage waits for another. The runtime of the job is that of its longest task
    (all at once). ``job.end.ms`` is left out: in the files at hand it is before the start.
    """

    @staticmethod
    def examples() -> tuple[Example, ...]:
        """Small files of the layout."""
        return (Example.of_text("trace.json", _EXAMPLE),)

    def recognises(self, sample: Sample) -> bool:
        """It begins with an object that has a start."""
        return sample.text.lstrip().startswith("{") and '"job.start.ms"' in sample.text

    def chunks(self, notes: Notes) -> Iterator[pl.DataFrame]:
        """The jobs, all at once: a job's tasks are kept in any case."""
        text = b"".join(notes.source().blocks()).decode("utf-8", errors="replace")
        jobs: dict[str, dict[str, Any]] = {}
        tasks: list[dict[str, Any]] = []
        for line, record in json_values(text, notes.path):
            try:
                job, classes = _job(record)
                if job["job_id"] in jobs:
                    raise ValueError(f"the id {job['job_id']} is used twice")
            except (KeyError, TypeError, ValueError, OverflowError) as error:
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


def _job(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    classes = [_class(str(record["job.id"]), each) for each in record["job.tasks"]]
    if not classes:
        raise ValueError("no tasks")
    job = {
        "job_id": str(record["job.id"]),
        "submit_seconds": _number(record, "job.start.ms") / _MILLISECONDS,
        "runtime_seconds": max(each["runtime_seconds"] for each in classes),
        "tasks": sum(each["count"] for each in classes),
        "cpus_per_task": 1.0,
        "memory_bytes_per_task": max((each["memory_bytes"] or 0.0) for each in classes) or None,
        "user": _text(record.get("job.user")),
        "queue": _text(record.get("job.queue.name")),
    }
    return job, classes


def _class(job_id: str, tasks: Any) -> dict[str, Any]:
    """Tasks of a job that are alike."""
    if not isinstance(tasks, Mapping):
        raise TypeError(f"job.tasks holds {tasks!r}, not objects")
    return {
        "job_id": job_id,
        "stage": str(tasks["c.type"]) if "c.type" in tasks else None,
        "count": _count(tasks.get("c.nr", 1)),
        "runtime_seconds": _number(tasks, "c.dur") / _MILLISECONDS,
        "memory_bytes": _number(tasks, "c.mem") * _MEBIBYTE if "c.mem" in tasks else None,
    }


def _number(record: Mapping[str, Any], name: str) -> float:
    """A number that is not negative."""
    value = float(record[name])
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{name} is {value}")
    return value


def _count(value: Any) -> int:
    """How many tasks a class has."""
    count = int(value)
    if not 1 <= count <= _MOST_TASKS:
        raise ValueError(f"c.nr is {value!r}, not within 1 and {_MOST_TASKS}")
    return count


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _expanded(classes: pl.DataFrame) -> pl.DataFrame:
    """A row a task."""
    table = classes.with_columns(task=pl.int_ranges("count"), cpus=1.0).explode("task")
    number = pl.int_range(pl.len()).over("job_id", "stage").alias("task")
    return schema.laid_out(table.with_columns(number), schema.TASKS)
