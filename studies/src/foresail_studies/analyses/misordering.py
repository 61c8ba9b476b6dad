"""Jobs that history and sampling put in the wrong order (SLearn, section 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.analysis.finding import Answer, Plot, study_with_parameters
from foresail.model.errors import InputError, require_each_at_least
from foresail.model.registry import register
from foresail.traces.workload import Workload

MISORDERED_BY_HISTORY: Final = 0.5
"""History's estimate of both jobs is ``mu``: their order is a coin toss."""


def samples_to_win(job_deviation: float, task_deviation: float) -> float:
    """Sampling errs less than history with more samples than this: s1 ** 2 / s0 ** 2."""
    return math.inf if job_deviation == 0.0 else (task_deviation / job_deviation) ** 2


def misordered_by_sampling(job_deviation: float, task_deviation: float, samples: int) -> float:
    """Probability that the mean of so many samples lies on the wrong side of the first job's size.

    The true mean and the error of the samples' mean are independent Gaussians, so that the angle
    between them is uniform: arccos(s0 / sqrt(s0 ** 2 + s1 ** 2 / m)) / pi. It is 0 where the jobs
    do not differ at all.
    """
    return math.atan2(task_deviation / math.sqrt(samples), job_deviation) / math.pi


_MODEL: Final = "sampling, Gaussian model"
_OBSERVED: Final = "sampling, this log"
_HISTORY: Final = "history"


@dataclass(frozen=True, slots=True)
class MisorderingParameters:
    """Parameters of the analysis ``misordering``."""

    features: tuple[str, ...] = ("application_name", "executable", "user")
    """The first of these text columns that the jobs have makes jobs similar; history knows the mean
    of similar jobs."""
    samples: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
    """Numbers of sampled tasks."""

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("no features", field="features", expected="at least one")
        require_each_at_least(self, 1, "samples")


@register("analysis", "misordering", parameters=MisorderingParameters)
@study_with_parameters("Jobs put in the wrong order by history and by sampling")
def misordering(parameters: MisorderingParameters, workload: Workload) -> Answer | str:
    """Measure how often a job falls on the wrong side of its group's mean after m sampled tasks.

    The Gaussian two-job model with deviations fitted to the log, beside what sampling tasks of the
    log really does: fitted deviations, and the probability of a wrong order by number of sampled
    tasks. History always says the group's mean and so is right half of the time.
    """
    if workload.tasks is None:
        return "there is no tasks table"
    jobs = workload.jobs
    feature = next(
        (f for f in parameters.features if f in jobs and jobs[f].null_count() < len(jobs)), None
    )
    if feature is None:
        wanted = ", ".join(parameters.features)
        return f"no job has any of the features {wanted}"
    tasks = _scaled_tasks(workload.tasks, jobs, feature)
    if not tasks.height:
        return f"no {feature} has two jobs of two tasks or more with known runtimes"
    return _finding(tasks, feature, parameters.samples)


def _scaled_tasks(tasks: pl.DataFrame, jobs: pl.DataFrame, feature: str) -> pl.DataFrame:
    """Tasks of jobs with two or more, in groups of two jobs or more.

    Columns ``job_id``, ``group``, ``runtime`` as a multiple of the group's mean (the mean over its
    jobs of their mean task), ``job_mean`` likewise.
    """
    mean_of_job = pl.col("runtime").mean().over("job_id")
    first_of_job = pl.int_range(pl.len()).over("job_id") == 0
    return (
        tasks.lazy()
        .filter(pl.col("runtime_seconds").is_finite())
        .select("job_id", runtime="runtime_seconds")
        .filter(pl.len().over("job_id") >= 2)
        .join(
            jobs.lazy().select("job_id", group=pl.col(feature).cast(pl.String)),
            on="job_id",
            how="inner",
            maintain_order="left",
        )
        .filter(pl.col("group").is_not_null())
        .with_columns(job_mean=mean_of_job, first=first_of_job)
        .filter(pl.col("first").sum().over("group") >= 2)
        .with_columns(scale=pl.col("job_mean").filter(pl.col("first")).mean().over("group"))
        .filter(pl.col("scale") > 0)
        .select(
            "job_id",
            "group",
            pl.col("runtime") / pl.col("scale"),
            pl.col("job_mean") / pl.col("scale"),
        )
        .collect()
    )


def _deviations(tasks: pl.DataFrame) -> tuple[float, float]:
    """Job-wise and task-wise deviation: the analysis of variance of random effects, pooled.

    The variance of the jobs' means holds the error of those means, which is taken off.
    """
    jobs = tasks.group_by("job_id", maintain_order=True).agg(
        pl.col("group").first(),
        pl.col("job_mean").first(),
        count=pl.len(),
        squares=((pl.col("runtime") - pl.col("job_mean")) ** 2).sum(),
    )
    count = jobs["count"].to_numpy()
    task_variance = float(jobs["squares"].to_numpy().sum() / (count - 1).sum())
    apart = float(((jobs["job_mean"] - 1.0) ** 2).to_numpy().sum())
    between = apart / (jobs.height - jobs["group"].n_unique())
    job_variance = max(0.0, between - task_variance * float((1.0 / count).mean()))
    return math.sqrt(job_variance), math.sqrt(task_variance)


def _observed(tasks: pl.DataFrame, samples: tuple[int, ...]) -> dict[int, float]:
    """Share of jobs whose first m tasks, in random order, lie on the wrong side of the mean.

    Only jobs with more than m tasks count; numbers of tasks that no job exceeds are absent.
    """
    random = np.random.default_rng(1).random(tasks.height)
    ordered = tasks.with_columns(at=pl.Series(random)).sort("job_id", "at")
    drawn = pl.int_range(1, pl.len() + 1).over("job_id")
    running = ordered.with_columns(
        drawn=drawn, total=pl.col("runtime").cum_sum().over("job_id"), tasks=pl.len().over("job_id")
    )
    wrong = ((pl.col("total") / pl.col("drawn")) > 1.0) != (pl.col("job_mean") > 1.0)
    shares = (
        running.filter(pl.col("drawn").is_in(samples) & (pl.col("drawn") < pl.col("tasks")))
        .group_by("drawn")
        .agg(wrong.mean())
        .rows()
    )
    return dict(shares)


def _finding(tasks: pl.DataFrame, feature: str, asked: tuple[int, ...]) -> Answer:
    job_deviation, task_deviation = _deviations(tasks)
    samples = tuple(sorted(set(asked)))
    model = {m: misordered_by_sampling(job_deviation, task_deviation, m) for m in samples}
    observed = _observed(tasks, samples)
    history = dict.fromkeys(samples, MISORDERED_BY_HISTORY)
    rows = [
        (m, said, share)
        for said, shares in ((_HISTORY, history), (_MODEL, model), (_OBSERVED, observed))
        for m, share in sorted(shares.items())
    ]
    needed = samples_to_win(job_deviation, task_deviation)
    scalars = {
        "jobs": float(tasks["job_id"].n_unique()),
        "groups": float(tasks["group"].n_unique()),
        "job_deviation": job_deviation,
        "task_deviation": task_deviation,
        "samples_to_win": needed,
        **{f"misordered_after_{m}_model": share for m, share in model.items()},
        **{f"misordered_after_{m}_observed": share for m, share in sorted(observed.items())},
    }
    wins = "history is not beaten by any number of samples"
    if math.isfinite(needed):
        fewest = math.floor(needed) + 1
        wins = f"sampling errs less than history from {fewest} task{'s' * (fewest > 1)} on"
    least = samples[0]
    verdict = (
        f"Jobs of one {feature} differ by {job_deviation:.2f} of their mean and tasks of one job "
        f"by {task_deviation:.2f}: {wins}."
    )
    if least in observed:
        verdict += (
            f" After {least} sampled the order is wrong for {observed[least]:.0%} of the jobs "
            f"(model {model[least]:.0%}, history {MISORDERED_BY_HISTORY:.0%})."
        )
    table = pl.DataFrame(rows, ["samples", "estimate", "misordered"], orient="row")
    plot = Plot(
        *("line", "misordering", "samples", "misordered"),
        *("sampled tasks", "share of jobs in the wrong order", verdict),
        series="estimate",
        y_kind="share",
        log_x=True,
    )
    notes = (
        f"Jobs are similar if they share their {feature}; runtimes are multiples of the group's "
        "mean. Groups of one job and jobs of one task are left out.",
        "The model takes runtimes for Gaussian; what is observed draws real tasks, without "
        "replacement, of jobs that have more than were drawn.",
    )
    return Answer(verdict, scalars, {"misordering": table}, (plot,), notes)
