"""Numbers of what is compared, a row each, with the best of each column told."""

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


def ranked_rows(
    compared: Sequence[Compared], columns: Sequence[RankedColumn[Compared]]
) -> list[list[tuple[str, bool]]]:
    """For each its cells as (text, whether it is the best of its column).

    The best is told as it is printed: values that read the same are all best, and none is where all
    are.
    """
    values = [[float(column.value(each)) for column in columns] for each in compared]
    best = [_best([row[at] for row in values], column) for at, column in enumerate(columns)]
    rows = []
    for row in values:
        texts = [column.say(value) for column, value in zip(columns, row, strict=True)]
        rows.append([(text, text == top) for text, top in zip(texts, best, strict=True)])
    return rows


def _best(values: Sequence[float], column: RankedColumn[Compared]) -> str | None:
    known = [value for value in values if math.isfinite(value)]
    if not column.better or len({column.say(value) for value in known}) < 2:
        return None
    return column.say(max(known, key=lambda value: column.better * value))


def ranked_table(
    names: Sequence[str],
    compared: Sequence[Compared],
    columns: Sequence[RankedColumn[Compared]],
    *,
    heading: str,
    width: int,
    caption: str,
    title: str | None = None,
) -> Table:
    """A table for a terminal; ``*`` marks the best of each column.

    ``heading`` and ``width`` are those of the column of names; the caption is said below.
    """
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
    table.add_column(heading, vertical="bottom", max_width=width)
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True, vertical="bottom")
    for name, row in zip(names, ranked_rows(compared, columns), strict=True):
        cells = [
            Text(text + ("*" if best else " "), style="bold" if best else "") for text, best in row
        ]
        table.add_row(Text("\n".join(folded(name, width))), *cells)
    return table
