"""How logs look in a report on several of them: one colour per log, told apart in grey print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_COLOURS: Final = ("@policy1", "@policy2", "@policy3", "@policy4", "@policy5", "@policy6")
_GREY: Final = "@policy0"
_SYMBOLS: Final = ("circle", "diamond", "square", "triangle-up", "cross", "x")
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True, slots=True)
class LogStyle:
    """A log's looks, the same throughout a report.

    The dash is for figures whose lines tell nothing but logs.
    """

    log: str
    colour: str
    dash: str
    symbol: str


def log_styles(logs: Sequence[str]) -> tuple[LogStyle, ...]:
    """A style per log: six hues, grey, and then the same again with other dashes."""
    colours = (*_COLOURS, _GREY)
    return tuple(
        LogStyle(
            log,
            colours[position % len(colours)],
            DASHES[position // len(colours) % len(DASHES)],
            _SYMBOLS[position % len(_SYMBOLS)],
        )
        for position, log in enumerate(logs)
    )


def series_colour(position: int) -> str:
    """Colour of one of several series where there is only one log."""
    return _COLOURS[position % len(_COLOURS)]
