"""The page about owning and waiting: how many machines, which jobs wait, at what price."""

from __future__ import annotations

from foresail.cloud.waiting.owning import OwningAnswer
from foresail.reports.renting.page import CloudPage
from foresail.reports.renting.rent_or_wait_figures import (
    frontier_figure,
    price_by_machines,
    wait_by_machines,
)
from foresail.reports.renting.rent_or_wait_sentences import sentences
from foresail.reports.renting.rent_or_wait_tables import policies_table, values_table
from foresail.reports.renting.rent_or_wait_words import Circumstances, notes, situation


def rent_or_wait_page(answer: OwningAnswer, asked: Circumstances) -> CloudPage:
    """The page about one answer."""
    return CloudPage(
        title="How many machines to own, and which jobs wait for them?",
        situation=situation(answer, asked),
        sentences=sentences(answer, asked),
        parts=[
            policies_table(answer, asked),
            frontier_figure(answer),
            values_table(answer, asked),
            price_by_machines(answer),
            wait_by_machines(answer),
        ],
        notes=notes(answer, asked),
    )
