"""Predictability from the history of similar jobs: of runtimes, and of what jobs use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.finding import Answer, Plot, study_with_parameters
from foresail.analysis.prediction_errors import error_histogram, error_shares
from foresail.evaluation.replaying import evaluate
from foresail.evaluation.tables import learning_curve
from foresail.model.registry import register
from foresail.model.words import count, percent
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload

_MOST_JOBS: Final = 200_000
_MOST_JOBS_OF_USAGE: Final = 50_000
"""The first so many jobs are looked at."""


@dataclass(frozen=True, slots=True)
class PredictabilityParameters:
    """Parameters of an analysis of predictability."""

    predictor: str = "jvu"
    """Short form of the predictor that is asked."""


@register("analysis", "runtime_predictability", parameters=PredictabilityParameters)
@study_with_parameters("Can runtimes be predicted?", "3.6")
def runtime_predictability(
    parameters: PredictabilityParameters, workload: Workload
) -> Answer | str:
    """Histogram of the errors of runtime estimates from history.

    Park's dissertation, figures 3.10 and 4.2d. Jobs are learned
    from when they have ended. Errors over the jobs that ran for more than 0 s.
    """
    first = workload.with_jobs(workload.jobs.head(_MOST_JOBS))
    runtimes = columns.runtimes(first)
    if not (runtimes > 0).any():
        return "No job's runtime is known and above 0."
    jobs = evaluate(first, parameters.predictor).jobs
    estimate, actual = jobs["predicted"].to_numpy(), jobs["actual"].to_numpy()
    shares = error_shares(estimate, actual)
    if not shares.jobs:
        return "No runtime was predicted."
    verdict = (
        f"{percent(shares.within_factor_two)} of the estimates lie within a factor of two, "
        f"{percent(shares.tail)} are more than 95 % too long, "
        f"{percent(shares.under_by_half)} more than 50 % too short."
    )
    plot = Plot(
        kind="line",
        table="errors",
        x="bucket_percent",
        y="share",
        x_label="(estimate − runtime) ÷ runtime, %; the last point is all above 95 %",
        y_label="share of jobs",
        alternative=verdict,
        y_kind="share",
    )
    left_out = int(np.isfinite(runtimes).sum()) - shares.jobs
    scalars = {
        "jobs": float(shares.jobs),
        "share_within_factor_2": shares.within_factor_two,
        "share_under": shares.under,
        "share_under_by_half": shares.under_by_half,
        "share_over": shares.over,
        "share_in_tail": shares.tail,
    }
    notes = (
        f"Estimates of the predictor {parameters.predictor}.",
        *([f"The first {len(first):,} jobs."] if len(first) < len(workload) else []),
        *([f"{count(left_out, 'job')} of 0 s left out."] if left_out else []),
    )
    return Answer(verdict, scalars, {"errors": error_histogram(estimate, actual)}, (plot,), notes)


_QUANTITIES: Final = ("runtime", "cpu", "memory", "cpu_time", "memory_time")
_FEWEST: Final = 30


@register("analysis", "usage_predictability", parameters=PredictabilityParameters)
@study_with_parameters("Is use more predictable than runtime?", "5.1")
def usage_predictability(parameters: PredictabilityParameters, workload: Workload) -> Answer | str:
    """Errors of estimates from history per quantity, and by week from an empty history on.

    Park's dissertation, figures 5.2 and 5.3. Errors over the jobs that used more
    than none of a quantity.
    """
    first = workload.with_jobs(workload.jobs.head(_MOST_JOBS_OF_USAGE))
    ran = np.isfinite(quantity(first, "runtime"))
    usable = [name for name in _QUANTITIES if ((quantity(first, name) > 0) & ran).any()]
    if not set(usable) - {"runtime"}:
        return "No job's use of cpu or memory is known."
    scalars: dict[str, float] = {}
    errors, weeks = [], []
    for name in usable:
        evaluation = evaluate(first, parameters.predictor, quantity=name)
        estimate = evaluation.jobs["predicted"].to_numpy()
        actual = evaluation.jobs["actual"].to_numpy()
        shares = error_shares(estimate, actual)
        if not shares.jobs:
            continue
        said = pl.lit(name.replace("_", " ")).alias("quantity")
        errors.append(error_histogram(estimate, actual).with_columns(said))
        weeks.append(_weeks(learning_curve(evaluation)).with_columns(said))
        scalars |= {
            f"{name}_within_factor_2": shares.within_factor_two,
            f"{name}_in_tail": shares.tail,
        }
    if not errors:
        return "Nothing was predicted."
    by_week = pl.concat(weeks)
    within = ", ".join(
        f"{percent(scalars[f'{name}_within_factor_2'])} of {name.replace('_', ' ')}"
        for name in usable
        if f"{name}_within_factor_2" in scalars
    )
    verdict = f"Estimates within a factor of two: {within}."
    histogram = Plot(
        kind="line",
        table="errors",
        x="bucket_percent",
        y="share",
        x_label="(estimate − use) ÷ use, %; the last point is all above 95 %",
        y_label="share of jobs",
        alternative=verdict,
        series="quantity",
        y_kind="share",
    )
    curve = Plot(
        kind="line",
        table="weeks",
        x="week",
        y="within_factor_two",
        x_label="week from an empty history",
        y_label="share within a factor of two",
        alternative=_learning(by_week),
        series="quantity",
        y_kind="share",
    )
    notes = [f"Estimates of the predictor {parameters.predictor}, per task."]
    if len(first) < len(workload):
        notes.append(f"The first {len(first):,} jobs.")
    tables = {"errors": pl.concat(errors), "weeks": by_week}
    plots = (histogram, curve) if by_week.height else (histogram,)
    return Answer(verdict, scalars, tables, plots, tuple(notes))


def _weeks(curve: pl.DataFrame) -> pl.DataFrame:
    """Weeks with enough jobs for a share to mean something."""
    return curve.filter(pl.col("jobs") >= _FEWEST).select(
        pl.col("stretch").alias("week"), "jobs", "within_factor_two"
    )


def _learning(weeks: pl.DataFrame) -> str:
    runtime = weeks.filter(pl.col("quantity") == "runtime")["within_factor_two"].to_numpy()
    if runtime.size < 2:
        return "The log is too short to see how predictions get better."
    return (
        f"Runtimes within a factor of two: {percent(float(runtime[0]))} in the first week, "
        f"{percent(float(np.mean(runtime[1:])))} in the later ones."
    )
