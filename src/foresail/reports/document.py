"""What every HTML page of a report shares: one file, no request to anywhere, figures with words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, Final

from plotly.offline import get_plotlyjs

from foresail.reports.figure import Figure, MissingFigure
from foresail.reports.style import DARK, LIGHT

_UNIT: Final = re.compile(r"(\d) (s|min|h|d|%)(?![a-z])")

_SECOND_UNIT: Final = re.compile(r"(\u00a0[hd]) (?=\d+\u00a0(?:min|h)\b)")

_SECURITY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)
"""The browser itself refuses any request that this page might make."""


def document(title: str, body: str, figures: Sequence[Figure]) -> str:
    """The whole page as text.

    The title is plain text. The body is HTML: it has the sections of these figures, and the element
    that the skip link leads to has the id ``numbers``.
    """
    specifications = {
        figure.name: {
            "data": list(figure.traces),
            "layout": figure.layout,
            "image": figure.image_layout,
        }
        for figure in figures
    }
    asset = resources.files("foresail.reports")
    return "".join(
        [
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>",
            f"<meta http-equiv='Content-Security-Policy' content=\"{_SECURITY}\">",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            "<meta name='color-scheme' content='light dark'>",
            f"<title>{as_html(title)}</title>",
            f"<style>{_variables()}{asset.joinpath('page.css').read_text('utf-8')}</style>",
            "</head><body><a class='skip' href='#numbers'>Skip to the numbers and figures</a>",
            body,
            _data("figures", specifications),
            _data("themes", {"light": LIGHT, "dark": DARK}),
            _data("details", {figure.name: figure.detail for figure in figures if figure.detail}),
            f"<script type='text/plain' id='plotly'>{get_plotlyjs()}</script>",
            f"<script>{asset.joinpath('zoom.js').read_text('utf-8')}</script>",
            f"<script>{asset.joinpath('page.js').read_text('utf-8')}</script>",
            "</body></html>\n",
        ]
    )


def as_html(text: str) -> str:
    """Text for the page; a number keeps together with its unit, a duration with both of its."""
    kept = _UNIT.sub("\\1\u00a0\\2", escape(text))
    return _SECOND_UNIT.sub("\\1\u00a0", kept)


def section(part: Figure | MissingFigure, key: str, command: str | None = None) -> str:
    """A figure with its heading, findings, buttons and numbers; or what is missing, in words.

    ``key`` is HTML that tells the lines apart.
    """
    if isinstance(part, MissingFigure):
        return missing(part.title, part.problem, part.remedy)
    name = escape(part.name)
    zoomed = f"<span class='note' role='status' id='{name}-bins'></span>" if part.detail else ""
    return (
        f"<section class='figure' id='section-{name}'><h2>{as_html(part.title)}</h2>"
        f"<figure>{_findings(part)}{key}"
        f"<div class='plot' id='{name}' tabindex='0' role='img' data-figure='{name}' "
        f"aria-labelledby='{name}-finding' aria-describedby='keys' "
        f"style='height:{part.layout['height']}px'>"
        "<p class='loading'>Drawing …</p></div>"
        f"<div class='tools'><button type='button' data-save='{name}'>Save as PNG</button>"
        f"<button type='button' data-reset='{name}'>Whole range</button>{zoomed}</div>"
        f"<figcaption>{as_html(part.note)}</figcaption></figure>"
        f"{behind(part.name, command)}</section>"
    )


def missing(title: str, problem: str, remedy: str = "") -> str:
    """A section that says what lacks, and what to do."""
    return (
        f"<section class='missing'><h2>{as_html(title)}</h2>"
        f"<p><strong>{as_html(problem)}</strong> {as_html(remedy)}</p></section>"
    )


def behind(name: str, command: str | None = None) -> str:
    """Where the numbers are, and the command that made them."""
    made = f" Made by <code>{escape(command)}</code>" if command else ""
    return (
        f"<p class='behind'>Numbers behind it: <a href='{escape(name)}.csv'>{escape(name)}.csv</a>"
        f" beside this page.{made}</p>"
    )


def _findings(figure: Figure) -> str:
    name = f"{escape(figure.name)}-finding"
    if len(figure.findings) == 1:
        return f"<p class='finding' id='{name}'>{as_html(figure.findings[0])}</p>"
    items = "".join(f"<li>{as_html(finding)}</li>" for finding in figure.findings)
    return f"<ul class='finding' id='{name}'>{items}</ul>"


def _data(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    return f"<script type='application/json' id='{name}'>{text}</script>"


def _variables() -> str:
    def block(theme: Any) -> str:
        return "".join(f"--{role}:{colour};" for role, colour in theme.items())

    return (
        f":root{{color-scheme:light dark;{block(LIGHT)}}}"
        f"@media (prefers-color-scheme: dark){{:root{{{block(DARK)}}}}}"
    )
