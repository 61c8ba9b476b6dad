"""The page of one moment of a run: words, the plan as a picture, which jobs wait and why."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import polars as pl

from foresail.explain.run_snapshot import RunSnapshot
from foresail.model.words import duration
from foresail.reports.document import as_html, document, section
from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.files import write_page
from foresail.reports.plan.part import moment_sections, plan_key, waiting_table
from foresail.reports.plan.plan_figure import plan_figure
from foresail.reports.plan.view import PlanView


@dataclass(frozen=True)
class PlanPart:
    """A moment as a part of a page: the picture, what stands beside it, the numbers behind."""

    figure: Figure
    view: PlanView

    @classmethod
    def of(cls, moment: RunSnapshot) -> PlanPart:
        """Lay out and draw a moment."""
        figure, view = plan_figure(moment)
        return cls(figure, view)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The numbers by the stem of their file."""
        return {self.figure.name: self.figure.table, "waiting": waiting_table(self.view)}

    def html(self, command: str | None) -> str:
        """All sections of the moment."""
        picture = section(self.figure, plan_key(self.figure), command)
        return picture + moment_sections(self.view, command)


@dataclass(frozen=True)
class RunCourse:
    """What an event log adds to the report of its run: one moment of it, and why jobs waited."""

    plan: PlanPart
    waits: Figure | MissingFigure

    @property
    def figures(self) -> list[Figure]:
        """Those that are drawn."""
        return [part for part in (self.plan.figure, self.waits) if isinstance(part, Figure)]

    def html(self, command: str | None) -> str:
        """Their sections."""
        return section(self.waits, "", command) + self.plan.html(command)


def plan_page(part: PlanPart, run: str, command: str | None = None) -> str:
    """The page of a moment of a run, which is called ``run``, as text."""
    moment = part.view.moment
    title = f"{run}: the plan {duration(moment.since_start)} after the start"
    made = f"<footer><p>Made by <code>{escape(command)}</code></p></footer>" if command else ""
    body = (
        f"<header><h1>{as_html(title)}</h1>"
        f"<p class='situation'>policy <code>{escape(moment.policy)}</code></p></header>"
        f"<main id='numbers'>{part.html(None)}</main>{made}"
        "<p id='keys' hidden>Keys: plus and minus zoom, arrows move, 0 shows all, s saves.</p>"
    )
    return document(title, body, [part.figure])


def write_plan(part: PlanPart, folder: Path, run: str, command: str | None = None) -> None:
    """Write ``plan.html`` and the CSV files behind it into a folder, made unless it is there.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    write_page(folder / "plan.html", plan_page(part, run, command), part.tables)
