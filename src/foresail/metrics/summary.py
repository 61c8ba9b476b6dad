"""Summary of a schedule: all that tables show, with deadlines, fairness, and partitions apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.comparison import held_up, paired
from foresail.metrics.jobs import attempts, per_job, prediction_quality, requeued, whole_jobs
from foresail.metrics.kernels.occupancy import sweep_queue
from foresail.metrics.statistics import statistics
from foresail.metrics.usage import (
    Span,
    capacity_steps,
    cpu_seconds_there,
    held_share,
    makespan_seconds,
    span,
    steady_window,
    utilization,
)
from foresail.model.cluster import names_in
from foresail.model.event import EndedBecause
from foresail.traces import schema
from foresail.traces.schedule import Schedule


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """Metrics of the jobs that name one partition (or the same ones); NaN is unknown."""

    policy: str
    partition: str
    """Name; empty for jobs that name none."""
    processors: float
    """Processors that the jobs may run on."""
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
    jobs, used = per_job(schedule), attempts(schedule).filter(~requeued())
    window = steady_window(schedule)
    ids = _ids_by_partition(schedule)
    found = []
    for text in sorted(
        {*_named_or_all(sizes), *ids}, key=lambda text: (not text, "," in text, text)
    ):
        named = _named_or_all(sizes, text)
        shared = [each for each in sizes if _named_or_all(sizes, each) & named]
        processors = float(sum(sizes[each] for each in shared))
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
    ids = _ids_by_partition(schedule)
    groups: list[set[str]] = []
    for text in (*sizes, *ids):
        joined = _named_or_all(sizes, text)
        touching = [group for group in groups if group & joined]
        groups = [group for group in groups if not group & joined] + [joined.union(*touching)]
    return [
        (
            pl.concat(
                [pl.Series([], dtype=pl.String)]
                + [ids[text] for text in ids if _named_or_all(sizes, text) & group]
            ),
            float(sum(sizes[text] for text in sizes if _named_or_all(sizes, text) & group)),
        )
        for group in groups
    ]


def _ids_by_partition(schedule: Schedule) -> dict[str, pl.Series]:
    """Ids of jobs by the partitions that they name."""
    rows = schedule.jobs.select("job_id", pl.col(schema.PARTITION).fill_null(""))
    by_text = rows.unique("job_id").partition_by(schema.PARTITION, as_dict=True)
    return {text: part["job_id"] for (text,), part in by_text.items()}


def _named_or_all(sizes: Mapping[str, float], text: str = "") -> set[str]:
    """The partitions that a text names; all of them if it names none that there is."""
    every = {name for each in sizes for name in names_in(each)}
    return every.intersection(names_in(text)) or every


_HOUR: Final = 3600.0


@dataclass(frozen=True)
class DeadlineMetrics:
    """Results of jobs with deadlines (SLO jobs) and the others (best-effort) of a schedule.

    Goodput is the work of jobs that have completed, in cpu hours
    of their nominal runtimes, so that a job does not count for more where it runs slowly; these are
    the machine hours of the published studies where a node has one cpu.
    """

    slo_jobs: int
    slo_missed: int
    slo_never_started: int
    """Jobs with a deadline; those not completed by it, for any reason; of these, never run ones."""
    slo_miss_rate: float
    """Share of one; NaN where no job has a deadline."""
    accepted_slo_jobs: int
    """SLO jobs that were promised nodes at submission."""
    slo_attainment: float
    accepted_slo_attainment: float
    unreserved_slo_attainment: float
    """Shares of SLO jobs that completed by their deadline: of all; of those that were promised
    nodes; of those refused that. NaN where there are none (as of TetriSched, EuroSys 2016,
    section 6)."""
    goodput_hours: float
    slo_goodput_hours: float
    slo_on_time_goodput_hours: float
    best_effort_goodput_hours: float
    """Hours of all jobs; of those with deadlines; of those that met theirs; of the others."""
    best_effort_latency_seconds: float
    """Mean time from submission to the end of best-effort jobs that have completed; NaN without."""
    best_effort_completed: int
    """Number of these."""
    effective_load: float
    """Cpu time that attempts held between the first and the last submission, lost ones and slow
    ones too, as a share of what there was; NaN where all jobs come at once."""
    preemptions: int
    lost_attempts: int
    """Attempts that were stopped for other jobs; that ended with a node."""
    lost_hours: float
    """Cpu hours that these held: work that was done for nothing."""
    killed_jobs: int
    killed_hours: float
    """Jobs that were ended at their requested time, unfinished, and the cpu hours that they held;
    these count as used, and are no goodput."""


def deadline_metrics(schedule: Schedule) -> DeadlineMetrics:
    """The metrics of one schedule."""
    rows = whole_jobs(schedule)
    slo = pl.col("deadline_seconds").is_not_null()
    done = rows.filter(pl.col("ended_because") == EndedBecause.COMPLETED.value)
    on_time = done.filter(pl.col("end_seconds") <= pl.col("deadline_seconds"))
    slo_jobs = _jobs(rows.filter(slo))
    missed = slo_jobs - _jobs(on_time)
    accepted, rejected = (rows.filter(slo, accepted=answer) for answer in (True, False))
    best_effort = done.filter(~slo)
    killed = schedule.jobs.filter(pl.col("ended_because") == EndedBecause.LIMIT.value)
    latency = (best_effort["end_seconds"] - best_effort["submit_seconds"]).to_numpy()
    return DeadlineMetrics(
        slo_jobs=slo_jobs,
        slo_missed=missed,
        slo_never_started=_jobs(rows.filter(slo & pl.col("start_seconds").is_null())),
        slo_miss_rate=missed / slo_jobs if slo_jobs else math.nan,
        accepted_slo_jobs=_jobs(accepted),
        slo_attainment=_attainment(on_time, rows.filter(slo)),
        accepted_slo_attainment=_attainment(on_time.filter(accepted=True), accepted),
        unreserved_slo_attainment=_attainment(on_time.filter(accepted=False), rejected),
        goodput_hours=_hours(done),
        slo_goodput_hours=_hours(done.filter(slo)),
        slo_on_time_goodput_hours=_hours(on_time),
        best_effort_goodput_hours=_hours(best_effort),
        best_effort_latency_seconds=float(latency.mean()) if latency.size else math.nan,
        best_effort_completed=best_effort.height,
        effective_load=effective_load(schedule),
        preemptions=_ended(schedule.jobs, EndedBecause.PREEMPTED),
        lost_attempts=_ended(schedule.jobs, EndedBecause.LOST),
        lost_hours=_held_hours(schedule.jobs.filter(requeued())),
        killed_jobs=_jobs(killed),
        killed_hours=_held_hours(killed),
    )


def effective_load(schedule: Schedule) -> float:
    """Cpu time held between the first and the last submission, as a share of what there was.

    Unlike ``usage.utilization`` it counts what was lost, and all submissions, also of jobs that
    never started.
    """
    submitted = schedule.jobs["submit_seconds"].to_numpy()
    begin, end = (submitted.min(), submitted.max()) if submitted.size else (0.0, 0.0)
    return held_share(schedule.meta, attempts(schedule), Span(float(begin), float(end)))


def _jobs(rows: pl.DataFrame) -> int:
    return rows["job_id"].n_unique()


def _attainment(on_time: pl.DataFrame, rows: pl.DataFrame) -> float:
    jobs = _jobs(rows)
    return _jobs(on_time) / jobs if jobs else math.nan


def _held_hours(rows: pl.DataFrame) -> float:
    held = pl.col("cpus") * (pl.col("end_seconds") - pl.col("start_seconds"))
    return float(rows.select(held.sum()).item()) / _HOUR


def _hours(rows: pl.DataFrame) -> float:
    """Cpu hours of nominal runtimes; of real ones where these are all that is known."""
    real = pl.col("end_seconds") - pl.col("start_seconds")
    runtime = pl.coalesce("nominal_runtime_seconds", real)
    return float(rows.select((pl.col("cpus") * runtime).sum()).item()) / _HOUR


def _ended(rows: pl.DataFrame, because: EndedBecause) -> int:
    return rows.filter(pl.col("ended_because") == because.value).height


@dataclass(frozen=True)
class Fairness:
    """Treatment of jobs in relation to each other, read off the schedule alone."""

    overtaken_jobs: int
    overtaken_share: float
    """Jobs before which a job submitted later started."""
    passed_over_jobs: int
    passed_over_share: float
    """Jobs among them that, at the very instant a later job started, would have fitted into the
    processors that were free: they could have had that job's place. (A policy may have had a good
    reason, such as a reservation that the job would have delayed. The definition asks for nothing
    but the schedule; a fair start time in the sense of Sabin and Sadayappan would ask for another
    simulation of the same policy for each job.)"""
    loss_of_capacity: float
    """Cpu seconds free while at least one eligible job waited, as a share of those that there were
    over the makespan
    (Zhang, Franke, Moreira and Sivasubramaniam, IPDPS 2000)."""
    avoidable_idle_share: float
    """The part of it in which some waiting job would have fitted."""


def overtaken(start: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether any later job started before each; start times in order of submission."""
    earliest_later = np.full(start.size, np.inf)
    earliest_later[:-1] = np.minimum.accumulate(start[::-1])[::-1][1:]
    return earliest_later < start


def fairness(schedule: Schedule) -> Fairness:
    """Overtaking and loss of capacity of a schedule; shares are NaN where there are no jobs.

    Jobs of partitions that share nothing overtake none of each other, nor can have what is idle
    there.
    """
    rows = attempts(schedule)
    if not rows.height:
        return Fairness(0, math.nan, 0, math.nan, math.nan, math.nan)
    rows = rows.with_columns(first=pl.col("attempt").fill_null(1) <= 1)
    jobs = int(rows["first"].sum())
    overtakings = passings = 0
    idle_while_waiting = idle_while_fitting = 0.0
    groups = apart(schedule)
    for job_ids, processors in groups:
        mine = rows
        if len(groups) > 1:
            mine = rows.filter(pl.col("job_id").is_in(job_ids.implode()))
        spans = mine.select("queued_seconds", "start_seconds", "end_seconds", "cpus")
        swept = spans.to_numpy(writable=True).T
        first = mine["first"].to_numpy(writable=True)
        since, _, there = capacity_steps(replace(schedule.meta, processors=processors))
        passed_over, waiting, fitting = sweep_queue(swept, first, since, there)
        overtakings += int(overtaken(swept[1, first]).sum())
        passings += int(passed_over.sum())
        idle_while_waiting += waiting
        idle_while_fitting += fitting
    window = span([schedule])
    offered = cpu_seconds_there(schedule.meta, window.begin_seconds, window.end_seconds)
    return Fairness(
        overtaken_jobs=overtakings,
        overtaken_share=overtakings / jobs,
        passed_over_jobs=passings,
        passed_over_share=passings / jobs,
        loss_of_capacity=idle_while_waiting / offered if offered > 0 else math.nan,
        avoidable_idle_share=idle_while_fitting / offered if offered > 0 else math.nan,
    )


@dataclass(frozen=True)
class _WaitMetrics:
    """Waits of the jobs of a schedule (``foresail.metrics.jobs``, ``usage``)."""

    policy: str
    workload: str
    engine: str | None
    processors: float
    unit: str
    """Unit of what each of them is: a processor, or a gpu."""
    jobs: int
    never_started: int
    average_bounded_slowdown: float
    median_bounded_slowdown: float
    p90_bounded_slowdown: float
    p99_bounded_slowdown: float
    max_bounded_slowdown: float
    mean_wait_seconds: float
    median_wait_seconds: float
    p90_wait_seconds: float
    p99_wait_seconds: float
    max_wait_seconds: float
    waited_share: float
    mean_eligible_wait_seconds: float
    median_eligible_wait_seconds: float
    p90_eligible_wait_seconds: float
    p99_eligible_wait_seconds: float
    max_eligible_wait_seconds: float
    mean_flow_seconds: float
    median_flow_seconds: float
    p90_flow_seconds: float
    p99_flow_seconds: float
    max_flow_seconds: float
    utilization: float
    steady_utilization: float
    makespan_seconds: float
    backfilled_share: float


@dataclass(frozen=True)
class _Predictions:
    """Quality of predictions, as ``jobs.PredictionQuality`` has it."""

    predicted_jobs: int
    mean_absolute_error_seconds: float
    within_factor_two_share: float
    under_predicted_share: float
    interval_coverage: float
    corrections: int


@dataclass(frozen=True)
class Summary(DeadlineMetrics, _Predictions, Fairness, _WaitMetrics):
    """One schedule's metrics, the last base's first; what the schedule does not give is NaN.

    Shares are of one. The last four are against a baseline, where there is one, over
    the jobs that both have (``comparison.paired``): by which share of its average bounded slowdown
    this one is less, the longest wait as a multiple of the baseline's, and ``comparison.HeldUp``.
    """

    replay_seconds: float
    slowdown_saved_share: float = math.nan
    longest_wait_ratio: float = math.nan
    held_up_share: float = math.nan
    held_up_mean_seconds: float = math.nan

    def as_json(self) -> dict[str, str | int | float | None]:
        """The record as a JSON object: same keys, null for what is unknown."""
        return {field.name: _known(getattr(self, field.name)) for field in dataclasses.fields(self)}


def summary(schedule: Schedule) -> Summary:
    """All metrics of one schedule."""
    of_jobs = _of_jobs(schedule)  # whose table goes before attempts are looked at
    replay_seconds = schedule.meta.replay_seconds
    return Summary(
        policy=schedule.meta.policy,
        workload=schedule.meta.workload,
        engine=schedule.meta.engine,
        processors=float(schedule.meta.processors),
        unit=schedule.meta.unit,
        never_started=int(schedule.jobs["start_seconds"].is_null().sum()),
        **of_jobs,
        utilization=utilization(schedule),
        steady_utilization=utilization(schedule, steady_window(schedule)),
        makespan_seconds=makespan_seconds(schedule) if of_jobs["jobs"] else math.nan,
        **dataclasses.asdict(fairness(schedule)),
        **dataclasses.asdict(deadline_metrics(schedule)),
        replay_seconds=math.nan if replay_seconds is None else replay_seconds,
    )


def _of_jobs(schedule: Schedule) -> dict[str, Any]:
    """Fields of the summary that are of what each job experienced."""
    jobs = per_job(schedule)
    quality = prediction_quality(jobs)
    return {
        "jobs": jobs.height,
        **_spread(jobs, "bounded_slowdown", mean="average"),
        **_spread(jobs, "wait_seconds"),
        "waited_share": _share(jobs["wait_seconds"] > 0),
        **_spread(jobs, "eligible_wait_seconds"),
        **_spread(jobs, "flow_seconds"),
        "backfilled_share": _share(jobs["backfilled"].drop_nulls()),
        "predicted_jobs": quality.predicted_jobs,
        "mean_absolute_error_seconds": quality.mean_absolute_error_seconds,
        "within_factor_two_share": quality.within_factor_two,
        "under_predicted_share": quality.under_predicted,
        "interval_coverage": quality.covered,
        "corrections": int(jobs["corrections"].fill_null(0).sum()),
    }


def summaries(schedules: Sequence[Schedule]) -> list[Summary]:
    """All metrics of schedules of one workload; the first is the baseline of the others."""
    every = [summary(schedule) for schedule in schedules]
    if not every or not every[0].jobs:
        return every
    baseline = every[0]
    return [
        baseline,
        *(
            _against(paired(schedules[0], schedule), each)
            for schedule, each in zip(schedules[1:], every[1:], strict=True)
        ),
    ]


def _against(pairs: pl.DataFrame, other: Summary) -> Summary:
    if not pairs.height:
        return other
    before, after = (
        pairs.select(
            slowdown=pl.col(f"bounded_slowdown{suffix}").mean(),
            longest=pl.col(f"wait_seconds{suffix}").max(),
        ).row(0, named=True)
        for suffix in ("", "_other")
    )
    found = held_up(pairs)
    return dataclasses.replace(
        other,
        slowdown_saved_share=1.0 - after["slowdown"] / before["slowdown"],
        longest_wait_ratio=(
            after["longest"] / before["longest"] if before["longest"] > 0.0 else math.nan
        ),
        held_up_share=found.share,
        held_up_mean_seconds=found.mean_seconds,
    )


def _spread(jobs: pl.DataFrame, column: str, mean: str = "mean") -> dict[str, Any]:
    """The statistics of a column as fields of the summary, the mean by this name."""
    found = dataclasses.asdict(statistics(jobs[column]))
    return {f"{mean if name == 'mean' else name}_{column}": found[name] for name in found}


def _share(flags: pl.Series) -> float:
    return int(flags.sum()) / flags.len() if flags.len() else math.nan


def _known(value: str | float | None) -> str | int | float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
