"""The HTML page of a campaign: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import polars as pl

from foresail.experiments import published
from foresail.experiments.findings import Findings
from foresail.experiments.keys import key_of_figure
from foresail.experiments.selection import SCORE, candidates, ranking
from foresail.model.words import count, duration, number, percent, signed
from foresail.reports.document import as_html, behind, document, section
from foresail.reports.figure import Figure

HEADINGS: Final[Mapping[str, str]] = {
    "easy": "EASY",
    "easy_plus_plus": "EASY++",
    "clairvoyant_fcfs": "clairvoyant",
    "clairvoyant_sjbf": "clairvoyant SJBF",
    "learned_fcfs_best": "learned, best",
    "learned_fcfs_worst": "learned, worst",
    "learned_sjbf_best": "learned SJBF, best",
    "learned_sjbf_worst": "learned SJBF, worst",
    "chosen": "chosen",
}
"""Columns of the main table, and how people call them."""


def page(found: Findings, command: str | None = None) -> str:
    """The whole page as text.

    Parameters
    ----------
    found
        What it shows.
    command
        The command that made it.
    """
    logs = found.results["log"].n_unique()
    policies = found.results["policy"].n_unique()
    title = f"{count(policies, 'policy', 'policies')} on {count(logs, 'log')}"
    body = [
        f"<header><h1>{as_html(title)}</h1>",
        f"<p class='lead'>{as_html(' '.join(sentences(found)))}</p></header>",
        "<main id='numbers'>",
        _slowdowns(found),
        _choices(found),
        *(section(part, key_of_figure(part), command) for part in found.parts),
        _errors(found),
        "</main>",
        _footer(found, command),
    ]
    drawn = [part for part in found.parts if isinstance(part, Figure)]
    return document(title, "".join(body), drawn)


def sentences(found: Findings) -> list[str]:
    """What the campaign says, in words."""
    if found.choices is None:
        return ["With one log there is no other log to choose a policy by."]
    mean = float(found.choices["reduction"].to_numpy().mean())
    worst = float(found.choices["longest_wait_ratio"].to_numpy().max())
    said = [
        f"A policy chosen for each log by the results on the others alone changes the average "
        f"bounded slowdown against {found.rule.baseline} by {signed(percent(-mean))} in the mean "
        f"({', '.join(f'{log} {signed(percent(-r))}' for log, r in _reductions(found.choices))}).",
        f"Its longest wait is at most {number(worst)} times that of {found.rule.baseline}.",
    ]
    scores = found.results.filter(pl.col("policy") == found.rule.baseline)
    hindsight = _best_in_hindsight(found, scores)
    if hindsight is not None:
        policy, reduction = hindsight
        said.append(
            f"The policy with the smallest sum in hindsight, {policy}, changes it by "
            f"{signed(percent(-reduction))}."
        )
    return said


def _best_in_hindsight(found: Findings, base: pl.DataFrame) -> tuple[str, float] | None:
    ranked = ranking(found.results, found.rule, candidates(found.results))
    if ranked.is_empty():
        return None
    policy = ranked["policy"][0]
    own = found.results.filter(pl.col("policy") == policy)
    both = own.join(base.select("log", baseline=SCORE), on="log")
    return policy, float((1.0 - both[SCORE] / both["baseline"]).to_numpy().mean())


def _reductions(choices: pl.DataFrame) -> list[tuple[str, float]]:
    return list(choices.select("log", "reduction").iter_rows())


def _slowdowns(found: Findings) -> str:
    rows = []
    columns = list(HEADINGS)
    for row in found.headline.iter_rows(named=True):
        cells = "".join(f"<td class='number'>{number(row[column])}</td>" for column in columns)
        rows.append(f"<tr><th scope='row'>{escape(row['log'])}</th>{cells}</tr>")
        known = published.published(row["log"])
        if known is not None:
            cells = "".join(
                f"<td class='number'>{number(known[column])}</td>" for column in columns
            )
            rows.append(f"<tr class='stated'><th scope='row'>as published</th>{cells}</tr>")
    return _table_section(
        "slowdowns", "Average bounded slowdown", ["log", *HEADINGS.values()], rows, 1
    )


def _choices(found: Findings) -> str:
    title = "Which policy do the other logs recommend?"
    if found.choices is None:
        return (
            f"<section class='missing'><h2>{title}</h2><p><strong>The campaign has one log."
            "</strong> Add logs that resemble your own.</p></section>"
        )
    rows = [
        f"<tr><th scope='row'>{escape(row['log'])}</th>"
        f"<td><code>{escape(row['policy'])}</code></td>"
        f"<td class='number'>{number(row['baseline'])}</td>"
        f"<td class='number'>{number(row[SCORE])}</td>"
        f"<td class='number'>{percent(row['reduction'])}</td>"
        f"<td class='number'>{number(row['longest_wait_ratio'])}×</td></tr>"
        for row in found.choices.iter_rows(named=True)
    ]
    headings = [
        "log",
        "chosen by the other logs",
        found.rule.baseline,
        "chosen",
        "reduction",
        "longest wait",
    ]
    return _table_section("choices", title, headings, rows, 2)


def _errors(found: Findings) -> str:
    rows = [
        f"<tr><th scope='row'>{escape(row['log'])}</th>"
        f"<td><code>{escape(row['predictor'])}</code></td>"
        f"<td class='number'>{duration(row['mean_absolute_error_seconds'])}</td>"
        f"<td class='number'>{_scientific(row['mean_e_loss'])}</td>"
        f"<td class='number'>{percent(row['under_predicted_share'])}</td></tr>"
        for row in found.errors.iter_rows(named=True)
        if row["mean_absolute_error_seconds"] is not None
    ]
    headings = ["log", "predictor", "mean absolute error", "mean E-Loss", "too short"]
    return _table_section("prediction-errors", "How good are the predictions?", headings, rows, 2)


def _table_section(
    name: str, title: str, headings: Sequence[str], rows: Sequence[str], texts: int
) -> str:
    """A table whose first ``texts`` columns are words and the others numbers."""
    head = "".join(
        f"<th scope='col'{'' if position < texts else ' class=number'}>{escape(heading)}</th>"
        for position, heading in enumerate(headings)
    )
    return (
        f"<section id='{name}-table'><h2>{escape(title)}</h2><div class='wide' tabindex='0' "
        f"role='region' aria-label='{escape(title)}'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>{behind(name)}</section>"
    )


def _footer(found: Findings, command: str | None) -> str:
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    conventions = ", ".join(found.results["conventions"].unique(maintain_order=True))
    return (
        f"<footer>{made}<p>Conventions of the replay: {escape(conventions)}. SJBF: backfilling "
        "shortest predicted runtime first. Learned: the 20 regressions with every correction. "
        "Clairvoyant policies are told the runtimes; they bound what predictions can give. "
        "E-Loss: log10 of processors × runtime, times the squared error of a prediction above "
        "the runtime, or the error of one below.</p>"
        "<p id='keys'>Keys in a figure: + and − zoom along the axis, ← and → move, 0 shows the "
        "whole range, S saves a PNG.</p></footer>"
    )


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} × 10<sup>{int(exponent)}</sup>"
