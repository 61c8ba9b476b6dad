"""A schedule in one flat record: the numbers of every table, JSON document and sentence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from foresail.metrics.comparison import held_up, paired
from foresail.metrics.deadlines import deadline_metrics
from foresail.metrics.fairness import fairness
from foresail.metrics.jobs import per_job
from foresail.metrics.prediction import prediction_quality
from foresail.metrics.statistics import statistics
from foresail.metrics.usage import makespan_seconds, steady_window, utilization
from foresail.traces.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Summary:
    """One schedule's metrics; a figure that the schedule does not give is NaN.

    Shares are of one. Names and definitions: ``foresail.metrics.jobs``, ``usage``, ``fairness``,
    ``prediction`` and ``deadlines``. The last four are against a baseline, where there is one, over
    the jobs that both have (``comparison.paired``): by which share of its average bounded slowdown
    this one is less, the longest wait as a multiple of the baseline's, and ``comparison.HeldUp``.
    """

    policy: str
    workload: str
    engine: str | None
    processors: float
    unit: str
    """What each of them is: a processor, or a gpu."""
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
    overtaken_jobs: int
    overtaken_share: float
    passed_over_jobs: int
    passed_over_share: float
    loss_of_capacity: float
    avoidable_idle_share: float
    predicted_jobs: int
    mean_absolute_error_seconds: float
    within_factor_two_share: float
    under_predicted_share: float
    interval_coverage: float
    corrections: int
    slo_jobs: int
    slo_missed: int
    slo_never_started: int
    slo_miss_rate: float
    accepted_slo_jobs: int
    slo_attainment: float
    accepted_slo_attainment: float
    unreserved_slo_attainment: float
    goodput_hours: float
    slo_goodput_hours: float
    slo_on_time_goodput_hours: float
    best_effort_goodput_hours: float
    best_effort_latency_seconds: float
    best_effort_completed: int
    effective_load: float
    preemptions: int
    lost_attempts: int
    lost_hours: float
    killed_jobs: int
    killed_hours: float
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
    jobs = per_job(schedule)
    quality = prediction_quality(jobs)
    replay_seconds = schedule.meta.replay_seconds
    return Summary(
        policy=schedule.meta.policy,
        workload=schedule.meta.workload,
        engine=schedule.meta.engine,
        processors=float(schedule.meta.processors),
        unit=schedule.meta.unit,
        jobs=jobs.height,
        never_started=int(schedule.jobs["start_seconds"].is_null().sum()),
        **_spread(jobs, "bounded_slowdown", mean="average"),
        **_spread(jobs, "wait_seconds"),
        waited_share=_share(jobs["wait_seconds"] > 0),
        **_spread(jobs, "eligible_wait_seconds"),
        **_spread(jobs, "flow_seconds"),
        utilization=utilization(schedule),
        steady_utilization=utilization(schedule, steady_window(schedule)),
        makespan_seconds=makespan_seconds(schedule) if jobs.height else math.nan,
        backfilled_share=_share(jobs["backfilled"].drop_nulls()),
        **dataclasses.asdict(fairness(schedule)),
        predicted_jobs=quality.predicted_jobs,
        mean_absolute_error_seconds=quality.mean_absolute_error_seconds,
        within_factor_two_share=quality.within_factor_two,
        under_predicted_share=quality.under_predicted,
        interval_coverage=quality.covered,
        corrections=int(jobs["corrections"].fill_null(0).sum()),
        **dataclasses.asdict(deadline_metrics(schedule)),
        replay_seconds=math.nan if replay_seconds is None else replay_seconds,
    )


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
