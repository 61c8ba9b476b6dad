"""What a campaign keeps of one replay: a flat record of metrics, and two samples of quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.jobs import per_job
from foresail.metrics.prediction import prediction_quality
from foresail.metrics.statistics import statistics
from foresail.metrics.usage import makespan_seconds, utilization
from foresail.predictors.regression import RegressionParameters
from foresail.traces.schedule import Schedule

QUANTILE_LEVELS: Final = tuple(float(level) for level in np.linspace(0.0, 1.0, 201))
"""Levels of the quantiles that are kept of prediction errors and predictions."""

EXTREME_SLOWDOWN: Final = 1000.0
_WORST_SHARE: Final = 0.001
_SMALLEST_WEIGHT: Final = RegressionParameters().smallest_weight


@dataclass(frozen=True, slots=True)
class Measured:
    """One policy on one log; predictions are those at submission, before any correction."""

    jobs: int
    processors: float

    jobs_digest: str
    """Digest of what was replayed, by any name: the processors, and each job's submission, cpus,
    runtime, request and user."""

    average_bounded_slowdown: float
    median_bounded_slowdown: float

    extreme_share: float
    """Share of the jobs with a bounded slowdown of ``EXTREME_SLOWDOWN`` or more."""
    worst_thousandth_share: float
    """Share of the sum of all bounded slowdowns that the worst 0.1 % of the jobs hold."""
    mean_wait_seconds: float
    median_wait_seconds: float
    p99_wait_seconds: float
    max_wait_seconds: float
    utilization: float
    makespan_seconds: float
    mean_absolute_error_seconds: float | None

    mean_e_loss: float | None
    """Mean of log10(cpus x runtime) times the squared over- or the linear under-prediction, the
    weight floored as in ``regression`` (spec section 6)."""
    under_predicted_share: float | None
    corrections: int

    delayed_heads: int | None
    """Passes in which the head's reservation moved later; None from the event engine."""
    replay_seconds: float | None

    error_quantiles: tuple[float, ...]
    prediction_quantiles: tuple[float, ...]
    """Of prediction - runtime and of predictions, in seconds, at ``QUANTILE_LEVELS``."""


def measure(schedule: Schedule) -> Measured:
    """All that a campaign keeps of a schedule with at least one job."""
    jobs = per_job(schedule)
    slowdown = jobs["bounded_slowdown"].to_numpy()
    wait = statistics(jobs["wait_seconds"])
    known = jobs.filter(pl.col("predicted_seconds").is_finite())
    quality = prediction_quality(jobs)
    predicted = known["predicted_seconds"].to_numpy()
    error = predicted - known["runtime_seconds"].to_numpy()
    area = (known["cpus"] * known["runtime_seconds"].clip(lower_bound=1.0)).to_numpy()
    heads = schedule.meta.counters.get("delayed_heads")
    return Measured(
        jobs=jobs.height,
        processors=schedule.meta.processors,
        jobs_digest=_digest(schedule),
        average_bounded_slowdown=float(slowdown.mean()),
        median_bounded_slowdown=float(np.median(slowdown)),
        extreme_share=float((slowdown >= EXTREME_SLOWDOWN).mean()),
        worst_thousandth_share=_share_of_worst(slowdown),
        mean_wait_seconds=wait.mean,
        median_wait_seconds=wait.median,
        p99_wait_seconds=wait.p99,
        max_wait_seconds=wait.max,
        utilization=utilization(schedule),
        makespan_seconds=makespan_seconds(schedule),
        mean_absolute_error_seconds=quality.mean_absolute_error_seconds if known.height else None,
        mean_e_loss=mean_e_loss(error, area) if known.height else None,
        under_predicted_share=quality.under_predicted if known.height else None,
        corrections=int(jobs["corrections"].fill_null(0).sum()),
        delayed_heads=None if heads is None else int(heads),
        replay_seconds=schedule.meta.replay_seconds,
        error_quantiles=_quantiles(error),
        prediction_quantiles=_quantiles(predicted),
    )


def mean_e_loss(error: NDArray[np.float64], area: NDArray[np.float64]) -> float:
    """Mean E-Loss of prediction errors (seconds) of jobs of an area (cpu-seconds), base 10."""
    weight = np.maximum(np.log10(area), _SMALLEST_WEIGHT)
    return float(np.mean(weight * np.where(error >= 0.0, error * error, -error)))


def _share_of_worst(slowdown: NDArray[np.float64]) -> float:
    worst = max(1, round(_WORST_SHARE * slowdown.size))
    return float(np.sort(slowdown)[-worst:].sum() / slowdown.sum())


def _quantiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    if not values.size:
        return ()
    return tuple(float(f"{value:.6g}") for value in np.quantile(values, QUANTILE_LEVELS))


def _digest(schedule: Schedule) -> str:
    jobs = schedule.jobs.sort("submit_seconds", "job_id").select(
        pl.col("submit_seconds") - pl.col("submit_seconds").min(),
        "cpus",
        "nominal_runtime_seconds",
        "requested_seconds",
        pl.col("user").rank("dense"),
    )
    digest = sha256(str(float(schedule.meta.processors)).encode())
    digest.update(jobs.cast(pl.Float64).to_numpy(order="c").tobytes())
    return digest.hexdigest()[:32]
