"""What is odd about a workload, counted, with an example of each and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

import numpy as np
import polars as pl

from foresail.model.errors import InputError
from foresail.model.words import number, percent
from foresail.traces import schema
from foresail.traces.nodes import cluster_of, unknown_preferences
from foresail.traces.reading import LOSSES, too_many_lost
from foresail.traces.task_stages import task_stages
from foresail.traces.workload import Workload

LONGEST_RUNTIME_SECONDS: Final = 366 * 86400.0
"""A job that ran longer than a year is taken for a mistake of the record."""

_LEAST_BEYOND: Final = 0.01
"""Of the time; clocks that run apart make jobs seem to overlap for less of it."""

_TIMES: Final = (
    *("submit_seconds", "recorded_wait_seconds", "runtime_seconds", "requested_seconds"),
    *("used_cpu_seconds", "think_seconds"),
)


@dataclass(frozen=True, slots=True)
class Oddity:
    """One kind of oddity."""

    name: str
    """Short name, as code may test for it."""
    meaning: str
    """What it is, in words."""
    count: int
    """How many jobs have it; 1 for what concerns the workload as a whole."""
    remedy: str
    """What to do about it: a filter, or an option of reading."""
    job_id: str | None = None
    value: str | None = None
    """The first such job and what it has there, where there is one."""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All findings about a workload of so many jobs."""

    source: str
    jobs: int
    findings: tuple[Oddity, ...]

    @property
    def loses_too_many(self) -> bool:
        """Whether more rows are no jobs than may be."""
        lost = (each.count for each in self.findings if each.name in LOSSES)
        return too_many_lost(sum(lost), self.jobs)

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    meaning: str
    odd: pl.Expr
    column: str
    remedy: str


def validate(workload: Workload) -> ValidationReport:
    """Look for what a replay would stumble over or what makes its result doubtful.

    Repairs that the reader made are findings as well. Nothing is changed.
    """
    findings = [
        *_of_reading(workload),
        *_of_whole(workload),
        *_of_nodes(workload),
        *_of_dependencies(workload),
        *_of_tasks(workload),
        *(found for check in _checks(workload) if (found := _look(workload, check))),
    ]
    return ValidationReport(workload.meta.source, len(workload), tuple(findings))


def _of_reading(workload: Workload) -> Iterator[Oddity]:
    for name, count in sorted(workload.meta.repairs.items()):
        meaning = "repaired on reading: " + name.replace("_", " ")
        if name not in {each.repair for each in workload.meta.lost}:
            yield Oddity(name, meaning, count, "none needed; --strict makes it an error")
    for each in workload.meta.lost:
        yield Oddity(
            each.repair,
            f"dropped on reading, for no job can be made of the row: expected {each.expected}",
            each.rows,
            "correct the source or its mapping; --lenient does without, whatever their number",
            value=each.example,
        )


def _of_whole(workload: Workload) -> Iterator[Oddity]:
    jobs = workload.jobs
    if workload.meta.processors is None:
        meaning = "the number of processors is unknown"
        yield Oddity("unknown_processors", meaning, 1, "give --processors")
    if not jobs["submit_seconds"].is_sorted():
        meaning = "jobs are not in order of submission"
        yield Oddity("unsorted", meaning, 1, "convert the workload again")
    if jobs.height and jobs["requested_seconds"].null_count() == jobs.height:
        meaning = "no job has a requested time"
        yield Oddity("no_requested_times", meaning, 1, "use a predictor that learns from runtimes")
    yield from _of_recorded_use(workload)


def _of_recorded_use(workload: Workload) -> Iterator[Oddity]:
    """Whether more was in use at once, as recorded, than the machine is said to have."""
    processors = workload.meta.processors
    if processors is None:
        return
    start = pl.col("submit_seconds") + pl.col("recorded_wait_seconds")
    cpus = pl.col("tasks") * pl.col("cpus_per_task")
    ran = workload.jobs.select(
        start=start, end=start + pl.col("runtime_seconds"), cpus=cpus
    ).filter(pl.col("end") > pl.col("start"), pl.col("end").is_finite(), pl.col("cpus") > 0)
    changes = pl.concat(
        [ran.select(at="start", by="cpus"), ran.select(at="end", by=-pl.col("cpus"))]
    )
    use = changes.group_by("at").agg(pl.col("by").sum()).sort("at")
    used = use["by"].cum_sum().to_numpy()[:-1]
    seconds = np.diff(use["at"].to_numpy())
    share = float(seconds[used > processors].sum() / max(seconds.sum(), 1.0))
    if share >= _LEAST_BEYOND:
        yield Oddity(
            "use_beyond_processors",
            f"as recorded, jobs held more than the machine's {processors} processors during "
            f"{percent(share)} of the time, {number(float(used.max()))} at most",
            1,
            "give --processors as many as there were, or leave out jobs that shared some",
        )


def _of_nodes(workload: Workload) -> Iterator[Oddity]:
    if workload.nodes is None or not workload.nodes.height:
        return
    for text, known in unknown_preferences(workload.jobs, cluster_of(workload.nodes)).items():
        jobs = workload.jobs.filter(pl.col("preferred") == text)
        yield Oddity(
            "unknown_preference",
            f"the job prefers what the nodes do not have; there are {', '.join(known)}",
            jobs.height,
            "correct the source",
            job_id=jobs["job_id"][0],
            value=f"preferred = {text}",
        )


def _of_dependencies(workload: Workload) -> Iterator[Oddity]:
    if not workload.has_dependencies:
        return
    links = (
        workload.jobs.select("job_id", before=pl.col("after_jobs").str.split(","))
        .drop_nulls("before")
        .explode("before")
    )
    unknown = links.join(workload.jobs, left_on="before", right_on="job_id", how="anti")
    if unknown.height:
        yield Oddity(
            "unknown_dependency",
            "the job waits for one that is not in the workload: simulations do not wait for it",
            unknown.height,
            "correct the source, or keep both jobs",
            job_id=unknown["job_id"][0],
            value=f"after_jobs = {unknown['before'][0]}",
        )
    after: dict[str, list[str]] = {}
    for job_id, before in links.iter_rows():
        after.setdefault(job_id, []).append(before)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        circle = error.args[1]
        yield Oddity(
            "circular_dependency",
            "the job waits for jobs that wait for it: none of them will ever start",
            len(circle) - 1,
            "correct the source",
            job_id=circle[0],
            value=f"after_jobs = {' < '.join(circle)}",
        )


def _of_tasks(workload: Workload) -> Iterator[Oddity]:
    is_timed = len(workload) > 0 and not workload.jobs["submit_seconds"].null_count()
    if workload.tasks is None or not is_timed:
        return
    try:
        task_stages(workload)
    except InputError as error:
        value = f"{error.field} = {error.value}"
        remedy = f"correct the tasks table: {error.expected}"
        yield Oddity("impossible_tasks", error.problem, 1, remedy, value=value)


def _look(workload: Workload, check: _Check) -> Oddity | None:
    jobs = workload.jobs.filter(check.odd.fill_null(value=False))
    if not jobs.height:
        return None
    value = jobs[check.column][0]
    return Oddity(
        check.name,
        check.meaning,
        jobs.height,
        check.remedy,
        job_id=jobs["job_id"][0],
        value=None if value is None else f"{check.column} = {value}",
    )


def _checks(workload: Workload) -> Iterator[_Check]:
    runtime, requested = pl.col("runtime_seconds"), pl.col("requested_seconds")
    cpus = pl.col("tasks") * pl.col("cpus_per_task")
    status, submit = pl.col("status"), pl.col("submit_seconds")
    yield _Check(
        "duplicate_id",
        "the id is used by an earlier job",
        ~pl.col("job_id").is_first_distinct(),
        "job_id",
        "filter merge_duplicates",
    )
    for name in _TIMES:
        yield _Check(
            f"negative_{name}",
            f"{name} is negative",
            pl.col(name) < 0,
            name,
            "filter drop_negative_submit" if name == "submit_seconds" else "correct the source",
        )
        yield _Check(
            f"infinite_{name}",
            f"{name} is no finite number",
            ~pl.col(name).is_finite(),
            name,
            "correct the source",
        )
    yield _Check(
        "unknown_submit",
        "the submission is unknown",
        submit.is_null(),
        "submit_seconds",
        "filter drop_negative_submit",
    )
    yield _Check(
        "unknown_runtime",
        "the runtime is unknown: the job cannot be replayed",
        runtime.is_null(),
        "runtime_seconds",
        "filter drop_no_runtime",
    )
    yield _Check(
        "zero_runtime",
        "the job ran for no time",
        runtime == 0,
        "runtime_seconds",
        "filter drop_no_runtime",
    )
    yield _Check(
        "runtime_beyond_request",
        "the job ran longer than it had asked for",
        runtime > requested,
        "runtime_seconds",
        "filter clip_runtime_to_request or raise_request_to_runtime",
    )
    yield _Check(
        "runtime_beyond_a_year",
        "the job ran for more than a year",
        runtime > LONGEST_RUNTIME_SECONDS,
        "runtime_seconds",
        "correct the source",
    )
    yield _Check(
        "deadline_before_submission",
        "the job's deadline has passed when it is submitted: it cannot be met",
        pl.col("deadline_seconds") <= submit,
        "deadline_seconds",
        "correct the source",
    )
    yield _Check(
        "not_a_value",
        "what the job is worth is negative or no finite number",
        (pl.col("value") < 0) | ~pl.col("value").is_finite(),
        "value",
        "correct the source",
    )
    some_requested = requested.is_not_null().any()
    yield _Check(
        "unknown_requested_time",
        "the job has no requested time, though others have",
        (requested.is_null() | (requested <= 0)) & some_requested,
        "requested_seconds",
        "filter drop_no_request",
    )
    yield _Check(
        "unknown_width",
        "how many cpus the job holds is unknown or zero",
        cpus.is_null() | (cpus <= 0),
        "tasks",
        "filter fill_processors",
    )
    if workload.meta.processors is not None:
        yield _Check(
            "wider_than_machine",
            f"the job holds more than the machine's {workload.meta.processors} processors",
            (cpus > workload.meta.processors)
            | (pl.col("allocated_cpus") > workload.meta.processors),
            "tasks",
            "filter drop_wider_than_machine",
        )
    yield _Check(
        "cancelled_before_start",
        "the job was cancelled and did not run",
        (status == "cancelled") & (runtime.is_null() | (runtime <= 0)),
        "status",
        "filter drop_cancelled_before_start",
    )
    yield _Check(
        "partial_execution",
        "the row is one of several executions of a job",
        status == "partial",
        "status",
        "filter merge_duplicates",
    )
    yield _Check(
        "unknown_status",
        "the status is none of " + ", ".join(schema.STATUSES),
        status.is_not_null() & ~status.is_in(schema.STATUSES),
        "status",
        "correct the mapping's values",
    )
