"""The report of a comparison: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from foresail.metrics.comparison import movers
from foresail.metrics.statistics import by_size, by_user
from foresail.metrics.summary import partition_summaries
from foresail.model.errors import InputError
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports import document as html
from foresail.reports.comparison import job_figures
from foresail.reports.comparison import view as views
from foresail.reports.comparison.change_figures import relative_metrics, size_map
from foresail.reports.comparison.sentences import (
    against_baseline,
    alone,
    deadlines_against,
    deadlines_alone,
    situation,
)
from foresail.reports.comparison.time_figures import use_over_time
from foresail.reports.figure import Figure, MissingFigure, write_page
from foresail.reports.plan.page import RunCourse
from foresail.traces.facts import Provenance
from foresail.traces.schedule import Schedule


def _odd_words(provenance: Provenance) -> str:
    """Say what is odd, to be said before any figure; empty where nothing is."""
    said = (f"<p class='lead'>Odd: {html.as_html(each.words)}.</p>" for each in provenance.findings)
    return "".join(said)


def _provenance_section(provenance: Provenance) -> str:
    """Version, source and reader, and a table of what was done to the source's rows."""
    rows = [
        html.row(
            [
                html.as_html(each.cause.replace("_", " ")),
                html.as_html(each.example or "–"),
                f"{each.rows:,}",
            ],
            2,
        )
        for each in provenance.treated
    ]
    headings = ("repaired, dropped, folded or filled in", "the first", "rows")
    shown = (
        html.table("Provenance table", headings, rows, words=2)
        if rows
        else "<p>No row was changed.</p>"
    )
    digest = "" if provenance.sha256 is None else f" (SHA-256 {provenance.sha256})"
    words = (
        f"Foresail {provenance.foresail}, reader {provenance.reader}, {provenance.source}{digest}: "
        f"{count(provenance.jobs, 'job')} simulated."
    )
    title = "<h2>What was done to the log</h2>"
    return f"<section id='provenance'>{title}<p>{html.as_html(words)}</p>{shown}</section>"


_MOST_MOVER_TABLES: Final = 3


def page(
    view: views.ReportView,
    parts: Sequence[Figure | MissingFigure],
    command: str | None = None,
    course: RunCourse | None = None,
    verdict: str = "",
    provenance: Provenance | None = None,
) -> str:
    """The whole page as text.

    ``course`` is what the event log says of a moment, and of why jobs waited; ``verdict`` what the
    log's own waits say of the model of its machine.
    """
    title = f"{view.baseline.workload}: {_subject(view)}"
    drawn = [part for part in parts if isinstance(part, Figure)]
    drawn += [] if course is None else course.figures
    body = [
        f"<header><h1>{html.as_html(title)}</h1>",
        f"<p class='situation'>{html.as_html(situation(view))}</p>",
        "" if provenance is None else _odd_words(provenance),
        _paragraphs([verdict]) if verdict else "",
        _words(view),
        "</header>",
        "<main id='numbers'>",
        _summary_section(view, command),
        *(html.section(part, html.key_of(part, view.styles), command) for part in parts),
        "" if course is None else course.html(command),
        _coverage_section(view),
        _movers_section(view),
        "" if provenance is None else _provenance_section(provenance),
        "</main>",
        _footer(view, command),
    ]
    return html.document(title, "".join(body), drawn)


def _subject(view: views.ReportView) -> str:
    names = [style.label for style in view.styles]
    if len(names) == 1:
        return names[0]
    if len(names) == 2:
        return f"{names[0]} against {names[1]}"
    return f"{len(names)} policies compared"


def _words(view: views.ReportView) -> str:
    if not view.comparisons:
        return _paragraphs([*deadlines_alone(view.baseline), *alone(view.baseline)])
    blocks = []
    for style, other, comparison, pair in zip(
        view.styles[1:], view.summaries[1:], view.comparisons, view.pairs, strict=True
    ):
        versus = (
            f"{html.policy_name(style)} <small>against {html.as_html(view.styles[0].label)}</small>"
        )
        sentences = [
            *deadlines_against(view.baseline, other),
            *against_baseline(comparison, pair, view.baseline.unit),
        ]
        blocks.append(f"<h2 class='versus'>{versus}</h2>{html.leading(sentences)}")
    return "".join(blocks)


def _paragraphs(sentences: Sequence[str]) -> str:
    return f"<p class='lead'>{html.as_html(' '.join(sentences))}</p>"


def _summary_section(view: views.ReportView, command: str | None) -> str:
    parts = [each for some in map(partition_summaries, view.schedules) for each in some]
    partitions = views.partition_table(parts)
    names = [*map(html.policy_name, view.styles)]
    numbers = [
        *(
            html.ranked(f"Summary table {number}", rows, names[-len(rows.names) :])
            + html.note(f"{caption.replace('* best', '★ best')}.")
            for number, (rows, caption) in enumerate(views.summary_tables(view.summaries), start=1)
        ),
        html.note(view.schedules[0].meta.partitions_said),
        html.ranked("Partitions", partitions, map(html.as_html, partitions.names)) if parts else "",
    ]
    return html.numbers_section("summary", "The numbers", "".join(numbers), command)


def _coverage_section(view: views.ReportView) -> str:
    covered = job_figures.coverage(view)
    title = "Do stated ranges keep their word?"
    if not covered.height:
        remedy = (
            "Predictors that keep the whole distribution state one; single numbers cannot be "
            "checked this way."
        )
        return html.missing(title, "No prediction came with a range.", remedy)
    looks = {style.policy: style for style in view.styles}
    rows = [html.row(["as stated", "", "10 %", "80 %", "10 %"], kind="stated")]
    for each in covered.iter_rows(named=True):
        shares = [percent(each[part]) for part in ("below", "inside", "above")]
        rows.append(
            html.row([html.policy_name(looks[each["policy"]]), f"{each['jobs']:,}", *shares])
        )
    parts = ("shorter than the 10 % quantile", "within the range", "longer than the 90 % quantile")
    shown = html.table("Coverage table", ["policy", "jobs", *parts], rows)
    return f"<section id='coverage'><h2>{title}</h2>{shown}</section>"


def _movers_section(view: views.ReportView) -> str:
    if not view.pairs:
        return ""
    blocks = []
    for style, pair in list(zip(view.styles[1:], view.pairs, strict=True))[:_MOST_MOVER_TABLES]:
        gained, lost = movers(pair)
        blocks.append(
            f"<h3>{html.policy_name(style)}</h3><div class='pair'>"
            + _movers_table("gained", gained, view)
            + _movers_table("lost", lost, view)
            + "</div>"
        )
    left_out = len(view.pairs) - len(blocks)
    more = html.further(left_out, "further policy", "further policies", where="not shown")
    return (
        "<section id='movers'><h2>Which jobs gained and lost most?</h2>"
        f"{''.join(blocks)}{more}</section>"
    )


def _movers_table(what: str, jobs: pl.DataFrame, view: views.ReportView) -> str:
    if not jobs.height:
        return f"<p class='none'>No job {what} anything.</p>"
    begin = view.window.begin_seconds
    headings, rows = html.in_columns(
        jobs.iter_rows(named=True),
        ("job", lambda job: html.as_html(str(job["job_id"]))),
        ("user", lambda job: html.user_name(job["user"])),
        ("day", lambda job: f"{int((job['submit_seconds'] - begin) // 86400) + 1:,}"),
        (f"{view.baseline.unit}s", lambda job: number(job["cpus"])),
        ("runtime", lambda job: duration(job["runtime_seconds"])),
        ("wait before", lambda job: duration(job["wait_seconds"])),
        ("wait now", lambda job: duration(job["wait_seconds_other"])),
        ("change", lambda job: signed(duration(job["difference_seconds"]))),
    )
    caption = f"{count(jobs.height, 'job')} that {what} most"
    lines = (html.row(cells, words=2) for cells in rows)
    return html.table(caption, headings, lines, words=2, caption=caption)


def _footer(view: views.ReportView, command: str | None) -> str:
    conventions = ", ".join(sorted({s.meta.conventions for s in view.schedules}))
    engines = ", ".join(sorted({s.meta.engine or "real run" for s in view.schedules}))
    made = (
        f"Carried out by: {engines}. Conventions of the replay: {conventions}. “Passed”: a job "
        "submitted later started first; “would have fitted”: into the processors free at that "
        "instant. Times count from the first submission; day 1 is its first 24 hours."
    )
    return html.footer([html.as_html(made)], command)


@dataclass(frozen=True)
class Report:
    """All a report shows; the first schedule of the view is the baseline.

    ``course`` is what the event log of the only schedule says of it, if there is one.
    """

    view: views.ReportView
    parts: tuple[Figure | MissingFigure, ...]
    course: RunCourse | None = None

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The figures that this report has."""
        further = () if self.course is None else self.course.figures
        return (*(part for part in self.parts if isinstance(part, Figure)), *further)


def report_of(schedules: Sequence[Schedule], course: RunCourse | None = None) -> Report:
    """Compute a report; the first schedule is the baseline of every comparison.

    Raises ``InputError`` if there is no schedule, or one has no job in common with the first.
    """
    if not schedules:
        raise InputError("a report needs a schedule", value=0, expected="at least one")
    view = views.view_of(schedules)
    parts = (
        *([job_figures.deadlines_and_goodput(view)] if job_figures.has_deadlines(view) else []),
        relative_metrics(view),
        job_figures.wait_distribution(view),
        job_figures.slowdown_distribution(view),
        *([size_map(view)] if view.comparisons else []),
        use_over_time(view),
        job_figures.prediction_error(view),
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

    Raises ``InputError`` as ``report_of``, or if the folder cannot be written to.
    """
    report = report_of(schedules, course)
    tables = {figure.name: figure.table for figure in report.figures}
    if course is not None:
        tables |= course.plan.tables
    tables["summary"] = views.as_table(report.view.summaries)
    for position, jobs in enumerate(report.view.jobs):
        number = "" if len(report.view.jobs) == 1 else f"-{position + 1}"
        tables[f"by-user{number}"] = by_user(jobs)
        tables[f"by-size{number}"] = by_size(jobs)
    text = page(report.view, report.parts, command, course, verdict, provenance)
    write_page(folder / "report.html", text, tables)
    return report
