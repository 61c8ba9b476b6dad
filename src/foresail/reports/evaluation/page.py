"""The report of an evaluation: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl

from foresail.evaluation.replaying import Evaluation
from foresail.evaluation.scores import Scores, as_table
from foresail.evaluation.tables import STATED, Derived, derived_runtimes
from foresail.model.words import count, duration, number, percent
from foresail.reports import document as html
from foresail.reports.evaluation import view as views
from foresail.reports.figure import Figure, MissingFigure, write_page
from foresail.traces.measured import quantity
from foresail.traces.workload import Workload

_MOST_USER_TABLES: Final = 3


def _state(scored: Scores) -> float:
    return math.nan if scored.state_bytes is None else float(scored.state_bytes)


def _more(unit: str) -> tuple[html.RankedColumn[Scores], ...]:
    """Further columns, of a quantity in this unit."""
    return (
        html.RankedColumn("NMAE of median", lambda scored: scored.nmae_of_median.value, number, -1),
        html.RankedColumn(
            "MAE", lambda scored: scored.mean_absolute_error, partial(views.amount, unit), -1
        ),
        html.RankedColumn("µs, 99.9 %", lambda scored: scored.p999_seconds, views.microseconds),
        html.RankedColumn("state", _state, views.memory),
    )


def page(
    view: views.EvaluationView,
    parts: Sequence[Figure | MissingFigure],
    derived: Sequence[tuple[str, tuple[Derived, ...]]] = (),
    command: str | None = None,
) -> str:
    """The whole page as text.

    ``derived`` are the predictors with the runtimes derived from their estimates of the cpu time.
    """
    title = f"{view.first.source}: can the predictions be trusted?"
    body = [
        f"<header><h1>{html.as_html(title)}</h1>",
        f"<p class='situation'>{html.as_html(_situation(view))}</p>",
        f"{html.leading(sentences(view))}</header><main id='numbers'>",
        _scores_section(view, command),
        *(html.section(part, html.key_of(part, view.styles), command) for part in parts),
        _coverage_section(view, command),
        _derived_section(derived, command),
        _worst_section(view, command),
        "</main>",
        _footer(view, command),
    ]
    return html.document(title, "".join(body), [part for part in parts if isinstance(part, Figure)])


def sentences(view: views.EvaluationView) -> list[str]:
    """Say what the evaluation says, in words."""
    said = []
    if len(view.scored) > 1:
        known = [i for i, scored in enumerate(view.scored) if scored.relative_crps.value >= 0]
        if known:
            best = min(known, key=lambda i: view.scored[i].relative_crps.value)
            said.append(_verdict(view, best))
    for style, scored in zip(view.styles, view.scored, strict=True):
        shares, quantity = scored.errors, views.words_of(scored.quantity)
        words = (
            f"{style.label}: {percent(shares.within_factor_two)} of the estimates are within a "
            f"factor of two, {percent(shares.under)} too low, {percent(shares.tail)} too high by "
            "more than 95 %"
            if shares.jobs
            else f"{style.label}: no relative error, every {quantity} is zero"
        )
        if scored.ranges:
            words += f"; its 80 % ranges hold {percent(scored.coverage[80].value)} of the truths"
        said.append(f"{words}.")
    return said


def _verdict(view: views.EvaluationView, best: int) -> str:
    scored, baseline = view.scored[best], view.first
    words = (
        f"Closest to what happened is {view.styles[best].label}: its CRPS, the error of the whole "
        f"distribution, is {number(scored.relative_crps.value)} of the mean "
        f"{views.words_of(scored.quantity)}"
    )
    if best and baseline.relative_crps.value > 0:
        less = 1.0 - scored.relative_crps.value / baseline.relative_crps.value
        words += f", {percent(less)} less than that of {view.styles[0].label}"
    return f"{words}."


def _situation(view: views.EvaluationView) -> str:
    first = view.first
    words = [
        f"{count(first.jobs, 'job')} over {duration(view.span_seconds)}",
        f"the {views.words_of(first.quantity)} predicted at submission",
        "each job learned when it had ended"
        if first.learning == "on_completion"
        else "each job learned right after it was predicted",
    ]
    if first.unknown_jobs:
        words.append(
            f"{count(first.unknown_jobs, 'job')} left out, {views.words_of(first.quantity)} unknown"
        )
    if first.errors.zero_jobs:
        words.append(f"{first.errors.zero_jobs:,} of zero not in relative errors")
    return ", ".join(words) + "."


def _scores_section(view: views.EvaluationView, command: str | None) -> str:
    names = [each.predictor for each in view.scored]
    first, more = (
        html.RankedTable("predictor", names, view.scored, columns)
        for columns in (views.COLUMNS, _more(view.first.unit))
    )
    star = "★ best of its column. " if len(view.scored) > 1 else ""
    said = html.note(
        f"{star}The estimate is the mean of the belief. MAE, NMAE: mean absolute error, and over "
        "the mean truth. Median error: in per cent of the truth. 80 % holds, width: share of the "
        "truths in the range from the 10 % to the 90 % quantile, and its median width over the "
        "median estimate. µs: all that a predictor does for a job, in the median and the 99.9 % "
        "quantile."
    )
    named = [*map(html.policy_name, view.styles)]
    scores = html.ranked("Scores", first, named) + said + html.ranked("Further scores", more, named)
    return html.numbers_section("scores", "The numbers", scores, command)


def _derived_section(
    derived: Sequence[tuple[str, tuple[Derived, ...]]], command: str | None
) -> str:
    if not derived:
        return ""
    rows = [
        html.row(
            [
                html.as_html(predictor),
                "itself" if each.name == "runtime" else f"cpu time ÷ {views.words_of(each.name)}",
                percent(each.shares.within_factor_two),
                percent(each.shares.under),
                percent(each.shares.under_by_half),
                percent(each.shares.tail),
                f"{each.shares.jobs:,}",
            ],
            words=2,
        )
        for predictor, ways in derived
        for each in ways
    ]
    shares = ("within 2×", "too short", "by more than half", "over by more than 95 %", "jobs")
    headings = ("predictor", "runtime estimated from", *shares)
    said = html.note(
        "Only jobs that all ways can estimate. A predictor that limits its estimates to the "
        "requested time is no good for work."
    )
    ways_table = html.table("Derived runtimes", headings, rows, words=2)
    title = "Is the work easier to predict than the runtime?"
    return html.numbers_section("derived", title, ways_table + said, command)


_UserColumns: TypeAlias = Sequence[tuple[str, Callable[[dict[str, Any]], str]]]
_FIRST: Final[_UserColumns] = (
    ("user", lambda each: html.user_name(each["user"])),
    ("jobs", lambda each: f"{each['jobs']:,}"),
)


def _worst_section(view: views.EvaluationView, command: str | None) -> str:
    title = "Whose jobs are predicted worst?"
    if all(each["worst_users"]["user"].is_null().all() for each in view.details):
        return html.missing(title, "The log does not name users.")
    amounts = partial(views.amount, view.first.unit)
    columns: _UserColumns = (
        *_FIRST,
        ("of all error", lambda each: percent(each["share_of_error"])),
        ("within 2×", lambda each: percent(each["within_factor_two"])),
        ("too low", lambda each: percent(each["under"])),
        ("median truth", lambda each: html.as_html(amounts(each["median_actual"]))),
        ("median estimate", lambda each: html.as_html(amounts(each["median_predicted"]))),
    )
    return _users_section(view, title, "worst_users", columns, command)


def _coverage_section(view: views.EvaluationView, command: str | None) -> str:
    columns: _UserColumns = (
        *_FIRST,
        *((f"in {each} %", partial(_covered, stated=each)) for each in STATED),
        ("80 % width", lambda each: number(each["relative_width_80"])),
    )
    title = "Do the ranges hold for every user?"
    said = (
        "The users with most jobs: the share of their truths inside each stated range, and the "
        "median width of their 80 % range over their median estimate."
    )
    return _users_section(view, title, "coverage_by_user", columns, command, said, of_ranges=True)


def _covered(each: dict[str, Any], stated: int) -> str:
    return percent(each[f"covered_{stated}"])


def _users_section(
    view: views.EvaluationView,
    title: str,
    detail: str,
    columns: _UserColumns,
    command: str | None,
    said: str = "",
    *,
    of_ranges: bool = False,
) -> str:
    """A table of users for each of the best predictors that have one (and state ranges)."""
    known = [
        i
        for i in range(len(view.scored))
        if view.details[i][detail].height and (view.has_ranges(i) or not of_ranges)
    ]
    shown = sorted(known, key=lambda i: _crps(view.scored[i]))[:_MOST_USER_TABLES]
    if not shown:
        return ""
    blocks = []
    for i in sorted(shown):
        headings, rows = html.in_columns(view.details[i][detail].iter_rows(named=True), *columns)
        blocks.append(f"<h3>{html.policy_name(view.styles[i])}</h3>")
        blocks.append(html.table(f"{title} {view.styles[i].label}", headings, map(html.row, rows)))
    left_out = html.further(len(known) - len(shown), "further predictor")
    tables = "".join(blocks) + html.note(said) + left_out
    return html.numbers_section(detail.replace("_", "-"), title, tables, command)


def _crps(scored: Scores) -> float:
    return scored.crps if math.isfinite(scored.crps) else math.inf


def _footer(view: views.EvaluationView, command: str | None) -> str:
    blocks = view.first.blocks
    intervals = (
        f"Intervals are 95 % ranges over draws of {blocks} blocks of "
        f"{duration(view.first.block_seconds)} of submission."
        if blocks
        else "The log is too short for intervals."
    )
    words = (
        f"{intervals} “Too low”, “under-estimated”: below the truth. CRPS: twice the pinball loss, "
        "averaged over all quantiles; for a single number the absolute error."
    )
    return html.footer([words], command)


def write_report(
    workload: Workload,
    evaluations: Sequence[Evaluation],
    folder: Path,
    *,
    command: str | None = None,
) -> views.EvaluationView:
    """Write ``report.html``, ``scores.csv`` and a CSV per figure and table into a folder.

    The evaluations are of this workload, the baseline first. Where the workload knows the cpu time
    of jobs, runtimes derived from it are scored as well.

    Raises ``InputError`` as ``evaluation_view``, or if the folder cannot be written to.
    """
    view = views.evaluation_view(evaluations)
    parts = views.figures(view)
    derived = _derived(workload, evaluations)
    tables = {part.name: part.table for part in parts if isinstance(part, Figure)}
    tables["scores"] = as_table(view.scored)
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
