"""A figure (question, finding, drawing, numbers), and figures and pages as files."""

from __future__ import annotations

import base64
import importlib.util
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.model.errors import ForesailError
from foresail.model.whole_files import all_or_none, write_whole
from foresail.reports.style import LIGHT, image_layout, themed


@dataclass(frozen=True)
class Figure:
    """One picture of a report."""

    name: str
    """Stem of its files: the CSV with the numbers and the PNG."""
    title: str
    """The question it answers, as a heading."""
    findings: Sequence[str]
    """Findings that it shows, a sentence or two for each policy; also the text alternative."""
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    """The drawing, as Plotly takes it; colours may be ``@role`` (``foresail.reports.style``)."""
    table: pl.DataFrame
    """The numbers behind it."""
    note: str = ""
    """Remark on how it was drawn, where that must be said."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Finer bins for a figure that is zoomed into (``comparison.time_figures``)."""

    @property
    def legend(self) -> list[str]:
        """Names of the lines that the drawing does not name itself."""
        return [trace["name"] for trace in self.traces if trace.get("showlegend")]

    @property
    def image_layout(self) -> dict[str, Any]:
        """Return what the layout becomes where the figure stands alone."""
        return image_layout(self.title, self.layout, self.legend)


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A picture that this report cannot have: what is missing, and what to do."""

    title: str
    problem: str
    remedy: str = ""


def packed(values: NDArray[np.floating[Any]] | NDArray[np.integer[Any]]) -> dict[str, str]:
    """An array in the binary form that Plotly reads: a quarter of the size of its digits."""
    if values.dtype == np.uint8:
        kind, array = "u1", np.ascontiguousarray(values)
    else:
        kind, array = "f4", np.ascontiguousarray(values, dtype="<f4")
    shape = {"shape": ", ".join(str(n) for n in array.shape)} if array.ndim > 1 else {}
    return {"dtype": kind, "bdata": base64.b64encode(array.tobytes()).decode("ascii"), **shape}


def write_page(path: Path, page: str, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write a page and the tables behind it, by the stem of their CSV files: all or none.

    Raises ``InputError`` if the folder, which is made unless it is there, cannot be written to.
    """
    with all_or_none(path.parent) as drafts:
        for name, table in tables.items():
            write_whole(drafts / f"{name}.csv", table.write_csv().encode())
        write_whole(drafts / path.name, page.encode())


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

    Raises ``ImageError`` if kaleido or a browser is missing, or the browser fails; ``InputError``
    if the folder cannot be written to.
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
