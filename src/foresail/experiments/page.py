"""The HTML page of a campaign: one file, no request to anywhere, words before pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any, Final

import polars as pl
from plotly.offline import get_plotlyjs

from foresail.experiments import published
from foresail.experiments.findings import Findings
from foresail.experiments.selection import SCORE, candidates, ranking
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import DARK, LIGHT
from foresail.reports.words import count, duration, number, percent

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

_SECURITY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)


def page(report: Findings, command: str | None = None) -> str:
    """The whole page as text.

    Parameters
    ----------
    report
        What it shows.
    command
        The command that made it.
    """
    logs = report.results["log"].n_unique()
    policies = report.results["policy"].n_unique()
    title = f"{count(policies, 'policy', 'policies')} on {count(logs, 'log')}"
    drawn = [part for part in report.parts if isinstance(part, Figure)]
    specifications = {
        figure.name: {
            "data": list(figure.traces),
            "layout": figure.layout,
            "image": figure.image_layout,
        }
        for figure in drawn
    }
    asset = resources.files("foresail.reports")
    return "".join(
        [
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"{_SECURITY}\">",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='color-scheme' content='light dark'>",
            f"<title>{escape(title)}</title>",
            f"<style>{_variables()}{asset.joinpath('page.css').read_text('utf-8')}</style>",
            "</head><body><a class='skip' href='#numbers'>Skip to the numbers and figures</a>",
            f"<header><h1>{escape(title)}</h1>",
            f"<p class='lead'>{escape(' '.join(sentences(report)))}</p></header>",
            "<main id='numbers'>",
            _slowdowns(report),
            _choices(report),
            *(_part(part) for part in report.parts),
            _errors(report),
            "</main>",
            _footer(report, command),
            _data("figures", specifications),
            _data("themes", {"light": LIGHT, "dark": DARK}),
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{asset.joinpath('page.js').read_text('utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def sentences(report: Findings) -> list[str]:
    """What the campaign says, in words."""
    if report.choices is None:
        return ["With one log there is no other log to choose a policy by."]
    mean = float(report.choices["reduction"].to_numpy().mean())
    worst = float(report.choices["longest_wait_ratio"].to_numpy().max())
    said = [
        f"A policy chosen for each log by the results on the others alone changes the average "
        f"bounded slowdown against {report.rule.baseline} by {percent(-mean)} in the mean "
        f"({', '.join(f'{log} {percent(-r)}' for log, r in _reductions(report.choices))}).",
        f"Its longest wait is at most {number(worst)} times that of {report.rule.baseline}.",
    ]
    scores = report.results.filter(pl.col("policy") == report.rule.baseline)
    hindsight = _best_in_hindsight(report, scores)
    if hindsight is not None:
        policy, reduction = hindsight
        said.append(
            f"The policy with the smallest sum in hindsight, {policy}, changes it by "
            f"{percent(-reduction)}."
        )
    return said


def _best_in_hindsight(report: Findings, base: pl.DataFrame) -> tuple[str, float] | None:
    ranked = ranking(report.results, report.rule, candidates(report.results))
    if ranked.is_empty():
        return None
    policy = ranked["policy"][0]
    own = report.results.filter(pl.col("policy") == policy)
    both = own.join(base.select("log", baseline=SCORE), on="log")
    return policy, float((1.0 - both[SCORE] / both["baseline"]).to_numpy().mean())


def _reductions(choices: pl.DataFrame) -> list[tuple[str, float]]:
    return list(choices.select("log", "reduction").iter_rows())


def _slowdowns(report: Findings) -> str:
    rows = []
    columns = list(HEADINGS)
    for row in report.headline.iter_rows(named=True):
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


def _choices(report: Findings) -> str:
    title = "Which policy do the other logs recommend?"
    if report.choices is None:
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
        for row in report.choices.iter_rows(named=True)
    ]
    headings = [
        "log",
        "chosen by the other logs",
        report.rule.baseline,
        "chosen",
        "reduction",
        "longest wait",
    ]
    return _table_section("choices", title, headings, rows, 2)


def _errors(report: Findings) -> str:
    rows = [
        f"<tr><th scope='row'>{escape(row['log'])}</th>"
        f"<td><code>{escape(row['predictor'])}</code></td>"
        f"<td class='number'>{duration(row['mean_absolute_error_seconds'])}</td>"
        f"<td class='number'>{_scientific(row['mean_e_loss'])}</td>"
        f"<td class='number'>{percent(row['under_predicted_share'])}</td></tr>"
        for row in report.errors.iter_rows(named=True)
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
        f"<tbody>{''.join(rows)}</tbody></table></div>{_behind(name)}</section>"
    )


def _part(part: Figure | MissingFigure) -> str:
    if isinstance(part, MissingFigure):
        return (
            f"<section class='missing'><h2>{escape(part.title)}</h2>"
            f"<p><strong>{escape(part.problem)}</strong> {escape(part.remedy)}</p></section>"
        )
    findings = "".join(f"<li>{escape(finding)}</li>" for finding in part.findings)
    key = "".join(
        f"<li><span style='color:var(--{_colour(trace)[1:]})'>●</span> {escape(trace['name'])}</li>"
        for trace in part.traces
        if trace.get("showlegend")
    )
    return (
        f"<section class='figure' id='section-{part.name}'><h2>{escape(part.title)}</h2><figure>"
        f"<ul class='finding' id='{part.name}-finding'>{findings}</ul><ul class='key'>{key}</ul>"
        f"<div class='plot' id='{part.name}' tabindex='0' role='img' data-figure='{part.name}' "
        f"aria-labelledby='{part.name}-finding' style='height:{part.layout['height']}px'>"
        "<p class='loading'>Drawing …</p></div>"
        f"<div class='tools'><button type='button' data-save='{part.name}'>Save as PNG</button>"
        f"<button type='button' data-reset='{part.name}'>Whole range</button></div>"
        f"<figcaption>{escape(part.note)}</figcaption></figure>{_behind(part.name)}</section>"
    )


def _colour(trace: Mapping[str, Any]) -> str:
    return str((trace.get("line") or trace["marker"])["color"])


def _behind(name: str) -> str:
    return (
        f"<p class='behind'>Numbers behind it: <a href='{name}.csv'>{name}.csv</a> beside this "
        "page.</p>"
    )


def _footer(report: Findings, command: str | None) -> str:
    made = f"<p>Made by <code>{escape(command)}</code></p>" if command else ""
    conventions = ", ".join(report.results["conventions"].unique(maintain_order=True))
    return (
        f"<footer>{made}<p>Conventions of the replay: {escape(conventions)}. SJBF: backfilling "
        "shortest predicted runtime first. Learned: the 20 regressions with every correction. "
        "Clairvoyant policies are told the runtimes; they bound what predictions can give. "
        "E-Loss: log10 of processors × runtime, times the squared error of a prediction above "
        "the runtime, or the error of one below.</p></footer>"
    )


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} × 10<sup>{int(exponent)}</sup>"


def _variables() -> str:
    light, dark = (
        "".join(f"--{role}:{colour};" for role, colour in theme.items()) for theme in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
    )


def _data(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    return f"<script type='application/json' id='{name}'>{text}</script>"
