"""``foresail predict show``: what a learned state holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foresail.cli.formats import Format, FormatOption, print_json
from foresail.cli.log_options import Plugins
from foresail.cli.progress import doing

if TYPE_CHECKING:
    from foresail.predictors.saving import StateHeader


def command(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A learned state.")],
    output_format: FormatOption = Format.TABLE,
    plugins: Plugins = None,
) -> None:
    """Show which predictor a state belongs to, what it has learned and what memory that takes."""
    del plugins  # they are loaded
    from foresail.model.short_form import part_of
    from foresail.predictors.saving import load_state, read_header

    header = read_header(state)
    part = part_of("predictor", header.predictor)
    predictor = part.build()
    with doing(f"reading {state.name}"):
        load_state(state, predictor, part.text)
        told = _told(state, header, predictor)
    if output_format is Format.JSON:
        print_json(told)
        return
    _print(told)


def _told(state: Path, header: StateHeader, predictor: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from foresail.predictors.history import HistoryPredictor

    told: dict[str, Any] = {
        "predictor": header.predictor,
        "written_with": header.foresail,
        "file_bytes": state.stat().st_size,
        "jobs_in_flight": len(predictor.snapshot().in_flight),
    }
    if isinstance(predictor, HistoryPredictor):
        told |= asdict(predictor.memory())
        told["best_experts"] = predictor.best_experts()
    return told


def _print(told: dict[str, Any]) -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import number

    values = told.pop("feature_values", {})
    best = told.pop("best_experts", {})
    plain = [
        [name.replace("_", " "), number(value) if isinstance(value, int) else value]
        for name, value in told.items()
    ]
    print_table(["", ""], plain)
    if values:
        typer.echo()
        print_table(
            ["feature", "best estimator of its values", "values"],
            [[name, best.get(name, ""), number(count)] for name, count in values.items()],
            right=1,
        )
