"""A report of one or more schedules of a workload: words, figures, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foresail.metrics.statistics import by_size, by_user
from foresail.model.errors import InputError
from foresail.reports.comparison.change_figures import relative_metrics, size_map
from foresail.reports.comparison.deadline_figures import deadlines_and_goodput, has_deadlines
from foresail.reports.comparison.distribution_figures import (
    slowdown_distribution,
    wait_distribution,
)
from foresail.reports.comparison.page import page
from foresail.reports.comparison.prediction_figures import (
    coverage,
    prediction_error,
    prediction_sharpness,
    worst_predicted,
)
from foresail.reports.comparison.table import as_table
from foresail.reports.comparison.time_figures import use_over_time
from foresail.reports.comparison.view import ReportView, view_of
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.files import write_page
from foresail.reports.plan.page import RunCourse
from foresail.traces.facts import Provenance
from foresail.traces.schedule import Schedule


@dataclass(frozen=True)
class Report:
    """All a report shows; the first schedule of the view is the baseline.

    ``course`` is what the event log of the only schedule says of it, if there is one.
    """

    view: ReportView
    parts: tuple[Figure | MissingFigure, ...]
    course: RunCourse | None = None

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures that this report has."""
        further = () if self.course is None else self.course.figures
        return (*(part for part in self.parts if isinstance(part, Figure)), *further)


def report_of(schedules: Sequence[Schedule], course: RunCourse | None = None) -> Report:
    """Compute a report; the first schedule is the baseline of every comparison.

    Raises
    ------
    InputError
        If there is no schedule, or one has no job in common with the first.
    """
    if not schedules:
        raise InputError("a report needs a schedule", value=0, expected="at least one")
    view = view_of(schedules)
    parts = (
        *([deadlines_and_goodput(view)] if has_deadlines(view) else []),
        relative_metrics(view),
        wait_distribution(view),
        slowdown_distribution(view),
        *([size_map(view)] if view.comparisons else []),
        use_over_time(view),
        prediction_error(view),
        *([prediction_sharpness(view)] if coverage(view).height else []),
    )
    return Report(view, parts, course)


def write_report(
    schedules: Sequence[Schedule],
    folder: Path,
    *,
    command: str | None = None,
    course: RunCourse | None = None,
    verdict: str = "",
    provenance: Provenance | None = None,
) -> Report:
    """Write ``report.html``, ``summary.csv`` and a CSV per figure into a folder, made if need be.

    The schedules are of the same workload, the baseline first; ``command`` is printed beneath each
    figure; ``course`` is a moment of the only schedule and why its jobs waited, from its event log;
    ``verdict`` is what the log's own waits say of them; ``provenance`` what was done to the log.

    Raises
    ------
    InputError
        As ``report_of``, or if the folder cannot be written to.
    """
    report = report_of(schedules, course)
    tables = {figure.name: figure.table for figure in report.figures}
    if course is not None:
        tables |= course.plan.tables
    tables["summary"] = as_table(report.view.summaries)
    if coverage(report.view).height:
        tables["worst-predicted-users"] = worst_predicted(report.view)
    for position, jobs in enumerate(report.view.jobs):
        number = "" if len(report.view.jobs) == 1 else f"-{position + 1}"
        tables[f"by-user{number}"] = by_user(jobs)
        tables[f"by-size{number}"] = by_size(jobs)
    text = page(report.view, report.parts, command, course, verdict, provenance)
    write_page(folder / "report.html", text, tables)
    return report
