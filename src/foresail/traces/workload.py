"""Workload: jobs and their truth, in memory; what a trace becomes after loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
import polars as pl

from foresail.kernels import columns
from foresail.model.cluster import Resources
from foresail.model.distribution import Floats, Integers
from foresail.model.errors import InputError
from foresail.model.job import DeadlineValue, Job, Stage
from foresail.model.preference import PlacementOption, Preference
from foresail.model.words import count
from foresail.traces import schema

MOST_PROCESSORS: Final = 10**9
"""Beyond these, numbers of processors are mistakes."""

LONGEST_RUNTIME_SECONDS: Final = 1e10
"""Beyond these, times are in another unit, or mistakes, and sums with them lose small ones."""

ONLY_STAGE: Final = "main"
"""Name of a stage that the tasks table gives none."""


def require_processors(processors: int, source: object) -> None:
    """Raise ``InputError`` about a source unless a machine may have as many processors."""
    if not 1 <= processors <= MOST_PROCESSORS:
        raise InputError(
            "no machine has as many processors",
            source=source,
            field="processors",
            value=processors,
            expected=f"1 to {MOST_PROCESSORS:,}",
        )


@dataclass(frozen=True, slots=True)
class LostRows:
    """Rows of a source that the repair of this name dropped, for no job could be made of them.

    ``expected`` is what they should have had; ``example`` is the first of them: line, field and
    what was found there, as far as known.
    """

    repair: str
    rows: int
    expected: str
    example: str

    @property
    def words(self) -> str:
        """Say how many, and the first of them, for people."""
        return f"no jobs: {count(self.rows, 'row')}, such as {self.example}"


Severity = Literal["impossible", "odd", "minor"]
"""Refused; said with every result; said by ``foresail trace validate`` alone, being common."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """Finding that cannot be, or is odd, about a workload."""

    severity: Severity
    name: str
    """Short name, as code may test for it."""
    sentence: str
    count: int
    """Number of jobs that have it; 1 for what concerns the workload as a whole."""
    example: str | None
    """The first such job and what it has there, where there is one."""
    remedy: str
    """A way out: a filter, or an option of reading."""

    @property
    def words(self) -> str:
        """Say what was found, and the first of it, for people."""
        first = "" if self.example is None else f" (the first is {self.example})"
        return f"{self.sentence}{first}; {self.remedy}"


@dataclass(frozen=True)
class WorkloadMeta:
    """Facts of a workload as a whole; stored as ``meta.json``."""

    source: str
    """File name the jobs were read from, or the generator's name."""
    reader: str
    """Name of the reader or generator."""
    processors: int | None = None
    """Processors of the machine, where the source says so."""
    origin_unix_seconds: float | None = None
    """Unix time of second zero, where the source says so."""
    time_zone: str | None = None
    """Name of the zone, where the source says so."""
    header: Mapping[str, str] = field(default_factory=dict)
    """Further header directives of the source, as text."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Rows that the reader repaired or dropped, counted by the name of the repair."""
    lost: tuple[LostRows, ...] = ()
    """Rows that were dropped because no job could be made of them, by cause."""
    filters: tuple[tuple[str, int], ...] = ()
    """Cleaning filters applied since, in order, each with the number of jobs it touched."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """The first row that a repair or a filter of this name touched, as far as known."""
    sha256: str | None = None
    """Digest of the source file."""
    stated_processors: int | None = None
    """Processors that the source states, where others were given in their place."""

    @property
    def unit(self) -> str:
        """The thing that a cpu of the jobs stands for: a processor, or what the source counts."""
        return self.header.get("unit of cpus", "processor")

    def nothing_left(self, problem: str, expected: str) -> InputError:
        """Return the error about a workload without jobs, with what filters dropped or changed."""
        touched = [f"{name} {jobs:,}" for name, jobs in self.filters if jobs]
        if touched:
            problem += f" after filters that dropped or changed jobs: {', '.join(touched)}"
        return InputError(problem, source=self.source, expected=expected)


@dataclass(frozen=True)
class Workload:
    """Jobs in order of submission, with their truth."""

    jobs: pl.DataFrame
    """Table with (at least) the columns of ``schema.JOBS``, sorted by submission (stable)."""
    meta: WorkloadMeta

    nodes: pl.DataFrame | None = None
    """Table with the columns of ``schema.NODES``, where the source has one."""
    tasks: pl.DataFrame | None = None
    """Table with the columns of ``schema.TASKS``, where the source knows tasks."""
    usage: pl.DataFrame | None = None
    """Table with the columns of ``schema.USAGE``, where the source measured use over time."""
    options: Mapping[str, tuple[PlacementOption, ...]] = field(default_factory=dict)
    """Requests of jobs in the column ``strl``, by job id, once that is read for a cluster."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Processors by partition (``a,b``: those that belong to both); empty for one pool."""
    partitions_said: str = ""
    """Says how these are known, or why partitions are one pool; empty if there are none."""
    findings: tuple[Oddity, ...] = ()
    """Oddities, once ``plausibility.clean_and_check`` has looked."""

    def __len__(self) -> int:
        return self.jobs.height

    @property
    def processors(self) -> int:
        """Processors of the machine.

        Raises ``InputError`` if the source does not say, or there cannot be so many.
        """
        if self.meta.processors is None:
            raise InputError(
                f"the number of {self.meta.unit}s is unknown",
                source=self.meta.source,
                expected="a MaxProcs header or the option --processors",
            )
        require_processors(self.meta.processors, self.meta.source)
        return self.meta.processors

    def with_jobs(self, jobs: pl.DataFrame) -> Workload:
        """The same workload with another jobs table."""
        return replace(self, jobs=jobs)

    def with_meta(self, **changes: Any) -> Workload:
        """The same workload with some meta fields changed."""
        return replace(self, meta=replace(self.meta, **changes))

    @cached_property
    def cpus(self) -> Floats:
        """Cpus each job holds: tasks x cpus per task."""
        return (self.jobs["tasks"] * self.jobs["cpus_per_task"]).to_numpy().astype(np.float64)

    @cached_property
    def runtime_seconds(self) -> Floats:
        """The truth: real runtimes. Only simulators and oracles may ask."""
        return self.jobs["runtime_seconds"].to_numpy().astype(np.float64)

    @cached_property
    def specs(self) -> Floats:
        """Specification rows for kernels: (jobs, SPEC_COLUMNS + features); see ``columns``."""
        names = self.feature_names
        specs = np.empty((len(self), columns.SPEC_COLUMNS + len(names)))
        specs[:, columns.SUBMIT] = self.jobs["submit_seconds"].to_numpy()
        specs[:, columns.CPUS] = self.cpus
        specs[:, columns.REQUESTED] = self.jobs["requested_seconds"].fill_null(np.inf).to_numpy()
        for column in columns.CODED:
            specs[:, column] = _codes(self.jobs[columns.SPEC_NAMES[column]])
        specs[:, columns.TASKS] = self.jobs["tasks"].to_numpy()
        specs[:, columns.MEMORY] = self.jobs["memory_bytes_per_task"].fill_null(0.0).to_numpy()
        specs[:, columns.GPUS] = self.jobs["gpus_per_task"].fill_null(0.0).to_numpy()
        for column, name in enumerate(names, start=columns.SPEC_COLUMNS):
            specs[:, column] = _codes(self.jobs[name].cast(pl.String))
        return specs

    @cached_property
    def kinds(self) -> Integers:
        """Codes from 0 on: jobs of one code have the same user and the same requested time."""
        same = pl.struct("user", "requested_seconds").rank("dense")
        return self.jobs.select(same.cast(pl.Int64) - 1).to_series().to_numpy(writable=True)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns beyond the canonical ones."""
        return tuple(name for name in self.jobs.columns if name not in schema.JOBS)

    @property
    def has_dependencies(self) -> bool:
        """True if jobs wait for others to end before they may start."""
        return self.jobs["after_jobs"].null_count() < self.jobs.height

    @cached_property
    def has_tasks_of_all(self) -> bool:
        """True if the tasks table has rows of every job."""
        if self.tasks is None:
            return False
        return self.jobs.join(self.tasks, on="job_id", how="anti").is_empty()

    @property
    def has_own_requests(self) -> bool:
        """True if jobs say themselves where they may run, in STRL."""
        return self.jobs["strl"].null_count() < self.jobs.height

    def specifications(self) -> Iterator[Job]:
        """The jobs as schedulers and predictors may know them, in order of submission.

        Recorded submit times already hold what a job waited for, so ``after_job_id`` is not made a
        dependency again; ``after_jobs`` is, of jobs that are in the workload. Where tasks are
        known, a job has the stages that its tasks name, whose tasks do not need each other.

        Raises ``InputError`` if a stage waits for one that does not come before it in the tasks
        table, or a deadline, a value or a preference is none.
        """
        features = self.feature_names
        stages = {} if self.tasks is None else _stage_rows(self.tasks)
        known = frozenset(self.jobs["job_id"].to_list()) if self.has_dependencies else frozenset()
        gangs: dict[tuple[Any, ...], tuple[Stage, ...]] = {}
        for row in self.jobs.select(*_SPECIFIED, *features).iter_rows():
            try:
                job = _specification(row, features, stages.get(row[0]), known, gangs)
                if self.options:
                    job = replace(job, options=self.options.get(job.job_id, ()))
            except InputError as error:
                raise error.placed(f"job {row[0]}: ", self.meta.source) from error
            yield job

    def truth(self) -> dict[str, float]:
        """Real runtime by job id, for the simulator and for oracles."""
        return dict(zip(self.jobs["job_id"].to_list(), self.runtime_seconds.tolist(), strict=True))


_SPECIFIED: Final = (
    *("job_id", "submit_seconds", "requested_seconds"),
    *("user", "group", "queue", "partition", "executable"),
    *("tasks", "cpus_per_task", "memory_bytes_per_task", "gpus_per_task"),
    *("after_jobs", "deadline_seconds", "value", "preferred", "slowdown_elsewhere"),
)
_SIZE: Final = 8
_MORE: Final = 12
_FEATURES: Final = len(_SPECIFIED)
"""The columns that a job is made of; where its size begins, and what follows it."""

_NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


def _codes(column: pl.Series) -> Floats:
    """Codes in order of first appearance; -1 for null."""
    distinct = column.drop_nulls().unique(maintain_order=True)
    codes = pl.DataFrame({"name": distinct, "code": np.arange(distinct.len(), dtype=np.float64)})
    joined = (
        column.rename("name").to_frame().join(codes, on="name", how="left", maintain_order="left")
    )
    return joined["code"].fill_null(-1.0).to_numpy()


def _stage_rows(tasks: pl.DataFrame) -> dict[str, list[Mapping[str, Any]]]:
    """Stages by job id, in order of their first task: name, after, tasks, and largest requests."""
    stages = tasks.group_by("job_id", "stage", maintain_order=True).agg(
        pl.col("after_stages").drop_nulls().first(),
        pl.len().alias("tasks"),
        pl.col("cpus").max(),
        pl.col("memory_bytes").max(),
    )
    by_job: dict[str, list[Mapping[str, Any]]] = {}
    for row in stages.iter_rows(named=True):
        by_job.setdefault(row["job_id"], []).append(row)
    return by_job


def _stages(rows: list[Mapping[str, Any]], request: Resources) -> Iterator[Stage]:
    """Stages as specified; what a task's row does not say is as the job requests it.

    Raises ``InputError`` if a stage waits for one that does not come before it in the table: so no
    two wait for each other.
    """
    earlier: set[str] = set()
    for row in rows:
        name = row["stage"] or ONLY_STAGE
        after = tuple(row["after_stages"].split(",")) if row["after_stages"] else ()
        if not earlier.issuperset(after):
            raise InputError(
                f"stage {name!r} of job {row['job_id']!r} waits for one that is not before it",
                field="after_stages",
                value=row["after_stages"],
                expected=", ".join(sorted(earlier)) or None,
            )
        earlier.add(name)
        cpus, memory = row["cpus"], row["memory_bytes"]
        yield Stage(
            tasks=row["tasks"],
            request=Resources(
                cpus=request.cpus if cpus is None else cpus,
                memory_bytes=request.memory_bytes if memory is None else memory,
                gpus=request.gpus,
            ),
            name=name,
            after=after,
            together=False,
        )


def _specification(
    row: tuple[Any, ...],
    features: tuple[str, ...],
    stages: list[Mapping[str, Any]] | None,
    known: frozenset[str],
    gangs: dict[tuple[Any, ...], tuple[Stage, ...]],
) -> Job:
    """The job of a row with the columns ``_SPECIFIED``; gangs of the same request are one."""
    job_id, submit, requested, user, group, queue, partition, name = row[:_SIZE]
    size = row[_SIZE:_MORE]
    after, deadline, value, preferred, slowdown = row[_MORE:_FEATURES]
    gang = gangs.get(size)
    if gang is None:
        tasks, cpus, memory, gpus = size
        request = Resources(cpus or 0.0, memory or 0.0, gpus or 0.0)
        gang = gangs[size] = (Stage(tasks, request),)
    attributes = _NO_ATTRIBUTES
    if features:
        values = zip(features, row[_FEATURES:], strict=True)
        attributes = MappingProxyType(
            {name: str(each) for name, each in values if each is not None}
        )
    return Job(
        job_id,
        submit,
        gang if stages is None else tuple(_stages(stages, gang[0].request)),
        requested,
        user,
        group,
        queue,
        partition,
        name,
        () if after is None else tuple(each for each in after.split(",") if each in known),
        None if deadline is None else DeadlineValue(deadline, 1.0 if value is None else value),
        attributes,
        None if preferred is None else Preference.parse(preferred, slowdown or 1.0),
    )


def jobs_table(data: Mapping[str, Any]) -> pl.DataFrame:
    """A jobs table from some of its columns; the others become null.

    ``job_id``, ``submit_seconds``, ``runtime_seconds`` and ``tasks`` are required; cpus per task
    defaults to 1. Rows are sorted by submission, stably. Further columns are kept as features.
    """
    given = pl.DataFrame(data)
    if "cpus_per_task" not in given.columns:
        given = given.with_columns(cpus_per_task=pl.lit(1.0))
    jobs = schema.canonical_jobs(given)
    is_sorted = jobs["submit_seconds"].is_sorted()
    return jobs if is_sorted else jobs.sort("submit_seconds", maintain_order=True)
