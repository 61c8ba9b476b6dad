"""``foresail wait``: until jobs are done with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)


@app.command()
def wait(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids.")]) -> None:
    """Wait for jobs; exit status 1 says that not all completed."""
    from foresail.cli._service import connected

    with connected() as client:
        wait_for(client, jobs)


def wait_for(client: ServiceClient, job_ids: Sequence[str]) -> None:
    """Wait, say what did not complete, and end with status 1 if anything did not."""
    ended = client.wait(job_ids)
    bad = [job for job in ended if job["state"] != "completed"]
    for job in bad:
        code = "" if job.get("exit_code") is None else f", exit code {job['exit_code']}"
        typer.echo(f"foresail: job {job['job_id']}: {job['state']}{code}", err=True)
    if bad:
        raise typer.Exit(1)
