"""``foresail logs``: what jobs have written."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from foresail.cli._service import JobIds, connected, members_of
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)

_LOOK_EVERY_SECONDS: Final = 0.3
_STREAMS: Final = ("out", "err")
"""There is something in the latter only of jobs of former versions."""

_AT_ONCE_BYTES: Final = 1_000_000
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

    Of what it writes to files of its user that cannot be read here it is said where they are.
    """
    from foresail.client.service_client import ServiceRefusal

    ends, elsewhere = dict.fromkeys(_STREAMS, 0), dict[str, None]()
    while True:
        before, is_all = dict(ends), True
        for stream in before:
            try:
                text, ends[stream], has_ended = _written(client, job_id, stream, ends[stream])
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


def _written(client: ServiceClient, job_id: str, stream: str, offset: int) -> tuple[str, int, bool]:
    """Return the text of a job from a byte on, where it ends, and if that is all.

    A file of its user's is read as whoever asks may read it, where the service is on this machine.
    """
    job = client.job(job_id) if client.is_here else {}
    path, output = job.get("output" if stream == "out" else "errors"), job.get("output")
    if stream == "err" and output is not None and path in (None, output):
        return "", offset, True
    if path is None:
        return client.output(job_id, stream, offset)
    has_ended = job["end_seconds"] is not None
    try:
        content = _read(path, job["user"], offset)
    except (OSError, InputError) as error:
        if has_ended or not isinstance(error, FileNotFoundError):
            return client.output(job_id, stream, offset)
        content = b""
    return content.decode(errors="replace"), offset + len(content), has_ended and not content


def _read(path: str, user: str, offset: int) -> bytes:
    """Some of a plain file of a user's; raises ``OSError`` if there is none that can be read.

    What a job's user has put in its place is not told to others who look for its log.
    """
    from foresail.live.accounts import account_of

    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != account_of(user).uid:
            raise PermissionError(path)
        return os.pread(file, _AT_ONCE_BYTES, offset)
    finally:
        os.close(file)
