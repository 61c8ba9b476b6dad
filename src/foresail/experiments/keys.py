"""The key under a figure: colours, dashes and shapes of what is drawn, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from foresail.reports.document import as_html
from foresail.reports.figure import Figure, MissingFigure

_STROKES: Final = {
    "solid": "none",
    "dash": "8 4",
    "dot": "3 3",
    "dashdot": "9 3 3 3",
    "longdash": "14 4",
    "longdashdot": "14 3 3 3",
}
_SHAPES: Final = {
    "circle": "<circle r='5'/>",
    "diamond": "<path d='M0-6L6 0 0 6-6 0Z'/>",
    "square": "<rect x='-5' y='-5' width='10' height='10'/>",
    "triangle-up": "<path d='M0-5L6 5H-6Z'/>",
}


def key_of_figure(part: Figure | MissingFigure) -> str:
    """What the colours mean; the shapes and dashes are seen in the figure and named in the PNG."""
    if isinstance(part, MissingFigure):
        return ""
    entries = "".join(
        f"<li>{_swatch(trace)} {as_html(trace['name'])}</li>"
        for trace in part.traces
        if trace.get("showlegend")
    )
    return f"<ul class='key'>{entries}</ul>" if entries else ""


def _swatch(trace: Mapping[str, Any]) -> str:
    if "line" in trace:
        dash = _STROKES[trace["line"]["dash"]]
        stroke = f"stroke='var(--{trace['line']['color'][1:]})'"
        mark = f"<line y1='6' x2='22' y2='6' {stroke} stroke-width='3' stroke-dasharray='{dash}'/>"
    else:
        marker = trace["marker"]
        shape = _SHAPES[marker.get("symbol", "circle")]
        mark = f"<g fill='var(--{marker['color'][1:]})' transform='translate(11 6)'>{shape}</g>"
    return f"<svg class='swatch' viewBox='0 0 22 12' aria-hidden='true'>{mark}</svg>"
