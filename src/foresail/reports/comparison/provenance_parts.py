"""The parts of a page that say where its figures come from, and what is odd about the log."""

from __future__ import annotations

from foresail.model.words import count
from foresail.reports.document import as_html
from foresail.reports.html_parts import row, table
from foresail.traces.facts import Provenance


def odd_words(provenance: Provenance) -> str:
    """What is odd, to be said before any figure; empty where nothing is."""
    said = (f"<p class='lead'>Odd: {as_html(each.words)}.</p>" for each in provenance.findings)
    return "".join(said)


def provenance_section(provenance: Provenance) -> str:
    """Version, source and reader, and a table of what was done to the source's rows."""
    rows = [
        row(
            [as_html(each.cause.replace("_", " ")), as_html(each.example or "–"), f"{each.rows:,}"],
            2,
        )
        for each in provenance.treated
    ]
    headings = ("repaired, dropped, folded or filled in", "the first", "rows")
    shown = (
        table("Provenance table", headings, rows, words=2) if rows else "<p>No row was changed.</p>"
    )
    digest = "" if provenance.sha256 is None else f" (SHA-256 {provenance.sha256})"
    told = (
        f"Foresail {provenance.foresail}, reader {provenance.reader}, {provenance.source}{digest}: "
        f"{count(provenance.jobs, 'job')} simulated."
    )
    title = "<h2>What was done to the log</h2>"
    return f"<section id='provenance'>{title}<p>{as_html(told)}</p>{shown}</section>"
