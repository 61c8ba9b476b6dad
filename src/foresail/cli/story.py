"""``foresail story``: what happened to one job, from an event log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def story(
    log: Annotated[Path, typer.Argument(help="Event log of a run (events.jsonl).")],
    job_id: Annotated[str, typer.Argument(help="Id of the job.")],
) -> None:
    """What happened to one job, from an event log."""
    from foresail.control.log_text import read_log
    from foresail.explain.story import story as story_of
    from foresail.model.errors import InputError

    told = story_of(read_log(log), job_id)
    if not told.lines:
        raise InputError("the log does not know this job", source=log, value=job_id)
    typer.echo(told.heading)
    width = max(len(line.when) for line in told.lines)
    for line in told.lines:
        typer.echo(f"{line.when:>{width}}  {line.sentence}")
