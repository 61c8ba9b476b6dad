"""All that is odd about a workload, counted, with an example of each and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.measured import task_stages
from foresail.traces.nodes import cluster_of, unknown_preferences
from foresail.traces.plausibility import oddities, outside_window, plausibility
from foresail.traces.reading import LOSSES, too_many_lost
from foresail.traces.workload import Oddity, Workload


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings about a workload of so many jobs."""

    source: str
    jobs: int
    findings: tuple[Oddity, ...]

    @property
    def is_unusable(self) -> bool:
        """True if something cannot be, or more rows are no jobs than may be."""
        lost = (each.count for each in self.findings if each.name in LOSSES)
        impossible = any(each.severity == "impossible" for each in self.findings)
        return impossible or too_many_lost(sum(lost), self.jobs)

    @property
    def clean(self) -> bool:
        """True if nothing was found."""
        return not self.findings


def validate(workload: Workload) -> ValidationReport:
    """Look for what a replay would refuse or say, what it would clean away, and what was repaired.

    The first are of the workload as the filter ``replayable`` leaves it. Nothing is changed.
    """
    replayed = as_replayed(workload)
    findings = [
        *plausibility(workload, replayed),
        *(() if replayed is workload else outside_window(workload)),
        *_of_reading(workload),
        *_of_whole(workload),
        *_of_nodes(workload),
        *_of_tasks(workload),
        *_of_jobs(workload),
    ]
    return ValidationReport(workload.meta.source, len(workload), tuple(findings))


def as_replayed(workload: Workload) -> Workload:
    """The workload as a replay of it would have it, where its machine is known."""
    if workload.meta.processors is None:
        return workload
    return apply_filters(workload, choices_of(["replayable"]))


def _of_reading(workload: Workload) -> Iterator[Oddity]:
    for name, rows in sorted(workload.meta.repairs.items()):
        sentence = "repaired on reading: " + name.replace("_", " ")
        if name not in {each.repair for each in workload.meta.lost}:
            example = workload.meta.examples.get(name)
            remedy = "none needed; --strict makes it an error"
            yield Oddity("minor", name, sentence, rows, example, remedy)
    for each in workload.meta.lost:
        yield Oddity(
            "minor",
            each.repair,
            f"dropped on reading, for no job can be made of the row: expected {each.expected}",
            each.rows,
            each.example,
            "correct the source or its mapping; --lenient does without, whatever their number",
        )


def _of_whole(workload: Workload) -> Iterator[Oddity]:
    jobs = workload.jobs
    if workload.meta.processors is None:
        sentence = f"the number of {workload.meta.unit}s is unknown"
        yield Oddity("minor", "unknown_processors", sentence, 1, None, "give --processors")
    if jobs.height and jobs["requested_seconds"].null_count() == jobs.height:
        sentence, remedy = (
            "no job has a requested time",
            "use a predictor that learns from runtimes",
        )
        yield Oddity("minor", "no_requested_times", sentence, 1, None, remedy)


def _of_nodes(workload: Workload) -> Iterator[Oddity]:
    if workload.nodes is None or not workload.nodes.height:
        return
    for text, known in unknown_preferences(workload.jobs, cluster_of(workload.nodes)).items():
        sentence = "{} prefer what the nodes do not have; there are " + ", ".join(known)
        prefer = pl.col("preferred") == text
        name, remedy = "unknown_preference", "correct the source"
        yield from oddities(workload, name, sentence, prefer, "preferred", remedy, "minor")


def _of_tasks(workload: Workload) -> Iterator[Oddity]:
    is_timed = len(workload) > 0 and not workload.jobs["submit_seconds"].null_count()
    if workload.tasks is None or not is_timed:
        return
    try:
        task_stages(workload)
    except InputError as error:
        remedy = f"correct the tasks table: {error.expected}"
        example = f"{error.field} = {error.value}"
        yield Oddity("minor", "impossible_tasks", error.problem, 1, example, remedy)


_RUNTIME: Final = pl.col("runtime_seconds")
_REQUESTED: Final = pl.col("requested_seconds")
_CPUS: Final = pl.col("tasks") * pl.col("cpus_per_task")
_STATUS: Final = pl.col("status")
_VALUE: Final = pl.col("value")

_OF_JOBS: Final = (
    (
        "unknown_runtime",
        "the runtime of {} is unknown: they cannot be replayed",
        _RUNTIME.is_null(),
        "runtime_seconds",
        "filter drop_no_runtime",
    ),
    (
        "zero_runtime",
        "{} ran for no time",
        _RUNTIME == 0,
        "runtime_seconds",
        "filter drop_no_runtime",
    ),
    (
        "runtime_beyond_request",
        "{} ran longer than they had asked for",
        _RUNTIME > _REQUESTED,
        "runtime_seconds",
        "filter clip_runtime_to_request or raise_request_to_runtime",
    ),
    (
        "deadline_before_submission",
        "the deadlines of {} have passed when they are submitted: they cannot be met",
        pl.col("deadline_seconds") <= pl.col("submit_seconds"),
        "deadline_seconds",
        "correct the source",
    ),
    (
        "not_a_value",
        "what {} are worth is negative or no finite number",
        (_VALUE < 0) | ~_VALUE.is_finite(),
        "value",
        "correct the source",
    ),
    (
        "unknown_requested_time",
        "{} have no requested time, though others have",
        (_REQUESTED.is_null() | (_REQUESTED <= 0)) & _REQUESTED.is_not_null().any(),
        "requested_seconds",
        "filter drop_no_request",
    ),
    (
        "unknown_width",
        "how many cpus {} hold is unknown or zero",
        _CPUS.is_null() | (_CPUS <= 0),
        "tasks",
        "filter drop_no_processors",
    ),
    (
        "cancelled_before_start",
        "{} were cancelled and did not run",
        (_STATUS == "cancelled") & (_RUNTIME.is_null() | (_RUNTIME <= 0)),
        "status",
        "filter drop_cancelled_before_start",
    ),
    (
        "partial_execution",
        "the rows of {} are one of several executions of a job",
        _STATUS == "partial",
        "status",
        "filter merge_duplicates",
    ),
    (
        "unknown_status",
        "the status of {} is none of " + ", ".join(schema.STATUSES),
        _STATUS.is_not_null() & ~_STATUS.is_in(schema.STATUSES),
        "status",
        "correct the mapping's values",
    ),
)
"""Name, sentence, which jobs, column of the example, and remedy."""


def _of_jobs(workload: Workload) -> Iterator[Oddity]:
    for name, sentence, which, column, remedy in _OF_JOBS:
        yield from oddities(workload, name, sentence, which, column, remedy, "minor")
    most = workload.meta.processors
    if most is not None:
        sentence = f"{{}} hold more than the machine's {most} {workload.meta.unit}s"
        wide = (most < _CPUS) | (pl.col("allocated_cpus") > most)
        name, remedy = "wider_than_machine", "filter drop_wider_than_machine"
        yield from oddities(workload, name, sentence, wide, "tasks", remedy, "minor")
