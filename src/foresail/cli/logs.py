"""``foresail logs``: what jobs have written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)

_LOOK_EVERY_SECONDS: Final = 0.3


@app.command()
def logs(
    jobs: Annotated[
        list[str], typer.Argument(metavar="JOB...", help="Ids, also 18 or 18_[1-3] of arrays.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    errors: Annotated[bool, typer.Option("--errors", "-e", help="Standard error alone.")] = False,
    output: Annotated[bool, typer.Option("--output", "-o", help="Standard output alone.")] = False,
) -> None:
    """Print what jobs have written: their output, and on standard error their errors."""
    from foresail.cli._service import connected, members_of

    streams = ["err"] if errors and not output else ["out"] if output and not errors else None
    with connected() as client:
        meant = members_of(client, jobs)
        for job_id in meant:
            if len(meant) > 1:
                typer.echo(f"==> {job_id} <==")
            if not _told(client, job_id, streams or ("out", "err"), follow=follow):
                typer.echo(f"foresail: job {job_id} has written nothing", err=True)


def _told(client: ServiceClient, job_id: str, streams: Sequence[str], *, follow: bool) -> int:
    """How many bytes were printed of what a job has written so far, or until it has ended."""
    ends = dict.fromkeys(streams, 0)
    while True:
        before, is_all = dict(ends), True
        for stream in streams:
            text, ends[stream], has_ended = client.output(job_id, stream, ends[stream])
            typer.echo(text, nl=False, err=stream == "err")
            is_all &= has_ended
        if ends == before:
            if is_all or not follow:
                return sum(ends.values())
            time.sleep(_LOOK_EVERY_SECONDS)
