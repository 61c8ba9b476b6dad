"""Summary of a study's runs: means over seeds, 95 % intervals, verdicts on claims."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl

from foresail.model.arrays import Floats
from foresail.model.words import number, percent
from foresail_studies.study import Bound, Mean, PublishedClaim, Study

Verdict = Literal["holds", "does not hold", "within the interval", "not run"]

_STUDENT_95: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom."""
_NORMAL_95: Final = 1.96
_SUMMARY: Final = pl.Schema(
    {
        "group": pl.String(),
        "x": pl.Float64(),
        "system": pl.String(),
        "measure": pl.String(),
        "seeds": pl.Int64(),
        "mean": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class SeedInterval:
    """A mean over seeds with its 95 % interval (Student's t); unbounded for a single seed."""

    mean: float
    low: float
    high: float


def interval(values: Floats) -> SeedInterval:
    """Mean and 95 % interval of independent values; NaN without any."""
    if not values.size:
        return SeedInterval(math.nan, math.nan, math.nan)
    mean = float(values.mean())
    if values.size == 1:
        return SeedInterval(mean, -math.inf, math.inf)
    freedom = values.size - 1
    quantile = _STUDENT_95[freedom - 1] if freedom <= len(_STUDENT_95) else _NORMAL_95
    reach = quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
    return SeedInterval(mean, mean - reach, mean + reach)


def summary(study: Study, runs: pl.DataFrame) -> pl.DataFrame:
    """A row per group, point, system and measure of a study.

    ``runs`` are as ``StudyResults.table`` has them.

    Returns
    -------
    DataFrame
        ``group``, ``x``, ``system``, ``measure``, ``seeds``, ``mean``, ``low``, ``high``; the ends
        of the interval are null for a single seed. Seeds with nothing to measure are left out.
    """
    rows = []
    where = list(dict.fromkeys((case.group, case.x, case.system) for case in study.cases))
    for group, x, system in where:
        part = runs.filter(
            pl.col("group") == group, pl.col("x").eq_missing(pl.lit(x)), pl.col("system") == system
        )
        for measure in study.measures:
            if measure.name not in part.columns:
                continue
            values = part[measure.name].drop_nulls().to_numpy()
            found = interval(values)
            if not values.size:
                continue
            rows.append(
                {
                    "group": group,
                    "x": x,
                    "system": system,
                    "measure": measure.name,
                    "seeds": int(values.size),
                    "mean": found.mean,
                    "low": found.low if math.isfinite(found.low) else None,
                    "high": found.high if math.isfinite(found.high) else None,
                }
            )
    return pl.DataFrame(rows, schema=_SUMMARY)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim beside what came out."""

    claim: PublishedClaim

    ours: str
    """Our figures in words."""
    verdict: Verdict
    """``holds`` and ``does not hold`` where the interval over seeds is on one side of the claim,
    ``within the interval`` where it is on both, ``not run`` where a side is missing."""


def judge(study: Study, runs: pl.DataFrame, claim: PublishedClaim) -> Judgement:
    """Hold a claim against the runs, seed by seed."""
    bound = claim.bound
    sides = [_by_seed(runs, side) for side in (bound.less, bound.more)]
    seeds = sorted(set.intersection(*(set(side) for side in sides if side is not None)))
    less, more = (
        np.full(len(seeds), constant) if side is None else np.array([side[s] for s in seeds])
        for side, constant in zip(sides, (bound.less, bound.more), strict=True)
    )
    if not seeds:
        return Judgement(claim, "nothing was run that says so", "not run")
    spare = interval(bound.factor * more + bound.margin - less)
    verdict: Verdict = "within the interval"
    if spare.low > 0.0:
        verdict = "holds"
    elif spare.high < 0.0:
        verdict = "does not hold"
    return Judgement(claim, _ours(study, bound, less, more, spare), verdict)


def _by_seed(runs: pl.DataFrame, side: Mean | float) -> dict[int, float] | None:
    """The mean of each seed; None for a number that the claim states."""
    if not isinstance(side, Mean):
        return None
    part = runs.filter(pl.col("system") == side.system)
    if side.group is not None:
        part = part.filter(pl.col("group") == side.group)
    if side.x:
        part = part.filter(pl.col("x").is_in([float(x) for x in side.x]))
    if side.measure not in part.columns:
        return {}
    known = part.drop_nulls(side.measure).group_by("seed").agg(pl.col(side.measure).mean())
    return dict(known.iter_rows())


def _ours(study: Study, bound: Bound, less: Floats, more: Floats, spare: SeedInterval) -> str:
    """Both sides in words, their ratio, and by how much the claim is kept."""
    parts = []
    groups = {side.group for side in (bound.less, bound.more) if isinstance(side, Mean)}
    for side, values in ((bound.less, less), (bound.more, more)):
        if isinstance(side, Mean):
            where = f" on the {side.group}" if len(groups) > 1 and side.group else ""
            where += f" at {', '.join(number(x) for x in side.x)}" if side.x else ""
            said = study.measure(side.measure).said(float(values.mean()))
            parts.append(f"{side.system}{where} {said}")
    text = ", ".join(parts)
    both = isinstance(bound.less, Mean) and isinstance(bound.more, Mean)
    if both and float(more.mean()) > 0.0:
        text += f" (ratio {number(float(less.mean() / more.mean()))})"
    if less.size > 1 and _is_share(study, bound):
        text += f"; to spare {percent(spare.mean)} [{percent(spare.low)}, {percent(spare.high)}]"
    elif less.size > 1:
        text += f"; to spare {number(spare.mean)} [{number(spare.low)}, {number(spare.high)}]"
    return text


def _is_share(study: Study, bound: Bound) -> bool:
    sides = [side for side in (bound.less, bound.more) if isinstance(side, Mean)]
    return all(study.measure(side.measure).kind == "share" for side in sides)
