"""Outcomes of jobs, counted by jobs and by the cpu time that they took."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from foresail.analysis import columns
from foresail.analysis.columns import DEFINITION, NOT_TOLD, OUTCOMES, UNSUCCESSFUL, outcomes
from foresail.analysis.finding import Answer, Plot, study
from foresail.model.registry import register
from foresail.model.words import count, percent
from foresail.traces.workload import Workload


@register("analysis", "outcome_breakdown")
@study("How do jobs end?", "3.5")
def outcome_breakdown(workload: Workload) -> Answer | str:
    """Shares of jobs and of cpu time by outcome.

    Spec section 10, W10 (dissertation, figure 3.7). Shares over the jobs whose outcome is known;
    unknown work counts as none.
    """
    outcome = outcomes(workload)
    if outcome is None:
        return NOT_TOLD
    work = np.nan_to_num(columns.cpus(workload) * columns.runtimes(workload))
    ended = pl.DataFrame({"outcome": outcome, "work": work}).drop_nulls()
    sums = ended.group_by("outcome").agg(jobs=pl.len(), work=pl.col("work").sum())
    by_outcome = {row["outcome"]: row for row in sums.iter_rows(named=True)}
    total = float(ended["work"].to_numpy().sum())
    rows = []
    for measure, whole in (("jobs", float(ended.height)), ("work", total)):
        for name in OUTCOMES:
            amount = by_outcome.get(name, {"jobs": 0, "work": 0.0})[measure]
            said = "jobs" if measure == "jobs" else "cpu time"
            rows.append((name, said, float(amount), amount / whole if whole else 0.0))
    table = pl.DataFrame(rows, ["outcome", "of", "amount", "share"], orient="row")
    share = {(name, of): part for name, of, _, part in rows}
    unsuccessful = {of: sum(share[name, of] for name in UNSUCCESSFUL) for of in _MEASURES}
    scalars = {
        f"{name.replace(' ', '_')}_share_of_{of.replace(' ', '_')}": share[name, of]
        for name in OUTCOMES
        for of in _MEASURES
    }
    scalars |= {
        "unsuccessful_share_of_jobs": unsuccessful["jobs"],
        "unsuccessful_share_of_cpu_time": unsuccessful["cpu time"],
    }
    verdict = (
        f"{percent(unsuccessful['jobs'])} of the jobs are unsuccessful and take "
        f"{percent(unsuccessful['cpu time'])} of the cpu time; "
        f"{percent(share['timed out', 'jobs'])} time out and take "
        f"{percent(share['timed out', 'cpu time'])}."
    )
    unknown = len(workload) - ended.height
    plot = Plot(
        kind="bars",
        table="outcomes",
        x="outcome",
        y="share",
        x_label="outcome",
        y_label="share of jobs, share of cpu time",
        alternative=verdict,
        series="of",
        x_kind="category",
        y_kind="share",
    )
    return Answer(
        verdict,
        scalars,
        {"outcomes": table},
        (plot,),
        (DEFINITION, *([_left_out(unknown)] if unknown else [])),
    )


def _left_out(unknown: int) -> str:
    return f"{count(unknown, 'job')} of unknown or partial outcome left out."


_MEASURES: Final = ("jobs", "cpu time")
