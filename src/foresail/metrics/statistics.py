"""Numbers of a distribution, groups of jobs, and blocks of time to draw them again from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from foresail.model.distribution import Floats

WEEK_SECONDS: Final = 7 * 86400.0
DAY_SECONDS: Final = 86400.0
_FEWEST_BLOCKS: Final = 5


def time_blocks(submit: Floats) -> tuple[float, NDArray[np.int64]]:
    """Length of the blocks and each job's block; length 0 where there would be too few."""
    for length in (WEEK_SECONDS, DAY_SECONDS):
        index = np.floor((submit - submit.min()) / length).astype(np.int64)
        occupied, compact = np.unique(index, return_inverse=True)
        if occupied.size >= _FEWEST_BLOCKS:
            return length, compact.astype(np.int64)
    return 0.0, np.zeros(submit.size, dtype=np.int64)


def drawn_blocks(blocks: int, replicates: int, seed: int) -> Floats:
    """Count each block in each replicate; shape (replicates, blocks)."""
    if not blocks:
        return np.zeros((replicates, 0))
    generator = np.random.default_rng(seed)
    return generator.multinomial(blocks, np.full(blocks, 1 / blocks), replicates).astype(np.float64)


RUNTIME_BOUNDS_SECONDS: Final = (60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)
RUNTIME_LABELS: Final = ("< 1 min", "1–10 min", "10–60 min", "1–6 h", "6–24 h", "≥ 1 d")


def width_bounds(widest: float) -> tuple[float, ...]:
    """Upper bounds (inclusive) of the width classes: 1, 4, 16, 64, ... up to the widest job."""
    bounds = [1.0]
    while bounds[-1] < widest:
        bounds.append(bounds[-1] * 4)
    return tuple(bounds)


def width_labels(bounds: Sequence[float]) -> tuple[str, ...]:
    """The classes as people say them: ``1``, ``2–4``, ``5–16``."""
    return ("1", *(f"{lower + 1:,.0f}–{upper:,.0f}" for lower, upper in pairwise(bounds)))


def with_size_classes(jobs: pl.DataFrame, bounds: Sequence[float]) -> pl.DataFrame:
    """Add ``width_class`` and ``runtime_class``, indices into the labels.

    To a table of ``per_job``, with the bounds of ``width_bounds``.
    """
    width = pl.sum_horizontal([pl.col("cpus") > bound for bound in bounds])
    runtime = pl.sum_horizontal(
        [pl.col("runtime_seconds") >= bound for bound in RUNTIME_BOUNDS_SECONDS]
    )
    return jobs.with_columns(width_class=width.cast(pl.Int64), runtime_class=runtime.cast(pl.Int64))


def by_user(jobs: pl.DataFrame) -> pl.DataFrame:
    """One row a user, most processor time first; unknown users are one row with a null name."""
    return (
        jobs.group_by("user")
        .agg(*_figures(), processor_seconds=(pl.col("cpus") * pl.col("runtime_seconds")).sum())
        .sort("processor_seconds", "user", descending=[True, False], nulls_last=True)
    )


def by_size(jobs: pl.DataFrame) -> pl.DataFrame:
    """One row per class of width x runtime that has jobs, with the labels of both classes."""
    widest = float(jobs["cpus"].to_numpy().max()) if jobs.height else 1.0
    bounds = width_bounds(widest)
    labels = width_labels(bounds)
    return (
        with_size_classes(jobs, bounds)
        .group_by("width_class", "runtime_class")
        .agg(*_figures())
        .sort("width_class", "runtime_class")
        .with_columns(
            width=pl.col("width_class").replace_strict(
                dict(enumerate(labels)), return_dtype=pl.String
            ),
            runtime=pl.col("runtime_class").replace_strict(
                dict(enumerate(RUNTIME_LABELS)), return_dtype=pl.String
            ),
        )
    )


def _figures() -> list[pl.Expr]:
    found = [pl.len().alias("jobs")]
    for name, mean in (("wait_seconds", "mean"), ("bounded_slowdown", "average")):
        values = pl.col(name)
        found += [
            values.mean().alias(f"{mean}_{name}"),
            values.median().alias(f"median_{name}"),
            values.quantile(0.9, "linear").alias(f"p90_{name}"),
            values.quantile(0.99, "linear").alias(f"p99_{name}"),
            values.max().alias(f"max_{name}"),
        ]
    return found


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean, median, 90 % and 99 % quantile and maximum; all NaN where there are no values."""

    mean: float
    median: float
    p90: float
    p99: float
    max: float


def statistics(values: ArrayLike | pl.Series) -> Statistics:
    """The five numbers of some values; quantiles are interpolated linearly."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return Statistics(*[float("nan")] * 5)
    ordered = np.sort(array)  # which takes a third of the time that quantiles of all take
    places = [share * (array.size - 1) for share in (0.5, 0.9, 0.99)]
    median, p90, p99 = (
        float(np.quantile(ordered[int(place) : int(place) + 2], place - int(place)))
        for place in places
    )
    return Statistics(float(array.mean()), median, p90, p99, float(ordered[-1]))
