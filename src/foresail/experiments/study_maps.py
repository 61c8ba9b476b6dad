"""Maps of a study: which system is best where, over the study's axis and a second one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import polars as pl

from foresail.experiments.study import BestMap, Study
from foresail.model.words import number, percent
from foresail.reports.figure import Figure
from foresail.reports.style import axis, layout, named_styles

EVEN_SHARE = 0.01
"""By less than this the best leads over no one."""


@dataclass(frozen=True, slots=True)
class MapCell:
    """A place of a map: who has the least mean there, and by which share of the next one's."""

    row: str
    x: float

    best: str | None
    """None where the lead is below 1 %."""
    lead: float

    @property
    def said(self) -> str:
        """In words."""
        return "even" if self.best is None else f"{self.best} ({percent(self.lead)})"


def cells(found: BestMap, summary: pl.DataFrame) -> list[MapCell]:
    """The places of a map that have been run, row by row."""
    places = []
    of_measure = summary.filter(pl.col("measure") == found.measure)
    for group, row in found.rows.items():
        part = of_measure.filter(pl.col("group") == group)
        for x in sorted(set(part["x"].drop_nulls().to_list())):
            there = part.filter(pl.col("x") == x).sort("mean")
            systems, means = there["system"].to_list(), there["mean"].to_list()
            lead = 1.0 - means[0] / means[1] if len(means) > 1 and means[1] else 0.0
            places.append(MapCell(row, x, systems[0] if lead >= EVEN_SHARE else None, lead))
    return places


def map_table(found: BestMap, study: Study, summary: pl.DataFrame) -> list[list[str]]:
    """Headings and rows of a map as texts."""
    places = cells(found, summary)
    points = sorted({each.x for each in places})
    said = {(each.row, each.x): each.said for each in places}
    rows = [
        [row, *(said.get((row, x), "–") for x in points)]
        for row in dict.fromkeys(each.row for each in places)
    ]
    return [[found.axis, *(f"{study.axis} {number(x)}" for x in points)], *rows]


def maps_of(study: Study, summary: pl.DataFrame) -> tuple[Figure, ...]:
    """A heat map for each map of the study that has been run."""
    return tuple(
        _figure(each, study, summary, position)
        for position, each in enumerate(study.maps)
        if cells(each, summary)
    )


def _figure(found: BestMap, study: Study, summary: pl.DataFrame, position: int) -> Figure:
    places = cells(found, summary)
    styles = named_styles(study.systems)
    numbers: dict[str | None, int] = {style.policy: at + 1 for at, style in enumerate(styles)}
    numbers[None] = 0
    colours = ["@neutral", *(style.colour for style in styles)]
    steps = len(colours)
    rows = list(dict.fromkeys(each.row for each in places))
    points = sorted({each.x for each in places})
    by_place = {(each.row, each.x): each for each in places}
    grid = [[by_place.get((row, x)) for x in points] for row in rows]
    return Figure(
        name=f"map-{position + 1}",
        title=found.title,
        findings=[
            f"{found.axis} {row}: "
            + ", ".join(f"{each.said} at {number(each.x)}" for each in places if each.row == row)
            + "."
            for row in rows
        ],
        traces=[
            {
                "type": "heatmap",
                "x": [number(x) for x in points],
                "y": rows,
                "z": [
                    [None if cell is None else numbers[cell.best] for cell in row] for row in grid
                ],
                "zmin": -0.5,
                "zmax": steps - 0.5,
                "colorscale": [
                    [edge / steps, colour]
                    for at, colour in enumerate(colours)
                    for edge in (at, at + 1)
                ],
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
                "text": [["" if cell is None else cell.said for cell in row] for row in grid],
                "texttemplate": "%{text}",
                "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>",
            }
        ],
        layout=layout(
            130 + 46 * len(rows),
            xaxis=axis(study.axis, type="category", tickangle=0, showgrid=False),
            yaxis=axis(found.axis, type="category", showgrid=False),
        ),
        table=pl.DataFrame(
            [asdict(each) for each in places],
            schema={"row": pl.String, "x": pl.Float64, "best": pl.String, "lead": pl.Float64},
        ),
        note="Who has the least mean, and by how much of the next one's; even: by less than 1 %.",
    )
