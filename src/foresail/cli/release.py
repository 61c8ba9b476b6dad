"""``foresail release``: let a held job start again."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def release(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids.")]) -> None:
    """Release held jobs: they start when their turn comes."""
    from foresail.cli._service import connected

    with connected() as client:
        for job_id in jobs:
            client.release(job_id)
