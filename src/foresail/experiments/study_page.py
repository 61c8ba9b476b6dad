"""The HTML page of a study: published claims beside what came out, then pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Final

from foresail.experiments.keys import key_of_figure
from foresail.experiments.study_report import StudyReport, group_table
from foresail.experiments.study_summary import Verdict
from foresail.model.words import count
from foresail.reports.document import as_html, behind, document, section

_MARKS: Final[dict[Verdict, str]] = {
    "holds": "✓",
    "does not hold": "✗",
    "within the interval": "≈",
    "not run": "–",
}


def study_page(report: StudyReport) -> str:
    """The whole page as text."""
    study = report.study
    body = [
        f"<header><h1>{as_html(study.title)}</h1>",
        f"<p class='situation'>{as_html(study.source)}. {as_html(report.made)}</p>",
        f"<p class='lead'>{as_html(' '.join(sentences(report)))}</p></header>",
        "<main id='numbers'>",
        _claims(report),
        *(section(figure, key_of_figure(figure), report.command) for figure in report.figures),
        *(_table(report, group) for group in study.groups),
        "</main>",
        _footer(report),
    ]
    return document(study.title, "".join(body), report.figures)


def sentences(report: StudyReport) -> list[str]:
    """What the study says of the claims, published ones and our own, in words."""
    found = Counter(each.verdict for each in report.judgements)
    total = len(report.judgements)
    words: dict[Verdict, str] = {
        "holds": "confirmed",
        "does not hold": "contradicted",
        "within the interval": "cannot be told with these seeds",
        "not run": "not run",
    }
    parts = [f"{found[verdict]} {word}" for verdict, word in words.items() if found[verdict]]
    said = [f"Of {count(total, 'claim')}: {', '.join(parts)}."]
    said += [
        f"Does not hold: {each.claim.published} Ours: {each.ours}."
        for each in report.judgements
        if each.verdict == "does not hold"
    ]
    return said


def _claims(report: StudyReport) -> str:
    rows = "".join(
        f"<tr><td>{as_html(each.claim.published)}</td><td>{as_html(each.ours)}</td>"
        f"<td class='verdict'><b aria-hidden='true'>{_MARKS[each.verdict]}</b>"
        f"{escape(each.verdict)}</td></tr>"
        for each in report.judgements
    )
    return (
        "<section id='claims'><h2>What was published, and what came out</h2>"
        "<div class='wide' tabindex='0' role='region' aria-label='Claims'><table><thead><tr>"
        "<th scope='col'>published</th><th scope='col'>ours</th><th scope='col'>verdict</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></div><p class='note'>A claim holds, or does "
        "not, where the 95 % interval over seeds (paired: systems of one seed meet the same jobs) "
        "lies on one side of it. To spare: by how much it is kept.</p></section>"
    )


def _table(report: StudyReport, group: str) -> str:
    headings, rows = group_table(report, group)
    words = headings.index("system") + 1
    head = "".join(
        f"<th scope='col'{' class=number' if at >= words else ''}>{as_html(text)}</th>"
        for at, text in enumerate(headings)
    )
    body = "".join(_row(row, words) for row in rows)
    title = f"The numbers: {group}" if len(report.study.groups) > 1 else "The numbers"
    return (
        f"<section><h2>{as_html(title)}</h2><div class='wide' tabindex='0' role='region' "
        f"aria-label='{escape(title)}'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"</table></div>{behind('summary')}</section>"
    )


def _row(row: Sequence[str], words: int) -> str:
    cells = "".join(
        f"<td{' class=number' if at >= words else ''}>{as_html(text)}</td>"
        for at, text in enumerate(row)
    )
    return f"<tr>{cells}</tr>"


def _footer(report: StudyReport) -> str:
    notes = "".join(f"<li>{as_html(note)}</li>" for note in report.study.notes)
    return (
        f"<footer><p>Made by <code>{escape(report.command)}</code></p><ul>{notes}</ul>"
        "<p id='keys'>Keys in a figure: + and − zoom along the axis, ← and → move, 0 shows the "
        "whole range, S saves a PNG.</p></footer>"
    )
