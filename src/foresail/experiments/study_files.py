"""The report of a study on disk: words first in HTML and Markdown, and the numbers behind them."""

from __future__ import annotations

from pathlib import Path

from foresail.experiments.study_page import study_page
from foresail.experiments.study_report import StudyReport, as_json, as_markdown
from foresail.reports.files import make_folder, write_whole


def write_study_report(report: StudyReport, folder: Path) -> None:
    """Write ``report.html``, ``<name>.md``, ``summary.csv``, ``summary.json`` and ``runs.csv``.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    make_folder(folder)
    for figure in report.figures:
        write_whole(folder / f"{figure.name}.csv", figure.table.write_csv().encode())
    write_whole(folder / "summary.csv", report.summary.write_csv().encode())
    write_whole(folder / "runs.csv", report.runs.write_csv().encode())
    write_whole(folder / "summary.json", as_json(report).encode())
    write_whole(folder / f"{report.name}.md", as_markdown(report).encode())
    write_whole(folder / "report.html", study_page(report).encode())
