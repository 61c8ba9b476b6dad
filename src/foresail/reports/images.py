"""The figures of a report as PNG files, drawn by a headless browser through kaleido."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from foresail.model.errors import ForesailError
from foresail.model.whole_files import all_or_none
from foresail.reports.figure import Figure
from foresail.reports.style import LIGHT, themed

_WIDTH: Final = 1000
_SCALE: Final = 2
_BROWSERS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)


class ImageError(ForesailError):
    """PNG files cannot be made here; the message says what to install."""


def browser() -> str | None:
    """Path of a browser that can draw, or nothing."""
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def write_images(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write ``<name>.png`` for each figure, 1000 pixels wide at double density, in light colours.

    Raises
    ------
    ImageError
        If kaleido or a browser is missing, or the browser fails.
    InputError
        If the folder cannot be written to.
    """
    if importlib.util.find_spec("kaleido") is None:
        raise ImageError(
            "PNG files need kaleido, which is not installed; install it with "
            "pip install kaleido, or use the button at each figure of the HTML report"
        )
    found = browser()
    if found is None:
        raise ImageError(
            "PNG files need Chromium or Chrome, and none was found on PATH; install one (for "
            "example: apt-get install chromium), or use the button at each figure of the HTML "
            "report"
        )
    with all_or_none(folder) as drafts:
        _draw(figures, drafts, found)
    return [folder / f"{figure.name}.png" for figure in figures]


def _draw(figures: Sequence[Figure], folder: Path, found: str) -> None:
    import kaleido

    jobs: list[dict[str, Any]] = [
        {
            "fig": {
                "data": themed(list(figure.traces), LIGHT),
                "layout": themed({**figure.layout, **figure.image_layout}, LIGHT),
            },
            "path": str(folder / f"{figure.name}.png"),
            "opts": {
                "format": "png",
                "width": _WIDTH,
                "height": figure.image_layout["height"],
                "scale": _SCALE,
            },
        }
        for figure in figures
    ]
    try:
        kaleido.write_fig_from_object_sync(
            jobs, kopts={"path": found, "mathjax": False}, cancel_on_error=True
        )
    except Exception as error:
        raise ImageError(f"the browser {found} could not draw: {error}") from error
