"""Numbers of what is compared, a row each, with the best of each column marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.table import Table
from rich.text import Text

from foresail.model.words import folded

Compared = TypeVar("Compared")


@dataclass(frozen=True, slots=True)
class RankedColumn(Generic[Compared]):
    """A number: how it is headed, read and said, and whether less (-1) or more (1) is better."""

    heading: str
    value: Callable[[Compared], float]
    say: Callable[[float], str]
    better: int = 0


@dataclass(frozen=True)
class RankedTable(Generic[Compared]):
    """A row for each of what is compared; printed on terminals and written on pages.

    The best of a column is chosen as it is printed: values that read the same are all best, and
    none is where all are.
    """

    heading: str
    """Of the column of names."""
    names: Sequence[str]
    compared: Sequence[Compared]
    columns: Sequence[RankedColumn[Compared]]

    @property
    def headings(self) -> list[str]:
        """The heading of each column of numbers, on one line."""
        return [column.heading.replace("\n", " ") for column in self.columns]

    def rows(self) -> list[list[tuple[str, bool]]]:
        """For each its cells as (text, whether it is the best of its column)."""
        values = [[float(column.value(each)) for column in self.columns] for each in self.compared]
        best = [
            _best([row[at] for row in values], column) for at, column in enumerate(self.columns)
        ]
        said = [
            [column.say(value) for column, value in zip(self.columns, row, strict=True)]
            for row in values
        ]
        return [[(text, text == top) for text, top in zip(row, best, strict=True)] for row in said]

    def for_terminal(self, width: int, caption: str, title: str | None = None) -> Table:
        """Lay it out for a terminal, names this wide; ``*`` marks the best of each column."""
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            title=title,
            title_justify="left",
            title_style="bold",
            caption=caption,
            caption_justify="left",
            caption_style="dim",
        )
        table.add_column(self.heading, vertical="bottom", max_width=width)
        for column in self.columns:
            table.add_column(column.heading, justify="right", no_wrap=True, vertical="bottom")
        for name, row in zip(self.names, self.rows(), strict=True):
            cells = [
                Text(text + ("*" if best else " "), style="bold" if best else "")
                for text, best in row
            ]
            table.add_row(Text("\n".join(folded(name, width))), *cells)
        return table


def _best(values: Sequence[float], column: RankedColumn[Compared]) -> str | None:
    known = [value for value in values if math.isfinite(value)]
    if not column.better or len({column.say(value) for value in known}) < 2:
        return None
    return column.say(max(known, key=lambda value: column.better * value))
