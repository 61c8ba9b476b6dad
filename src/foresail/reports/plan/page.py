"""The page of one moment of a run: words, the plan as a picture, which jobs wait and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import polars as pl

from foresail.explain.reason_words import REASONS, in_words, waiting_words
from foresail.explain.run_snapshot import ReasonShare, RunSnapshot, WaitingJob
from foresail.model.words import count, duration, from_now, number, percent
from foresail.reports import document as html
from foresail.reports.figure import Figure, MissingFigure, write_page
from foresail.reports.plan.plan_figure import from_start, plan_figure
from foresail.reports.plan.view import PlanView, chance_words, solver_words
from foresail.reports.plots import PlottedTable, drawn, log_styles, plot_of

_MOST_ROWS: Final = 100


def _waiting_table(view: PlanView) -> pl.DataFrame:
    """A row per waiting job, in order of submission; times in seconds from the run's start."""
    moment, zero = view.moment, view.moment.zero_seconds
    texts: dict[str, Callable[[WaitingJob], str | None]] = {
        "job_id": lambda each: each.pending.job.job_id,
        "user": lambda each: each.pending.job.user,
        "reason": lambda each: None if each.reason is None else each.reason.code.value,
        "reason_in_words": lambda each: waiting_words(each, moment.now),
    }
    numbers: dict[str, Callable[[WaitingJob], float | None]] = {
        "cpus": lambda each: each.pending.job.cpus,
        "submit_seconds": lambda each: each.pending.job.submit_seconds - zero,
        "predicted_low_seconds": lambda each: each.pending.prediction.quantile(0.1),
        "predicted_median_seconds": lambda each: each.pending.prediction.quantile(0.5),
        "predicted_high_seconds": lambda each: each.pending.prediction.quantile(0.9),
        "planned_start_seconds": lambda each: _start(each, zero),
        "deadline_seconds": lambda each: from_start(each.pending.job.deadline_seconds, zero),
        "chance_of_deadline": lambda each: view.chances[each.pending.job.job_id],
    }
    schema = dict.fromkeys(texts, pl.String()) | dict.fromkeys(numbers, pl.Float64())
    columns = {**texts, **numbers}
    rows = [[value(each) for value in columns.values()] for each in moment.waiting]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _start(waiting: WaitingJob, zero: float) -> float | None:
    return None if waiting.planned is None else waiting.planned.start_seconds - zero


def in_order(view: PlanView) -> list[WaitingJob]:
    """The waiting jobs: by planned start, then those that are not planned, by submission."""
    return sorted(
        view.moment.waiting,
        key=lambda each: math.inf if each.planned is None else each.planned.start_seconds,
    )


def _solver_section(view: PlanView) -> str:
    """HTML: what the solver believed of the last plan."""
    words = solver_words(view.moment.solved)
    return (
        "<section id='solver'><h2>What did the solver believe?</h2>"
        f"<p class='lead'>{html.as_html(words)}</p></section>"
    )


def _waiting_section(view: PlanView, command: str | None) -> str:
    moment = view.moment
    title = "Which jobs wait, and why?"
    if not moment.waiting:
        remedy = "Choose another with --at to see which do."
        return html.missing(title, "No job waits at this moment.", remedy)
    free = html.note(f"{moment.idle_cpus:g} cpus stand idle.")
    ordered = in_order(view)
    shown = ordered[:_MOST_ROWS]
    columns = waiting_columns(view, shown)
    headings: list[html.Cell] = [(name, kind) for name, kind, _ in columns]
    chances = (view.chances[each.pending.job.job_id] for each in shown)
    risky = [chance is not None and chance < 0.5 for chance in chances]
    rows = [
        html.row([_cell(column, at, at_risk) for column in columns], words=len(columns))
        for at, at_risk in enumerate(risky)
    ]
    jobs = html.table("Waiting jobs", headings, rows, words=len(columns))
    more = html.further(len(ordered) - len(shown), "further job")
    return html.numbers_section("waiting", title, free + jobs + more, command)


def _cell(column: tuple[str, str, list[str]], at: int, at_risk: bool) -> html.Cell:
    name, kind, texts = column
    mark = "<span class='risk'>✕ </span>" if at_risk and name == "chance of it" else ""
    text = escape(texts[at]) if name == "job" else f"{mark}{html.as_html(texts[at])}"
    return text, kind


def waiting_columns(
    view: PlanView, waiting: Sequence[WaitingJob]
) -> list[tuple[str, str, list[str]]]:
    """Heading, whether it is of numbers (``number``), and cells, of columns that say something."""
    now = view.moment.now
    says: tuple[tuple[str, str, Callable[[WaitingJob], str]], ...] = (
        ("job", "", lambda each: each.pending.job.job_id),
        ("cpus", "number", lambda each: number(each.pending.job.cpus)),
        ("waits for", "number", lambda each: _for_how_long(now - each.pending.job.submit_seconds)),
        ("expected runtime", "number", _expected_runtime),
        ("planned start", "number", lambda each: _planned_start(each, now)),
        ("deadline", "number", lambda each: _deadline(each, now)),
        ("chance of it", "number", lambda each: _chance(view, each)),
        ("why it waits", "", lambda each: waiting_words(each, now)),
    )
    columns = [(name, kind, [say(each) for each in waiting]) for name, kind, say in says]
    return [column for column in columns if set(column[2]) != {"–"}]


def _expected_runtime(waiting: WaitingJob) -> str:
    low, high = (waiting.pending.prediction.quantile(level) for level in (0.1, 0.9))
    return duration(low) if low == high else f"{duration(low)} – {duration(high)}"


def _planned_start(waiting: WaitingJob, now: float) -> str:
    return (
        "not planned" if waiting.planned is None else in_words(waiting.planned.start_seconds - now)
    )


def _deadline(waiting: WaitingJob, now: float) -> str:
    deadline = waiting.pending.job.deadline_seconds
    return "–" if deadline is None else from_now(deadline - now)


def _chance(view: PlanView, waiting: WaitingJob) -> str:
    job = waiting.pending.job
    if job.deadline_seconds is None:
        return "–"
    return chance_words(view.chances[job.job_id], waiting.planned is not None)


def _for_how_long(seconds: float) -> str:
    return duration(seconds) if seconds >= 1.0 else "under 1 s"


@dataclass(frozen=True)
class PlanPart:
    """A moment as a part of a page: the picture, what stands beside it, the numbers behind."""

    figure: Figure
    view: PlanView

    @classmethod
    def from_snapshot(cls, moment: RunSnapshot) -> PlanPart:
        """Lay out and draw a moment."""
        figure, view = plan_figure(moment)
        return cls(figure, view)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The numbers by the stem of their file."""
        return {self.figure.name: self.figure.table, "waiting": _waiting_table(self.view)}

    def html(self, command: str | None) -> str:
        """All sections of the moment."""
        picture = html.section(self.figure, html.key_of(self.figure), command)
        return picture + _waiting_section(self.view, command) + _solver_section(self.view)


@dataclass(frozen=True)
class RunCourse:
    """Addition of an event log to its run's report: one moment, and why jobs waited."""

    plan: PlanPart
    waits: Figure | MissingFigure

    @property
    def figures(self) -> list[Figure]:
        """Return the figures that are drawn."""
        return [part for part in (self.plan.figure, self.waits) if isinstance(part, Figure)]

    def html(self, command: str | None) -> str:
        """Their sections."""
        return html.section(self.waits, "", command) + self.plan.html(command)


def plan_page(part: PlanPart, run: str, command: str | None = None) -> str:
    """The page of a moment of a run, which is called ``run``, as text."""
    moment = part.view.moment
    title = f"{run}: the plan {duration(moment.since_start)} after the start"
    made = f"<footer><p>Made by <code>{escape(command)}</code></p></footer>" if command else ""
    body = (
        f"<header><h1>{html.as_html(title)}</h1>"
        f"<p class='situation'>policy <code>{escape(moment.policy)}</code></p></header>"
        f"<main id='numbers'>{part.html(None)}</main>{made}"
        "<p id='keys' hidden>Keys: plus and minus zoom, arrows move, 0 shows all, s saves.</p>"
    )
    return html.document(title, body, [part.figure])


def write_plan(part: PlanPart, folder: Path, run: str, command: str | None = None) -> None:
    """Write ``plan.html`` and the CSV files behind it into a folder, made unless it is there.

    Raises ``InputError`` if the folder cannot be written to.
    """
    write_page(folder / "plan.html", plan_page(part, run, command), part.tables)


_WHY: Final = "Why did jobs wait?"


def waiting_by_reason(shares: tuple[ReasonShare, ...]) -> Figure | MissingFigure:
    """A bar per reason: its share of all waiting time, and how many jobs it kept waiting."""
    total = sum(each.seconds for each in shares)
    if total <= 0.0:
        return MissingFigure(_WHY, "No job has waited.", "All started when they were submitted.")
    table = pl.DataFrame(
        {
            "reason": [_reason_code(each) for each in shares],
            "waiting_seconds": [each.seconds for each in shares],
            "share": [each.seconds / total for each in shares],
            "jobs": [each.jobs for each in shares],
        }
    )
    names = [f"{_reason_name(each)} ({count(each.jobs, 'job')})" for each in shares]
    plot = plot_of("rows", "name", "share", "", "share of all waiting time", y_kind="share")
    (style,) = log_styles(["share"])
    return drawn(
        "waiting-by-reason",
        _WHY,
        [_longest_reason(shares, total)],
        [[PlottedTable(style, plot, table.with_columns(name=pl.Series(names)))]],
        table=table,
        note="From the event log: every second that a job waited counts for the reason that was "
        "the last to be given for it. A job may have waited for several reasons, one after the "
        "other.",
        height=90 + 34 * len(shares),
    )


def _reason_code(share: ReasonShare) -> str:
    return "none" if share.code is None else share.code.value


def _reason_name(share: ReasonShare) -> str:
    return "the next pass is still to come" if share.code is None else REASONS[share.code]


def _longest_reason(shares: tuple[ReasonShare, ...], total: float) -> str:
    first = shares[0]
    share = percent(first.seconds / total)
    name = _reason_name(first)
    return f"Jobs waited for {duration(total)} in all, {share} of it with the reason “{name}”."
