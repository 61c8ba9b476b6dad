"""The report of a study on disk: words first in HTML and Markdown, and the numbers behind them."""

from __future__ import annotations

from pathlib import Path

from foresail.experiments.study_page import study_page
from foresail.experiments.study_report import StudyReport, as_json, as_markdown
from foresail.model.whole_files import write_whole
from foresail.reports.files import write_page


def write_study_report(report: StudyReport, folder: Path) -> None:
    """Write ``report.html``, ``<name>.md``, ``summary.csv``, ``summary.json`` and ``runs.csv``.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    tables = {figure.name: figure.table for figure in report.figures}
    tables |= {"summary": report.summary, "runs": report.runs}
    write_page(folder / "report.html", study_page(report), tables)
    write_whole(folder / "summary.json", as_json(report).encode())
    write_whole(folder / f"{report.name}.md", as_markdown(report).encode())
