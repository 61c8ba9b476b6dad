"""Scores of predictors as a terminal table and as rows of a page, the best of each column told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table
from rich.text import Text

from foresail.evaluation.scores import Scores
from foresail.model.words import count, duration, folded, number, percent

_NAME_WIDTH: Final = 24
_RESOLUTION_SECONDS: Final = 1e-7
_MEMORY_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_UNIT_SIGNS: Final = {"cores": " cores", "core seconds": " core s", "byte seconds": " B s"}


@dataclass(frozen=True, slots=True)
class Column:
    """A score: how it is headed, read and said, and whether less (-1) or more (1) is better."""

    heading: str
    value: Callable[[Scores], float]
    say: Callable[[Scores, float], str]
    better: int


def amount(unit: str, value: float) -> str:
    """An amount of a quantity as people say it."""
    if unit == "seconds":
        return duration(value)
    if unit == "bytes":
        return memory(value)
    return number(value) if math.isnan(value) else number(value) + _UNIT_SIGNS.get(unit, "")


def memory(size: float) -> str:
    """An amount of memory: ``6.29 MB``."""
    if math.isnan(size):
        return number(size)
    scale, unit = next((each for each in _MEMORY_UNITS if size >= each[0]), _MEMORY_UNITS[-1])
    return f"{number(float(f'{size / scale:.3g}'))} {unit}"


def microseconds(seconds: float) -> str:
    """A cost in microseconds; what the clock cannot tell apart is below its resolution."""
    return "<0.1" if seconds < _RESOLUTION_SECONDS else number(float(f"{1e6 * seconds:.3g}"))


def _coverage(told: Scores) -> float:
    return told.coverage[80].value if told.ranges else math.nan


def _width(told: Scores) -> float:
    return told.width[80] if told.ranges else math.nan


COLUMNS: Final = (
    Column(
        "within\n2×", lambda told: told.within_factor_two.value, lambda _, v: percent(v), better=1
    ),
    Column("too\nshort", lambda told: told.errors.under, lambda _, v: percent(v), better=0),
    Column("NMAE", lambda told: told.nmae.value, lambda _, v: number(v), better=-1),
    Column(
        "median\nerror",
        lambda told: told.median_percentage_error / 100.0,
        lambda _, v: percent(v),
        better=-1,
    ),
    Column("CRPS\n/mean", lambda told: told.relative_crps.value, lambda _, v: number(v), better=-1),
    Column("80 %\nholds", _coverage, lambda _, v: percent(v), better=0),
    Column("80 %\nwidth", _width, lambda _, v: number(v), better=0),
    Column(
        "µs\na job",
        lambda told: told.median_seconds,
        lambda _, v: microseconds(v),
        better=0,
    ),
)
"""What is shown first; the CSV has all. ``80 % holds``: share of the truths inside the 80 %
interval; ``width``: its median width over the median prediction."""


def score_rows(
    told: Sequence[Scores], columns: Sequence[Column] = COLUMNS
) -> list[list[tuple[str, bool]]]:
    """For each evaluation its cells as (text, whether it is the best of its column).

    The best is told as it is printed: values that read the same are all best, and none is where all
    are.
    """
    best = [_best(told, column) for column in columns]
    rows = []
    for each in told:
        texts = [column.say(each, column.value(each)) for column in columns]
        rows.append([(text, text == top) for text, top in zip(texts, best, strict=True)])
    return rows


def terminal_table(told: Sequence[Scores]) -> Table:
    """A row per predictor, at most 100 characters wide; ``*`` marks the best of each column."""
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        title=f"{told[0].source}: {words_of(told[0].quantity)}",
        title_justify="left",
        title_style="bold",
        caption=_caption(told),
        caption_justify="left",
        caption_style="dim",
    )
    table.add_column("predictor", vertical="bottom", max_width=_NAME_WIDTH)
    for column in COLUMNS:
        table.add_column(column.heading, justify="right", no_wrap=True, vertical="bottom")
    for each, row in zip(told, score_rows(told), strict=True):
        cells = [
            Text(text + ("*" if best else " "), style="bold" if best else "") for text, best in row
        ]
        table.add_row(Text("\n".join(folded(each.predictor, _NAME_WIDTH))), *cells)
    return table


def words_of(name: str) -> str:
    """A name of the code as words: ``cpu_time`` is ``cpu time``."""
    return name.replace("_", " ")


def _caption(told: Sequence[Scores]) -> str:
    first = told[0]
    words = [count(first.jobs, "job"), f"learned {words_of(first.learning)}"]
    if first.unknown_jobs:
        words.append(f"{first.unknown_jobs:,} left out, their {words_of(first.quantity)} unknown")
    if first.errors.zero_jobs:
        words.append(f"{first.errors.zero_jobs:,} of zero not in relative errors")
    return ", ".join(words) + ("; * best of its column" if len(told) > 1 else "")


def _best(told: Sequence[Scores], column: Column) -> str | None:
    known = [each for each in told if math.isfinite(column.value(each))]
    said = {column.say(each, column.value(each)) for each in known}
    if not column.better or len(said) < 2:
        return None
    top = max(known, key=lambda each: column.better * column.value(each))
    return column.say(top, column.value(top))
