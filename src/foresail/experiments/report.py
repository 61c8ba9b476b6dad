"""A campaign's report on disk: the page, and a CSV file behind everything that it shows."""

from __future__ import annotations

from foresail.experiments.findings import Findings, findings_of
from foresail.experiments.page import page
from foresail.experiments.results import Results
from foresail.experiments.selection import SelectionRule
from foresail.reports.figure import Figure
from foresail.reports.files import write_page


def write_report(results: Results, rule: SelectionRule, *, command: str | None = None) -> Findings:
    """Write ``report.html`` and the CSV files into the campaign's folder.

    Raises
    ------
    InputError
        As ``findings_of``, or if the folder cannot be written to.
    """
    found = findings_of(results, rule)
    tables = {part.name: part.table for part in found.parts if isinstance(part, Figure)}
    tables |= {
        "results": found.results,
        "slowdowns": found.headline,
        "prediction-errors": found.errors,
    }
    if found.choices is not None:
        tables["choices"] = found.choices
    write_page(results.folder / "report.html", page(found, command), tables)
    return found
