"""A figure: the question it answers, its finding in words, the drawing, and the numbers behind."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from foresail.reports.style import image_layout


@dataclass(frozen=True)
class Figure:
    """One picture of a report."""

    name: str
    """Stem of its files: the CSV with the numbers and the PNG."""
    title: str
    """The question it answers, as a heading."""
    findings: Sequence[str]
    """What it shows, a sentence or two for each policy; also the text alternative."""
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    """The drawing, as Plotly takes it; colours may be ``@role`` (``foresail.reports.style``)."""
    table: pl.DataFrame
    """The numbers behind it."""
    note: str = ""
    """How it was drawn, where that must be said."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Finer bins for a figure that is zoomed into (``foresail.reports.zooming``)."""

    @property
    def legend(self) -> list[str]:
        """Names of the lines that the drawing does not name itself."""
        return [trace["name"] for trace in self.traces if trace.get("showlegend")]

    @property
    def image_layout(self) -> dict[str, Any]:
        """What the layout becomes where the figure stands alone."""
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
