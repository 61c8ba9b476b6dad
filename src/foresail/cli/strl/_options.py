"""Options that several commands of ``foresail strl`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

RequestFile: TypeAlias = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Requests as text: nodes there are, sets, expressions."),
]
