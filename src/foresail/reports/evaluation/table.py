"""Scores of predictors as a terminal table and as rows of a page, the best of each column told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rich.table import Table

from foresail.evaluation.scores import Scores
from foresail.model.words import count, duration, number, percent
from foresail.reports.ranked_table import RankedColumn, ranked_table

_NAME_WIDTH: Final = 24
_RESOLUTION_SECONDS: Final = 1e-7
_MEMORY_UNITS: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_UNIT_SIGNS: Final = {"cores": " cores", "core seconds": " core s", "byte seconds": " B s"}


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


COLUMNS: Final[tuple[RankedColumn[Scores], ...]] = (
    RankedColumn("within\n2×", lambda told: told.within_factor_two.value, percent, 1),
    RankedColumn("too\nshort", lambda told: told.errors.under, percent),
    RankedColumn("NMAE", lambda told: told.nmae.value, number, -1),
    RankedColumn("median\nerror", lambda told: told.median_percentage_error / 100.0, percent, -1),
    RankedColumn("CRPS\n/mean", lambda told: told.relative_crps.value, number, -1),
    RankedColumn("80 %\nholds", _coverage, percent),
    RankedColumn("80 %\nwidth", _width, number),
    RankedColumn("µs\na job", lambda told: told.median_seconds, microseconds),
)
"""What is shown first; the CSV has all. ``80 % holds``: share of the truths inside the 80 %
interval; ``width``: its median width over the median prediction."""


def terminal_table(told: Sequence[Scores]) -> Table:
    """A row per predictor, at most 100 characters wide."""
    return ranked_table(
        [each.predictor for each in told],
        told,
        COLUMNS,
        heading="predictor",
        width=_NAME_WIDTH,
        caption=_caption(told),
        title=f"{told[0].source}: {words_of(told[0].quantity)}",
    )


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
