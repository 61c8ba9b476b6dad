"""Tasks of a usage table that were sampled at all (CPU volatility, 3.3 and figure 3.1)."""

from __future__ import annotations

from typing import Final

import polars as pl

from foresail.analysis.finding import Answer, Plot, study
from foresail.analysis.volatility import partly_sampled_jobs, periods_of, sampling_per_task
from foresail.model.registry import register
from foresail.traces.workload import Workload

_FEW: Final = (1, 2, 3, 4)
_MOST_POINTS: Final = 4000
_MOST_VIOLATORS: Final = 1000


@register("analysis", "usage_sampling")
@study("Missing samples of cpu use")
def usage_sampling(workload: Workload) -> Answer | str:
    """Are samples of 0 bursts, or missing measurement? The mean sample against the mean per task.

    Bursty tasks would leave many tasks with a few samples other than 0; missing measurement leaves
    whole jobs without any. Counts of tasks by their samples, the scatter, and jobs that were
    sampled in part.
    """
    periods = periods_of(workload)
    if not periods.height:
        return "there is no usage table"
    if not periods["sampled"].count():
        return "no period has a sampled second"
    per_task = sampling_per_task(periods)
    violators = partly_sampled_jobs(per_task)
    not_zero = per_task["samples_not_zero"]
    jobs = per_task.group_by("job_id").agg(pl.col("samples_not_zero").sum())
    unsampled = int((jobs["samples_not_zero"] == 0).sum())
    scalars = {
        "tasks": float(per_task.height),
        "jobs": float(jobs.height),
        "jobs_never_sampled": float(unsampled),
        "tasks_with_mean_sample_0": float((not_zero == 0).sum()),
        **{f"tasks_with_{few}_samples_not_0": float((not_zero == few).sum()) for few in _FEW},
        "median_samples_per_task": float(per_task.select(pl.col("samples").median()).item()),
        "jobs_sampled_in_part": float(violators.height),
    }
    verdict = (
        f"{unsampled} of {jobs.height} jobs have no sample other than 0; "
        f"{violators.height} jobs were sampled in some of their working tasks only."
    )
    step = -(-per_task.height // _MOST_POINTS)
    scatter = per_task.gather_every(step).select("job_id", "task", "averaged_mean", "sampled_mean")
    plot = Plot(
        "points",
        "tasks",
        "averaged_mean",
        "sampled_mean",
        "mean over the periods, cores",
        "mean sample, cores",
        verdict,
    )
    tables = {"tasks": scatter, "sampled_in_part": violators.head(_MOST_VIOLATORS)}
    notes = ["A sample of 0 and no sample are the same here."]
    if step > 1:
        notes.append(f"Every {step}th task is drawn; all are counted.")
    return Answer(verdict, scalars, tables, (plot,), tuple(notes))
