"""The numbers that say how good an evaluated predictor is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from foresail.analysis.prediction_errors import ErrorShares, error_shares, percentage_errors
from foresail.evaluation.replaying import LEVELS, QUANTILES, Evaluation
from foresail.evaluation.tables import STATED
from foresail.metrics.comparison import Interval, interval_of
from foresail.metrics.statistics import drawn_blocks, time_blocks
from foresail.model.distribution import Floats, Integers

PINBALL_LEVELS: Final[Mapping[str, float]] = MappingProxyType(
    dict(zip(QUANTILES, LEVELS, strict=True))
)

_REPLICATES: Final = 1000
_SEED: Final = 0


@dataclass(frozen=True)
class Scores:
    """Scores of a predictor; NaN where a number is not defined."""

    source: str
    predictor: str
    quantity: str
    unit: str
    learning: str

    jobs: int
    unknown_jobs: int
    unpredicted_jobs: int
    """Jobs without a prediction, as ``Evaluation`` counts them."""
    errors: ErrorShares
    """Shares of the predicted means that were how far off."""
    within_factor_two: Interval
    """Their share between half and double the truth, with its interval."""
    nmae: Interval
    """Sum of the absolute errors over the sum of the truths."""
    within_factor_two_of_median: Interval
    nmae_of_median: Interval
    """The same two for the median of each belief as the estimate instead of its mean."""
    mean_absolute_error: float
    """Mean absolute error, in the quantity's unit."""
    median_percentage_error: float
    p90_percentage_error: float
    """Quantiles of the absolute error in per cent of the truth."""
    crps: float
    relative_crps: Interval
    """Mean CRPS, in the quantity's unit and over the mean truth."""
    pinball: Mapping[str, float]
    """Mean pinball loss by quantile (``q025`` to ``q975``), in the quantity's unit."""
    ranges: int
    """Jobs whose 80 % interval is wider than nothing: none for a predictor of single numbers."""
    coverage: Mapping[int, Interval]
    """Share of the truths inside, ends included, with its interval, by stated per cent."""
    width: Mapping[int, float]
    """Median width of the interval over the median prediction, by stated per cent."""
    mean_seconds: float
    median_seconds: float
    p999_seconds: float
    state_bytes: int | None
    bytes_per_job: int | None
    """Cost of predictions, as ``Cost`` has it."""
    blocks: int
    block_seconds: float
    """Blocks of submission time that the intervals were drawn from; 0 where there are too few."""

    def as_json(self) -> dict[str, Any]:
        """Nested values for JSON, null for what is unknown."""
        return {each.name: _plain(getattr(self, each.name)) for each in dataclasses.fields(self)}

    def as_row(self) -> dict[str, Any]:
        """The same as one flat row: ``within_factor_two``, ``within_factor_two_low``, ..."""
        return dict(_flat("", self.as_json()))


def scores(evaluation: Evaluation) -> Scores:
    """All scores of an evaluation.

    Intervals are 95 % ranges over 1,000 draws of weeks of submission (of days where there are fewer
    than five weeks, unknown where there are fewer than five days).
    """
    jobs = evaluation.jobs
    actual, predicted, crps = (_array(jobs, name) for name in ("actual", "predicted", "crps"))
    median = _array(jobs, "q50")
    error = np.abs(predicted - actual)
    relative = np.abs(percentage_errors(predicted[actual > 0], actual[actual > 0]))
    shares = error_shares(predicted, actual)
    block_seconds, block = (
        time_blocks(_array(jobs, "submit_seconds")) if jobs.height else (0.0, _NO)
    )
    count = int(block.max()) + 1 if block_seconds else 0
    draws = drawn_blocks(count, _REPLICATES, _SEED)

    def ratio(above: Floats, below: Floats) -> Interval:
        return _ratio(above, below, block, draws)

    each = np.ones(jobs.height)
    cost = evaluation.cost
    return Scores(
        source=evaluation.source,
        predictor=evaluation.predictor,
        quantity=evaluation.quantity,
        unit=evaluation.unit,
        learning=evaluation.learning,
        jobs=jobs.height,
        unknown_jobs=evaluation.unknown_jobs,
        unpredicted_jobs=evaluation.unpredicted_jobs,
        errors=shares,
        within_factor_two=ratio(*_within_factor_two(predicted, actual)),
        nmae=ratio(error, actual),
        within_factor_two_of_median=ratio(*_within_factor_two(median, actual)),
        nmae_of_median=ratio(np.abs(median - actual), actual),
        mean_absolute_error=_mean(error),
        median_percentage_error=_quantile(relative, 0.5),
        p90_percentage_error=_quantile(relative, 0.9),
        crps=_mean(crps),
        relative_crps=ratio(crps, actual),
        pinball={name: _mean(pinball(jobs, name)) for name in PINBALL_LEVELS},
        ranges=int((jobs["q10"] < jobs["q90"]).sum()),
        coverage={
            stated: ratio(_inside(jobs, low, high), each) for stated, (low, high) in STATED.items()
        },
        width={stated: _width(jobs, low, high) for stated, (low, high) in STATED.items()},
        mean_seconds=cost.mean_seconds,
        median_seconds=cost.median_seconds,
        p999_seconds=cost.p999_seconds,
        state_bytes=cost.state_bytes,
        bytes_per_job=cost.bytes_per_job,
        blocks=count,
        block_seconds=block_seconds,
    )


def pinball(jobs: pl.DataFrame, quantile: str) -> Floats:
    """Pinball loss of a stated quantile (a name of ``PINBALL_LEVELS``) for each job.

    level x (truth - quantile) where the truth is above it, else (1 - level) x (quantile - truth).
    """
    level = PINBALL_LEVELS[quantile]
    above = _array(jobs, "actual") - _array(jobs, quantile)
    return np.maximum(level * above, (level - 1.0) * above)


def as_table(scored: Sequence[Scores]) -> pl.DataFrame:
    """A row per evaluation, all its numbers as columns."""
    return pl.DataFrame([each.as_row() for each in scored], infer_schema_length=None)


_NO: Final = np.zeros(0, dtype=np.int64)


def _ratio(above: Floats, below: Floats, block: Integers, draws: Floats) -> Interval:
    """Ratio of two sums, and its range over the draws of blocks."""
    total = float(below.sum())
    if total <= 0:
        return Interval(math.nan)
    value = float(above.sum()) / total
    blocks = draws.shape[1]
    if not blocks:
        return Interval(value)
    sums = [draws @ np.bincount(block, weights=each, minlength=blocks) for each in (above, below)]
    some = sums[1] > 0
    return interval_of(value, sums[0][some] / sums[1][some])


def _within_factor_two(estimate: Floats, actual: Floats) -> tuple[Floats, Floats]:
    """By job: 1 where the estimate is within a factor of two, and 1 where the truth is above 0."""
    known = actual > 0
    within = known & (estimate >= 0.5 * actual) & (estimate <= 2.0 * actual)
    return within.astype(np.float64), known.astype(np.float64)


def _inside(jobs: pl.DataFrame, low: str, high: str) -> Floats:
    return jobs["actual"].is_between(jobs[low], jobs[high]).cast(pl.Float64).to_numpy()


def _width(jobs: pl.DataFrame, low: str, high: str) -> float:
    middle = _quantile(_array(jobs, "predicted"), 0.5)
    if not middle > 0:
        return math.nan
    return _quantile(_array(jobs, high) - _array(jobs, low), 0.5) / middle


def _array(jobs: pl.DataFrame, name: str) -> Floats:
    return jobs[name].to_numpy().astype(np.float64)


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else math.nan


def _quantile(values: Floats, level: float) -> float:
    return float(np.quantile(values, level)) if values.size else math.nan


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _flat(prefix: str, nested: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names joined by underscores; an interval's value goes by the name of its field alone."""
    cells: list[tuple[str, Any]] = []
    for key, value in nested.items():
        name = prefix if key == "value" and prefix else f"{prefix}_{key}" if prefix else key
        cells += _flat(name, value) if isinstance(value, Mapping) else [(name, value)]
    return cells
