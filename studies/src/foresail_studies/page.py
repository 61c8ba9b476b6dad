"""The HTML page of a study, published claims beside what came out, and all its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from foresail.model.whole_files import all_or_none, write_whole
from foresail.model.words import count
from foresail.reports.document import (
    as_html,
    behind,
    document,
    footer,
    key_of,
    note,
    row,
    section,
    table,
)
from foresail.reports.figure import write_page
from foresail_studies.report import StudyReport, Verdict, as_json, as_markdown, group_table

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
        *(section(figure, key_of(figure), report.command) for figure in report.figures),
        *(_table(report, group) for group in study.groups),
        "</main>",
        footer(map(as_html, study.notes), report.command),
    ]
    return document(study.title, "".join(body), report.figures)


def write_study_report(report: StudyReport, folder: Path) -> None:
    """Write ``report.html``, ``<name>.md``, ``summary.csv``, ``summary.json`` and ``runs.csv``.

    Raises ``InputError`` if the folder cannot be written to.
    """
    tables = {figure.name: figure.table for figure in report.figures}
    tables |= {"summary": report.summary, "runs": report.runs}
    with all_or_none(folder) as drafts:
        write_page(drafts / "report.html", study_page(report), tables)
        write_whole(drafts / "summary.json", as_json(report).encode())
        write_whole(drafts / f"{report.name}.md", as_markdown(report).encode())


def sentences(report: StudyReport) -> list[str]:
    """Describe the study's findings on the claims, published ones and our own."""
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
    rows = [
        row(
            [
                as_html(each.claim.published),
                as_html(each.ours),
                (f"<b aria-hidden='true'>{_MARKS[each.verdict]}</b>{each.verdict}", "verdict"),
            ],
            words=3,
        )
        for each in report.judgements
    ]
    said = note(
        "A claim holds, or does not, where the 95 % interval over seeds (paired: systems of one "
        "seed meet the same jobs) lies on one side of it. To spare: by how much it is kept."
    )
    claims = table("Claims", ["published", "ours", "verdict"], rows, words=3)
    return (
        f"<section id='claims'><h2>What was published, and what came out</h2>{claims}{said}"
        "</section>"
    )


def _table(report: StudyReport, group: str) -> str:
    headings, told = group_table(report, group)
    words = headings.index("system") + 1
    rows = [row([as_html(text) for text in each], words) for each in told]
    title = f"The numbers: {group}" if len(report.study.groups) > 1 else "The numbers"
    numbers = table(title, [as_html(text) for text in headings], rows, words)
    return f"<section><h2>{as_html(title)}</h2>{numbers}{behind('summary')}</section>"
