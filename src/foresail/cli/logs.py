"""``foresail logs``: what jobs have written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli._service import JobIds, connected, members_of

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)

_LOOK_EVERY_SECONDS: Final = 0.3
_STREAMS: Final = ("out", "err")
"""There is something in the latter only of jobs of former versions."""

_CONFLICT: Final = 409
"""Status of the refusal to tell what is in a file of the user's."""


@app.command()
def logs(
    jobs: JobIds,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
) -> None:
    """Print what jobs have written, their errors among it."""
    with connected() as client:
        meant = members_of(client, jobs)
        for job_id in meant:
            if len(meant) > 1:
                typer.echo(f"==> {job_id} <==")
            if not _is_told(client, job_id, follow=follow):
                typer.echo(f"foresail: job {job_id} has written nothing", err=True)


def _is_told(client: ServiceClient, job_id: str, *, follow: bool) -> bool:
    """Print what a job has written so far, or until it has ended; whether there was anything.

    Of what it writes to files of its user it is said where they are.
    """
    from foresail.client.service_client import ServiceRefusal

    ends, elsewhere = dict.fromkeys(_STREAMS, 0), dict[str, None]()
    while True:
        before, is_all = dict(ends), True
        for stream in before:
            try:
                text, ends[stream], has_ended = client.output(job_id, stream, ends[stream])
            except ServiceRefusal as refusal:
                if refusal.status != _CONFLICT:
                    raise
                elsewhere[str(refusal)] = None
                del ends[stream]
                continue
            typer.echo(text, nl=False, err=stream == "err")
            is_all &= has_ended
        if ends == before:
            if is_all or not follow:
                break
            time.sleep(_LOOK_EVERY_SECONDS)
    for sentence in elsewhere:
        typer.echo(f"foresail: {sentence}", err=True)
    return bool(elsewhere) or any(ends.values())
