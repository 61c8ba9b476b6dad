"""Comparison of two schedules of a workload, job by job, and of simulated with recorded waits.

Intervals are from a bootstrap over weeks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.metrics.jobs import bounded_slowdown, per_job
from foresail.metrics.statistics import drawn_blocks, time_blocks
from foresail.model.distribution import Floats
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.traces.schedule import Schedule
from foresail.traces.workload import Workload

_GRID: Final = 2048

Metric = Literal[
    "average_bounded_slowdown",
    "p99_bounded_slowdown",
    "mean_wait_seconds",
    "median_wait_seconds",
    "p90_wait_seconds",
    "p99_wait_seconds",
    "max_wait_seconds",
    "mean_flow_seconds",
]

_QUANTITY: Final[dict[Metric, tuple[str, float | None]]] = {
    "average_bounded_slowdown": ("bounded_slowdown", None),
    "p99_bounded_slowdown": ("bounded_slowdown", 0.99),
    "mean_wait_seconds": ("wait_seconds", None),
    "median_wait_seconds": ("wait_seconds", 0.5),
    "p90_wait_seconds": ("wait_seconds", 0.9),
    "p99_wait_seconds": ("wait_seconds", 0.99),
    "max_wait_seconds": ("wait_seconds", 1.0),
    "mean_flow_seconds": ("flow_seconds", None),
}
"""Column of ``per_job`` and quantile level; no level: the mean."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its 95 % interval, which are NaN where none can be given."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def is_known(self) -> bool:
        """Return whether the interval could be computed."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def contains(self, value: float) -> bool:
        """Return whether the value lies in the interval."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Change:
    """One metric in both schedules, with the interval of the other, the difference and the ratio.

    ``difference`` is other - baseline in the metric's unit, ``ratio`` other / baseline (NaN where
    the baseline is 0).
    """

    metric: Metric
    baseline: float
    other: Interval
    difference: Interval
    ratio: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """A schedule against the baseline, over the jobs that both have."""

    baseline: str
    other: str

    jobs: int
    """Jobs in both schedules, which ended alike (``paired``)."""
    unmatched_jobs: int
    """Jobs that are left out."""
    blocks: int
    block_seconds: float
    """Blocks of submission time that the bootstrap drew from, and their length; 0 and 0 where the
    log is too short for intervals."""
    changes: tuple[Change, ...]

    def change(self, metric: Metric) -> Change:
        """The change of one metric."""
        return next(change for change in self.changes if change.metric == metric)


HELD_UP_FACTOR: Final = 1.1
HELD_UP_SECONDS: Final = 3600.0
"""A job is delayed that waits more than this factor of its baseline wait, and this, together."""


@dataclass(frozen=True, slots=True)
class HeldUp:
    """Jobs that pay for what others gain."""

    share: float
    """Share of the jobs in both schedules that wait more than 1.1 times as long as under the
    baseline, and an hour."""
    mean_seconds: float
    """Mean time that these wait longer than under the baseline; 0 if there are none."""


def held_up(pairs: pl.DataFrame) -> HeldUp:
    """Return which share of some pairs (see ``paired``) is delayed, and for how long."""
    before, after = pairs["wait_seconds"].to_numpy(), pairs["wait_seconds_other"].to_numpy()
    longer = (after - before)[after > HELD_UP_FACTOR * before + HELD_UP_SECONDS]
    return HeldUp(longer.size / before.size, float(longer.mean()) if longer.size else 0.0)


def paired(baseline: Schedule, other: Schedule) -> pl.DataFrame:
    """Jobs that both schedules have, by submission, with what each did to them.

    Jobs that were killed at their requested time in one of them alone are left out: half a job that
    took half the time was served no better.

    Columns: the baseline's ``per_job`` columns, and ``wait_seconds``, ``bounded_slowdown``,
    ``flow_seconds``, ``start_seconds`` of the other with the suffix ``_other``.
    """
    columns = ["wait_seconds", "bounded_slowdown", "flow_seconds", "start_seconds"]
    columns.append("ended_because")
    theirs = per_job(other).select("job_id", *columns)
    jobs = per_job(baseline).join(
        theirs, on="job_id", how="inner", suffix="_other", maintain_order="left"
    )
    here, there = (
        (pl.col(name) == EndedBecause.LIMIT.value).fill_null(value=False)
        for name in ("ended_because", "ended_because_other")
    )
    return jobs.filter(here == there)


def compare(
    baseline: Schedule, other: Schedule, *, replicates: int = 1000, seed: int = 0
) -> Comparison:
    """Every ``Metric`` in both schedules, with 95 % intervals.

    Weeks of submission are drawn with replacement, the same weeks for both schedules, so that
    what a bad week does to both cancels. A log of fewer than five weeks is cut into days, one of
    fewer than five days gets no intervals; nor does the maximum ever, which a bootstrap cannot
    judge. Quantiles of a replicate are read off a grid of 2,048 quantiles of the whole.

    Raises ``InputError`` if the schedules have no job in common, or none that ended alike.
    """
    jobs = paired(baseline, other)
    if not jobs.height:
        raise InputError(
            "the schedules have no job in common that ended alike",
            field="job_id",
            value=f"{baseline.meta.workload}, {other.meta.workload}",
            expected="two schedules of the same workload",
        )
    block_seconds, block = time_blocks(jobs["submit_seconds"].to_numpy().astype(np.float64))
    count = int(block.max()) + 1 if block_seconds else 0
    draws = drawn_blocks(count, replicates, seed)
    changes = []
    for metric, (column, level) in _QUANTITY.items():
        mine = jobs[column].to_numpy().astype(np.float64)
        theirs = jobs[f"{column}_other"].to_numpy().astype(np.float64)
        if level is None:
            before, after = float(mine.mean()), float(theirs.mean())
        else:
            before, after = (float(np.quantile(values, level)) for values in (mine, theirs))
        resampled = None
        if count and level != 1.0:
            resampled = [_resampled(values, level, block, draws) for values in (mine, theirs)]
        changes.append(_change(metric, before, after, resampled))
    return Comparison(
        baseline=baseline.meta.policy,
        other=other.meta.policy,
        jobs=jobs.height,
        unmatched_jobs=per_job(baseline).height + per_job(other).height - 2 * jobs.height,
        blocks=count,
        block_seconds=block_seconds,
        changes=tuple(changes),
    )


def movers(jobs: pl.DataFrame, count: int = 20) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The jobs of ``paired`` that gained and those that lost most wait: at most ``count`` each.

    Two tables, most first, with ``job_id``, ``user``, ``submit_seconds``, ``cpus``,
    ``runtime_seconds``, ``wait_seconds``, ``wait_seconds_other`` and ``difference_seconds`` (other
    - baseline).
    """
    changed = jobs.select(
        "job_id",
        "user",
        "submit_seconds",
        "cpus",
        "runtime_seconds",
        "wait_seconds",
        "wait_seconds_other",
        difference_seconds=pl.col("wait_seconds_other") - pl.col("wait_seconds"),
    )
    by = "difference_seconds"
    gained = changed.filter(pl.col(by) < 0).sort(by, maintain_order=True)
    lost = changed.filter(pl.col(by) > 0).sort(by, descending=True, maintain_order=True)
    return gained.head(count), lost.head(count)


def _resampled(
    values: Floats, level: float | None, block: NDArray[np.int64], draws: Floats
) -> Floats:
    """The statistic in every replicate; ``draws`` has shape (replicates, blocks)."""
    blocks = draws.shape[1]
    if level is None:
        sums = np.bincount(block, weights=values, minlength=blocks)
        jobs = np.bincount(block, minlength=blocks).astype(np.float64)
        means: Floats = (draws @ sums) / (draws @ jobs)
        return means
    ordered = np.sort(values)
    picks = np.linspace(0, ordered.size - 1, min(_GRID, ordered.size)).round().astype(np.int64)
    grid = np.unique(ordered[picks])
    cell = np.searchsorted(grid, values)
    counts = np.bincount(block * grid.size + cell, minlength=blocks * grid.size)
    cumulative = np.cumsum(counts.reshape(blocks, grid.size), axis=1).astype(np.float64)
    reached = draws @ cumulative
    quantiles: Floats = grid[np.argmax(reached >= level * reached[:, -1:], axis=1)]
    return quantiles


def _change(
    metric: Metric, before: float, after: float, resampled: Sequence[Floats] | None
) -> Change:
    ratio = after / before if before else math.nan
    if resampled is None:
        return Change(metric, before, Interval(after), Interval(after - before), Interval(ratio))
    mine, theirs = resampled
    return Change(
        metric,
        before,
        interval_of(after, theirs),
        interval_of(after - before, theirs - mine),
        interval_of(ratio, theirs[mine > 0] / mine[mine > 0]) if before else Interval(ratio),
    )


def interval_of(value: float, replicates: Floats) -> Interval:
    """A value with the range that 95 % of its bootstrap replicates lie in."""
    if not replicates.size:
        return Interval(value)
    low, high = np.quantile(replicates, [0.025, 0.975])
    return Interval(value, float(low), float(high))


_LEAST_KNOWN: Final = 0.5

LEAST_RANK_CORRELATION: Final = 0.5
"""Below it a simulation explains less than a quarter of the order in which jobs waited."""
MOST_TIMES: Final = 2.0
"""Waits that are further apart than policies ever are from each other tell of another machine."""
FEWEST_JOBS: Final = 10
"""A rank correlation of fewer jobs is chance."""
_NO_WAIT_SECONDS: Final = 60.0
"""Added to waits before they are divided: below it nobody calls it a wait."""


@dataclass(frozen=True, slots=True)
class Side:
    """The jobs that are compared, as one side has them."""

    mean_wait_seconds: float
    median_wait_seconds: float
    max_wait_seconds: float
    average_bounded_slowdown: float


@dataclass(frozen=True, slots=True)
class Resemblance:
    """Recorded figures of a log beside those of a simulation of the same jobs."""

    policy: str
    jobs: int
    """Jobs whose wait is recorded, and which were simulated to their end."""
    of_jobs: int
    """Jobs that were simulated."""
    recorded: Side
    simulated: Side
    rank_correlation: float
    """Spearman's, of waits; NaN where one side knows only one wait."""
    mean_ratio: float
    median_ratio: float
    """Simulated over recorded, a minute added to both."""

    @property
    def is_judged(self) -> bool:
        """Return whether enough jobs are known to judge by, and any waited."""
        longest = max(self.recorded.max_wait_seconds, self.simulated.max_wait_seconds)
        return self.jobs >= FEWEST_JOBS and longest >= _NO_WAIT_SECONDS

    @property
    def is_usable(self) -> bool:
        """Return whether the model of the machine passes the bar."""
        ratios = (self.mean_ratio, self.median_ratio)
        return self.rank_correlation >= LEAST_RANK_CORRELATION and all(
            1.0 / MOST_TIMES <= ratio <= MOST_TIMES for ratio in ratios
        )


def recorded_waits(workload: Workload) -> pl.DataFrame | None:
    """Jobs whose wait the log recorded: ``job_id``, ``wait_seconds``, ``runtime_seconds``.

    None where these are fewer than half of the jobs, or none of them waited.
    """
    known = workload.jobs.select(
        "job_id", "runtime_seconds", wait_seconds="recorded_wait_seconds"
    ).drop_nulls()
    if known.height < _LEAST_KNOWN * len(workload) or not (known["wait_seconds"] > 0.0).any():
        return None
    return known


def nearest(recorded: pl.DataFrame, simulated: Sequence[Schedule]) -> Resemblance | None:
    """The one of some schedules that comes nearest to what was recorded; None: no job in common.

    Which policy the machine had is not known, so its model is judged by the best of them.
    """
    found = [each for each in (_resemblance(recorded, one) for one in simulated) if each]
    return max(found, key=_nearness, default=None)


def _nearness(each: Resemblance) -> tuple[bool, float]:
    rank = each.rank_correlation
    return each.is_usable, -math.inf if math.isnan(rank) else rank


def _resemblance(recorded: pl.DataFrame, simulated: Schedule) -> Resemblance | None:
    ended = per_job(simulated).filter(pl.col("ended_because") != EndedBecause.LIMIT.value)
    jobs = recorded.join(ended, on="job_id", suffix="_simulated", maintain_order="left")
    if not jobs.height:
        return None
    real, made = _side(jobs, ""), _side(jobs, "_simulated")
    ranks = [jobs[name].rank().to_numpy() for name in ("wait_seconds", "wait_seconds_simulated")]
    varies = all(each.min() < each.max() for each in ranks)
    return Resemblance(
        policy=simulated.meta.policy,
        jobs=jobs.height,
        of_jobs=simulated.jobs["job_id"].n_unique(),
        recorded=real,
        simulated=made,
        rank_correlation=float(np.corrcoef(np.stack(ranks))[0, 1]) if varies else math.nan,
        mean_ratio=_ratio(made.mean_wait_seconds, real.mean_wait_seconds),
        median_ratio=_ratio(made.median_wait_seconds, real.median_wait_seconds),
    )


def _side(jobs: pl.DataFrame, suffix: str) -> Side:
    wait, runtime = pl.col(f"wait_seconds{suffix}"), pl.col(f"runtime_seconds{suffix}")
    totals = jobs.select(
        mean_wait_seconds=wait.mean(),
        median_wait_seconds=wait.median(),
        max_wait_seconds=wait.max(),
        average_bounded_slowdown=bounded_slowdown(wait, runtime).mean(),
    )
    return Side(**totals.row(0, named=True))


def _ratio(simulated_seconds: float, recorded_seconds: float) -> float:
    return (simulated_seconds + _NO_WAIT_SECONDS) / (recorded_seconds + _NO_WAIT_SECONDS)
