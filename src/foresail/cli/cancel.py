"""``foresail cancel``: withdraw a waiting job, or stop a running one."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def cancel(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids.")]) -> None:
    """Cancel jobs: withdrawn if they wait, stopped if they run."""
    from foresail.cli._service import connected

    with connected() as client:
        for job_id in jobs:
            client.cancel(job_id)
