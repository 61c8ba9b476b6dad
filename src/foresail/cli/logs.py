"""``foresail logs``: what a job has written."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

app = typer.Typer(rich_markup_mode=None)

_LOOK_EVERY_SECONDS: Final = 0.3


@app.command()
def logs(
    job_id: Annotated[str, typer.Argument(metavar="JOB", help="Its id.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    errors: Annotated[bool, typer.Option("--errors", "-e", help="Standard error.")] = False,
) -> None:
    """Print the output of a job."""
    from foresail.cli._service import connected

    stream, offset = "err" if errors else "out", 0
    with connected() as client:
        while True:
            text, end, is_all = client.output(job_id, stream, offset)
            typer.echo(text, nl=False)
            if end == offset and (is_all or not follow):
                return
            if end == offset:
                time.sleep(_LOOK_EVERY_SECONDS)
            offset = end
