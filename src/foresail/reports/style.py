"""Looks of policies and axes: a colour per policy, light and dark, ticks as people say them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal

from foresail.model.words import number
from foresail.traces.schedule import Schedule

_COLOURS: Final = {
    "paper": ("#ffffff", "#14181f"),
    "ink": ("#1c2430", "#e6eaf0"),
    "muted": ("#5b6675", "#9aa6b5"),
    "grid": ("#e3e7ec", "#2b323d"),
    "cell": ("#f4f6f8", "#1b212a"),
    "policy0": ("#5f6b7a", "#a3adba"),
    "policy1": ("#0072b2", "#56a8e0"),
    "policy2": ("#d55e00", "#f58442"),
    "policy3": ("#00896a", "#2fc09a"),
    "policy4": ("#b0508a", "#e39ac6"),
    "policy5": ("#a87900", "#e8b53f"),
    "policy6": ("#3d8fc4", "#9ad0f0"),
    "gain": ("#0072b2", "#3b93d0"),
    "neutral": ("#f7f7f7", "#2a2f38"),
    "loss": ("#d55e00", "#ee7733"),
}
"""Colours by role, light and dark (Okabe and Ito's hues, distinct with any colour vision). A
figure names a colour ``@role``; the page, or the image writer, puts in the one of its theme."""
LIGHT, DARK = ({role: pair[at] for role, pair in _COLOURS.items()} for at in (0, 1))

_DASHES: Final = ("solid", "solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS: Final = ("circle", "circle", "diamond", "square", "triangle-up", "cross", "x")
_LONGEST_LABEL: Final = 50
_LONGEST_DRAWN: Final = 32

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class PolicyStyle:
    """A policy's looks, the same throughout a report."""

    policy: str
    """Its short form in full."""
    label: str
    """Name in sentences and tables: cut in the middle where it is long."""
    drawn: str
    """Name in drawings, in Plotly's markup: cut further."""
    colour: str
    dash: str
    symbol: str
    """Colour, dashes and marker of its lines."""

    @property
    def is_cut(self) -> bool:
        """Return whether drawings show less than all of it."""
        return self.drawn != literal(self.label) or self.label != self.policy


def policy_styles(schedules: Sequence[Schedule]) -> tuple[PolicyStyle, ...]:
    """A style per schedule: the baseline (first) grey, then one hue each; long names are cut."""
    return named_styles([schedule.meta.policy for schedule in schedules])


def named_styles(names: Sequence[str]) -> tuple[PolicyStyle, ...]:
    """Return styles like ``policy_styles``, by the short forms alone."""
    styles = []
    for position, name in enumerate(names):
        look = position if position < len(_DASHES) else 1 + (position - 1) % (len(_DASHES) - 1)
        letter = ""
        if len(name) > _LONGEST_DRAWN or names.count(name) > 1:
            letter = f"{chr(ord('A') + position) if position < 26 else position + 1}: "
        styles.append(
            PolicyStyle(
                policy=name,
                label=letter + _cut(name, _LONGEST_LABEL - len(letter)),
                drawn=literal(letter + _cut(name, _LONGEST_DRAWN - len(letter))),
                colour=f"@policy{look}",
                dash=_DASHES[look],
                symbol=_SYMBOLS[look],
            )
        )
    return tuple(styles)


def literal(text: str) -> str:
    """Text as Plotly shows it unchanged: no tag, entity or template of its own in it."""
    return escape(text, quote=False).replace("{", "&#123;")


def _cut(name: str, longest: int) -> str:
    """The name, its middle left out where it is too long: both ends distinguish policies."""
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"


def themed(value: Any, theme: Mapping[str, str]) -> Any:
    """A figure's traces or layout with every ``@role`` replaced by the theme's colour."""
    if isinstance(value, str):
        return theme.get(value[1:], value) if value.startswith("@") else value
    if isinstance(value, Mapping):
        return {key: themed(inner, theme) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [themed(inner, theme) for inner in value]
    return value


def axis(title: str, **settings: Any) -> dict[str, Any]:
    """A Plotly axis in the report's manner."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13, "color": "@muted"}},
        "gridcolor": "@grid",
        "linecolor": "@grid",
        "zeroline": False,
        "tickfont": {"color": "@muted", "size": 12},
        "automargin": True,
        **settings,
    }


_DURATION_TICKS: Final = {
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1 min",
    600.0: "10 min",
    3600.0: "1 h",
    6 * 3600.0: "6 h",
    86400.0: "1 d",
    7 * 86400.0: "7 d",
    30 * 86400.0: "30 d",
    365 * 86400.0: "1 year",
}


def duration_axis(title: str, longest: float) -> dict[str, Any]:
    """A log axis of durations from 1 s to the longest, ticked where people count."""
    ticks = [tick for tick in _DURATION_TICKS if tick <= max(longest, 60.0) * 1.05]
    return axis(
        title,
        type="log",
        range=[-0.06, math.log10(max(longest, 60.0)) + 0.05],
        tickvals=ticks,
        ticktext=[_DURATION_TICKS[tick] for tick in ticks],
        tickangle=0,
    )


_RATIO_TICKS: Final = (
    (2.0, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0)),
    (8.0, (0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0)),
    (300.0, tuple(step * 10.0**power for power in range(-3, 4) for step in (1, 2, 5))),
    (math.inf, tuple(10.0**power for power in range(-9, 10))),
)
"""Ticks of a ratio axis by the largest quotient of its ends that they suit."""


def ratio_axis(title: str, least: float, most: float) -> dict[str, Any]:
    """A log axis of ratios around 1, ticked as multiples."""
    low, high = min(least, 1 / 1.3), max(most, 1.3)
    candidates = next(ticks for reach, ticks in _RATIO_TICKS if high / low <= reach)
    ticks = [tick for tick in candidates if low * 0.95 <= tick <= high * 1.05]
    return axis(
        title,
        type="log",
        range=[math.log10(low * 0.93), math.log10(high * 1.07)],
        tickvals=ticks,
        ticktext=[f"{number(tick)}×" for tick in ticks],
        tickangle=0,
    )


def time_unit(seconds: float) -> tuple[str, float]:
    """Unit that a time axis of this length is best counted in, and its seconds."""
    if seconds > 3 * 86400:
        return "days", 86400.0
    if seconds > 3 * 3600:
        return "hours", 3600.0
    if seconds > 180:
        return "minutes", 60.0
    return "seconds", 1.0


def end_note(text: str, side: Literal["left", "right"]) -> dict[str, Any]:
    """An annotation above the drawing that says what lies towards one end of the axis."""
    font = {"color": "@muted", "size": 12}
    return caption(text, 1, "") | {"x": 0 if side == "left" else 1, "xanchor": side, "font": font}


def caption(text: str, height: float, colour: str) -> dict[str, Any]:
    """An annotation at the left of the drawing, above this share of its height."""
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": height,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"color": colour, "size": 13},
    }


def line_of(style: PolicyStyle, x: object, y: object, hover: str, **more: Any) -> dict[str, Any]:
    """A line in a policy's looks, named in the key; ``hover`` is said where one points at it.

    ``shape`` is how it goes from point to point, and all else is as Plotly takes it.
    """
    line = {"color": style.colour, "dash": style.dash, "width": more.pop("width", 2)}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": style.drawn,
        "x": x,
        "y": y,
        "line": line | ({"shape": more.pop("shape")} if "shape" in more else {}),
        "hovertemplate": f"{hover}<extra>{style.drawn}</extra>",
        "showlegend": True,
        **more,
    }


def marks_of(
    style: PolicyStyle, x: object, y: object, hover: str = "", **more: Any
) -> dict[str, Any]:
    """Marks in a policy's looks, as ``line_of`` draws lines."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": style.drawn,
        "x": x,
        "y": y,
        "marker": {"color": style.colour, "size": 10, "symbol": style.symbol},
        "hovertemplate": f"{hover}<extra></extra>",
        "showlegend": True,
        **more,
    }


def mark_at(place: float, colour: str = "@muted", width: int = 1) -> dict[str, Any]:
    """A vertical line below all that is drawn, from end to end."""
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "width": width},
        "layer": "below",
    }


DOTTED: Final[Mapping[str, Any]] = {"color": "@muted", "width": 1, "dash": "dot"}


def level_at(height: float, width: float = 1, **more: Any) -> dict[str, Any]:
    """A horizontal line from end to end; all else is as Plotly takes it."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": {"color": "@muted", "width": width},
        **more,
    }


def rows_axis(names: Sequence[str]) -> dict[str, Any]:
    """An axis that names what lies in rows, from the top downwards."""
    return axis(
        "",
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
        fixedrange=True,
    )


def layout(height: int, *, top: int = 34, **settings: Any) -> dict[str, Any]:
    """A Plotly layout in the report's manner, with so many pixels above the drawing."""
    return {
        "height": height,
        "margin": {"l": 12, "r": 18, "t": top, "b": 12},
        "paper_bgcolor": "@paper",
        "plot_bgcolor": "@paper",
        "font": {"family": FONT, "size": 13, "color": "@ink"},
        "hoverlabel": {"font": {"family": FONT, "size": 13}},
        "showlegend": False,
        **settings,
    }


_BAR_HEIGHT: Final = 26
_TITLE_HEIGHT: Final = 44
_LEGEND_ROW_HEIGHT: Final = 22
_LEGEND_ROW_CHARACTERS: Final = 120


def image_layout(title: str, drawing: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return what changes where a figure stands alone: heading and legend join the drawing.

    There are no ``names`` for the legend of a figure that names its lines itself.
    """
    characters = sum(len(name) + 8 for name in names)
    rows = math.ceil(characters / _LEGEND_ROW_CHARACTERS)
    above = _TITLE_HEIGHT + rows * _LEGEND_ROW_HEIGHT
    height = drawing["height"] - _BAR_HEIGHT + above
    margin = drawing["margin"]
    return {
        "height": height,
        "margin": {"l": 28, "r": 30, "t": margin["t"] - _BAR_HEIGHT + above, "b": 22},
        "title": {
            "text": title,
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 14},
            "font": {"size": 18, "color": "@ink"},
        },
        "showlegend": bool(names),
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1 - _TITLE_HEIGHT / height,
            "yref": "container",
            "yanchor": "top",
            "font": {"size": 12},
        },
    }
