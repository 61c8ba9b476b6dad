"""The page about the purchasing mix: what to reserve, what to rent, what that costs."""

from __future__ import annotations

from foresail.model.words import count
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.renting.page import CloudPage, NumbersTable
from foresail.reports.renting.purchase_answer import PurchaseAnswer
from foresail.reports.renting.purchase_figures import course_figure, errors_figure, months_figure
from foresail.reports.renting.purchase_tables import (
    advice_table,
    costs_table,
    errors_table,
    options_table,
)
from foresail.reports.renting.purchase_words import notes, period, sentences


def purchase_page(answer: PurchaseAnswer) -> CloudPage:
    """The page about one answer."""
    report = answer.report
    sold = "without" if report.terms.transient is None else "with"
    parts: list[NumbersTable | Figure | MissingFigure] = [
        costs_table(answer),
        advice_table(answer),
        course_figure(answer),
        options_table(report),
        months_figure(report),
        errors_table(report),
        errors_figure(report),
    ]
    return CloudPage(
        title="What to reserve, and what to rent?",
        situation=(
            f"{answer.log}: {count(report.jobs, 'job')} over {period(report.log_hours)} that never "
            f"wait; prices {answer.catalogue} of {answer.valid_on}, options of "
            f"“{report.provider}”, {sold} machines that may be taken back."
        ),
        sentences=sentences(answer),
        parts=parts,
        notes=notes(answer),
    )
