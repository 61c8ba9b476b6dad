"""Filter ``drop_flurries``."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from foresail.model.limits import require_at_least
from foresail.model.registry import register
from foresail.traces.filtering import Filter, keep
from foresail.traces.workload import Workload


@dataclass(frozen=True, slots=True)
class FlurryParameters:
    """What counts as a flurry."""

    jobs: int = 1000
    """A burst of more jobs than this is a flurry."""
    gap_seconds: float = 1800.0
    """Jobs of one user are one burst while no gap between submissions is longer than this."""

    def __post_init__(self) -> None:
        require_at_least(self, 1, "jobs")
        require_at_least(self, 0, "gap_seconds")


@register("filter", "drop_flurries", parameters=FlurryParameters)
def drop_flurries(parameters: FlurryParameters) -> Filter:
    """Drop bursts in which one user submits very many jobs with hardly a pause.

    A burst is a row of submissions by one user, each at most ``gap_seconds`` after the one before;
    bursts of more than ``jobs`` jobs are dropped whole. Jobs of unknown users are kept. The reason
    to: D. Tsafrir, D. G. Feitelson, "Instability in parallel job scheduling simulation: the role of
    workload flurries", IPDPS 2006.
    """

    def apply(workload: Workload) -> tuple[Workload, int]:
        gap = pl.col("submit_seconds").diff().over("user")
        pause = (gap > parameters.gap_seconds).fill_null(value=True)
        burst = pause.cast(pl.Int64).cum_sum().over("user")
        jobs = workload.jobs.with_columns(burst.alias("__burst__"))
        size = jobs.select(pl.len().over("user", "__burst__").alias("size"))["size"]
        calm = pl.lit(size <= parameters.jobs) | pl.col("user").is_null()
        return keep(workload, calm)

    return apply
