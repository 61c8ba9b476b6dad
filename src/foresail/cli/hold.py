"""``foresail hold``: keep a waiting job from starting."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def hold(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids.")]) -> None:
    """Hold jobs: what waits does not start until it is released."""
    from foresail.cli._service import connected

    with connected() as client:
        for job_id in jobs:
            client.hold(job_id)
