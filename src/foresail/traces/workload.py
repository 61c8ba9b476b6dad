"""Workload: jobs and their truth, in memory; what a trace becomes after loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.kernels import columns
from foresail.model.errors import InputError
from foresail.model.job import Job, Stage
from foresail.model.resources import Resources
from foresail.model.value import DeadlineValue
from foresail.traces import schema


@dataclass(frozen=True)
class WorkloadMeta:
    """What is known of a workload as a whole; stored as ``meta.json``.

    Parameters
    ----------
    source
        File name the jobs were read from, or the generator's name.
    reader
        Name of the reader or generator.
    processors
        Processors of the machine, where the source says so.
    origin_unix_seconds
        Unix time of second zero, where the source says so.
    time_zone
        Name of the zone, where the source says so.
    header
        Further header directives of the source, as text.
    repairs
        Rows that the reader repaired or dropped, counted by the name of the repair.
    filters
        Cleaning filters applied since, in order, each with the number of jobs it touched.
    sha256
        Digest of the source file.
    """

    source: str
    reader: str
    processors: int | None = None
    origin_unix_seconds: float | None = None
    time_zone: str | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    repairs: Mapping[str, int] = field(default_factory=dict)
    filters: tuple[tuple[str, int], ...] = ()
    sha256: str | None = None


@dataclass(frozen=True)
class Workload:
    """Jobs in order of submission, with their truth.

    Parameters
    ----------
    jobs
        Table with (at least) the columns of ``schema.JOBS``, sorted by submission (stable).
    nodes
        Table with the columns of ``schema.NODES``, where the source has one.
    tasks
        Table with the columns of ``schema.TASKS``, where the source knows tasks.
    usage
        Table with the columns of ``schema.USAGE``, where the source measured use over time.
    """

    jobs: pl.DataFrame
    meta: WorkloadMeta
    nodes: pl.DataFrame | None = None
    tasks: pl.DataFrame | None = None
    usage: pl.DataFrame | None = None

    def __len__(self) -> int:
        return self.jobs.height

    @property
    def processors(self) -> int:
        """Processors of the machine.

        Raises
        ------
        InputError
            If the source does not say.
        """
        if self.meta.processors is None:
            raise InputError(
                "the number of processors is unknown",
                source=self.meta.source,
                expected="a MaxProcs header or the option --processors",
            )
        return self.meta.processors

    def with_jobs(self, jobs: pl.DataFrame) -> Workload:
        """The same workload with another jobs table."""
        return replace(self, jobs=jobs)

    def with_meta(self, **changes: Any) -> Workload:
        """The same workload with some meta fields changed."""
        return replace(self, meta=replace(self.meta, **changes))

    @cached_property
    def cpus(self) -> NDArray[np.float64]:
        """Cpus each job holds: tasks x cpus per task."""
        return (self.jobs["tasks"] * self.jobs["cpus_per_task"]).to_numpy().astype(np.float64)

    @cached_property
    def runtime_seconds(self) -> NDArray[np.float64]:
        """The truth: real runtimes. Only simulators and oracles may ask."""
        return self.jobs["runtime_seconds"].to_numpy().astype(np.float64)

    @cached_property
    def specs(self) -> NDArray[np.float64]:
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
    def kinds(self) -> NDArray[np.int64]:
        """Codes from 0 on: jobs of one code have the same user and the same requested time."""
        same = pl.struct("user", "requested_seconds").rank("dense")
        return self.jobs.select(same.cast(pl.Int64) - 1).to_series().to_numpy(writable=True)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Columns beyond the canonical ones."""
        return tuple(name for name in self.jobs.columns if name not in schema.JOBS)

    def specifications(self) -> Iterator[Job]:
        """The jobs as schedulers and predictors may know them, in order of submission.

        Recorded submit times already hold what a job waited for, so ``after_job_id`` is not made a
        dependency again.
        """
        features = self.feature_names
        for row in self.jobs.iter_rows(named=True):
            yield _specification(row, features)

    def truth(self) -> dict[str, float]:
        """Real runtime by job id, for the simulator and for oracles."""
        return dict(zip(self.jobs["job_id"].to_list(), self.runtime_seconds.tolist(), strict=True))


def _codes(column: pl.Series) -> NDArray[np.float64]:
    """Codes in order of first appearance; -1 for null."""
    distinct = column.drop_nulls().unique(maintain_order=True)
    codes = pl.DataFrame({"name": distinct, "code": np.arange(distinct.len(), dtype=np.float64)})
    joined = (
        column.rename("name").to_frame().join(codes, on="name", how="left", maintain_order="left")
    )
    return joined["code"].fill_null(-1.0).to_numpy()


def _specification(row: Mapping[str, Any], features: tuple[str, ...]) -> Job:
    request = Resources(
        cpus=row["cpus_per_task"] or 0.0,
        memory_bytes=row["memory_bytes_per_task"] or 0.0,
        gpus=row["gpus_per_task"] or 0.0,
    )
    deadline = row["deadline_seconds"]
    attributes = {name: str(row[name]) for name in features if row[name] is not None}
    return Job(
        job_id=row["job_id"],
        submit_seconds=row["submit_seconds"],
        stages=(Stage(tasks=row["tasks"], request=request),),
        requested_seconds=row["requested_seconds"],
        user=row["user"],
        group=row["group"],
        queue=row["queue"],
        partition=row["partition"],
        name=row["executable"],
        value=None if deadline is None else DeadlineValue(deadline, row["value"] or 1.0),
        attributes=MappingProxyType(attributes),
    )


def jobs_table(data: Mapping[str, Any]) -> pl.DataFrame:
    """A jobs table from some of its columns; the others become null.

    ``job_id``, ``submit_seconds``, ``runtime_seconds`` and ``tasks`` are required; cpus per task
    defaults to 1. Rows are sorted by submission, stably. Further columns are kept as features.
    """
    given = pl.DataFrame(data)
    if "cpus_per_task" not in given.columns:
        given = given.with_columns(cpus_per_task=pl.lit(1.0))
    canonical = [
        (pl.col(name) if name in given.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.JOBS.items()
    ]
    features = [pl.col(name) for name in given.columns if name not in schema.JOBS]
    return given.select(canonical + features).sort("submit_seconds", maintain_order=True)
