"""The report of an evaluation on disk: the page, and a CSV file behind everything that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from foresail.evaluation.replaying import Evaluation
from foresail.evaluation.scores import as_table
from foresail.evaluation.tables import Derived, derived_runtimes
from foresail.reports.evaluation.figures import figures
from foresail.reports.evaluation.page import page
from foresail.reports.evaluation.view import EvaluationView, evaluation_view
from foresail.reports.figure import Figure
from foresail.reports.files import write_page
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload


def write_report(
    workload: Workload,
    evaluations: Sequence[Evaluation],
    folder: Path,
    *,
    command: str | None = None,
) -> EvaluationView:
    """Write ``report.html``, ``scores.csv`` and a CSV per figure and table into a folder.

    The evaluations are of this workload, the baseline first. Where the workload knows the cpu time
    of jobs, runtimes derived from it are scored as well.

    Raises
    ------
    InputError
        As ``evaluation_view``, or if the folder cannot be written to.
    """
    view = evaluation_view(evaluations)
    parts = figures(view)
    derived = _derived(workload, evaluations)
    tables = {part.name: part.table for part in parts if isinstance(part, Figure)}
    tables["scores"] = as_table(view.told)
    tables["worst-users"] = view.stacked("worst_users")
    users = view.stacked("coverage_by_user")
    if users.height:
        tables["coverage-by-user"] = users
    if derived:
        tables["derived"] = _derived_table(derived)
    write_page(folder / "report.html", page(view, parts, derived, command), tables)
    return view


def _derived(
    workload: Workload, evaluations: Sequence[Evaluation]
) -> list[tuple[str, tuple[Derived, ...]]]:
    """Runtimes derived from the cpu time by each predictor, where the log measured it.

    A log that has the same cpu time for all jobs did not.
    """
    cpu_time = quantity(workload, "cpu_time")
    known = np.isfinite(cpu_time) & np.isfinite(quantity(workload, "cpu"))
    known &= workload.runtime_seconds > 0
    if evaluations[0].quantity != "runtime" or np.unique(cpu_time[known]).size < 2:
        return []
    return [
        (each.predictor, derived_runtimes(workload, each.predictor, each)) for each in evaluations
    ]


def _derived_table(derived: Sequence[tuple[str, tuple[Derived, ...]]]) -> pl.DataFrame:
    return pl.concat(
        each.histogram.select(
            pl.lit(predictor).alias("predictor"), pl.lit(each.name).alias("from"), pl.all()
        )
        for predictor, ways in derived
        for each in ways
    )
