"""``foresail doctor``: what is well with a service and its machine, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def doctor(
    configuration: Annotated[
        Path | None, typer.Argument(help="Configuration file (TOML). [everything by default]")
    ] = None,
) -> None:
    """Look at everything a service needs; status 1 if something is not well."""
    from foresail.service.configuration import read_configuration
    from foresail.service.doctor import examined

    ill = False
    for found in examined(read_configuration(configuration)):
        ill = ill or bool(found.remedy)
        typer.echo(f"{'not well' if found.remedy else 'well':<9} {found.what:<13} {found.says}")
        if found.remedy:
            typer.echo(f"{'':<24}{found.remedy}")
    if ill:
        raise typer.Exit(1)
