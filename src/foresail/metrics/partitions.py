"""The metrics of each partition's jobs, where a machine is divided."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from foresail.metrics.jobs import attempts, per_job, went_back
from foresail.metrics.statistics import statistics
from foresail.metrics.usage import held_share, steady_window
from foresail.model.cluster import names_in
from foresail.traces import schema
from foresail.traces.schedule import Schedule


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """Metrics of the jobs that name one partition (or the same ones); NaN is unknown."""

    policy: str
    partition: str
    """Empty: of jobs that name none."""
    processors: float
    """Of all that the jobs may run on."""
    jobs: int
    never_started: int
    average_bounded_slowdown: float
    mean_wait_seconds: float
    p99_wait_seconds: float
    max_wait_seconds: float
    steady_utilization: float
    """Processor seconds that they used, as a share of those of these processors, over the steady
    window of the machine. Jobs that name others may have used the rest."""

    def as_json(self) -> dict[str, str | float]:
        """The record as a JSON object."""
        return dataclasses.asdict(self)


def partition_summaries(schedule: Schedule) -> list[PartitionSummary]:
    """One for each partition and each choice of several that jobs name; none of one pool."""
    sizes = schedule.meta.partitions
    if schema.PARTITION not in schedule.jobs.columns:
        return []
    jobs, used = per_job(schedule), attempts(schedule).filter(~went_back())
    window = steady_window(schedule)
    ids = _ids(schedule)
    found = []
    for text in sorted({*_known(sizes), *ids}, key=lambda text: (not text, "," in text, text)):
        processors = float(
            sum(sizes[each] for each in sizes if _known(sizes, each) & _known(sizes, text))
        )
        mine = pl.col("job_id").is_in(ids.get(text, pl.Series([], dtype=pl.String)).implode())
        those = jobs.filter(mine)
        machine = replace(schedule.meta, processors=processors, capacity=())
        waits = statistics(those["wait_seconds"])
        found.append(
            PartitionSummary(
                policy=schedule.meta.policy,
                partition=text,
                processors=processors,
                jobs=those.height,
                never_started=len(ids.get(text, ())) - those.height,
                average_bounded_slowdown=statistics(those["bounded_slowdown"]).mean,
                mean_wait_seconds=waits.mean,
                p99_wait_seconds=waits.p99,
                max_wait_seconds=waits.max,
                steady_utilization=held_share(machine, used.filter(mine), window),
            )
        )
    return found


def apart(schedule: Schedule) -> list[tuple[pl.Series, float]]:
    """Ids of jobs, and processors, of partitions that share nothing with others, not even a job.

    All are one where nodes come and go.
    """
    sizes = schedule.meta.partitions
    if schema.PARTITION not in schedule.jobs.columns or schedule.meta.capacity:
        return [(schedule.jobs["job_id"], schedule.meta.processors)]
    ids = _ids(schedule)
    groups: list[set[str]] = []
    for text in (*sizes, *ids):
        joined = _known(sizes, text)
        touching = [group for group in groups if group & joined]
        groups = [group for group in groups if not group & joined] + [joined.union(*touching)]
    return [
        (
            pl.concat(
                [pl.Series([], dtype=pl.String)]
                + [ids[text] for text in ids if _known(sizes, text) & group]
            ),
            float(sum(sizes[text] for text in sizes if _known(sizes, text) & group)),
        )
        for group in groups
    ]


def _ids(schedule: Schedule) -> dict[str, pl.Series]:
    """Ids of jobs by the partitions that they name."""
    rows = schedule.jobs.select("job_id", pl.col(schema.PARTITION).fill_null(""))
    by_text = rows.unique("job_id").partition_by(schema.PARTITION, as_dict=True)
    return {text: part["job_id"] for (text,), part in by_text.items()}


def _known(sizes: Mapping[str, float], text: str = "") -> set[str]:
    """The partitions that a text names; all of them if it names none that there is."""
    every = {name for each in sizes for name in names_in(each)}
    return every.intersection(names_in(text)) or every
