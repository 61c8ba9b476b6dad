"""``foresail wait``: until jobs are done with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from foresail.cli._service import JobIds, connected

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)


@app.command()
def wait(jobs: JobIds) -> None:
    """Wait for jobs; the exit status is the job's, the highest of several.

    It is 1 of one that has none of its own: stopped at a limit, cancelled, or by a signal.
    """
    from foresail.client.job_ids import job_ids

    with connected() as client:
        ids = job_ids(jobs)
        for job in client.jobs(job_ids=ids, states=["pending"], most=1):
            for warning in job["warnings"]:
                typer.echo(f"foresail: job {job['job_id']}: {warning}", err=True)
        wait_for(client, ids)


def wait_for(client: ServiceClient, job_ids: Sequence[str]) -> None:
    """Wait, say what did not complete, and end with the highest exit status."""
    ended = client.wait(job_ids)
    for job in ended:
        if _status(job):
            state, why = job["state"], job.get("because") or ""
            says = why if why.startswith(state) else f"{state}, {why}" if why else state
            typer.echo(f"foresail: job {job['job_id']}: {says}", err=True)
    status = max(map(_status, ended), default=0)
    if status:
        raise typer.Exit(status)


def _status(job: Mapping[str, Any]) -> int:
    """The exit status of a job; 1 where it has none, as sbatch has it."""
    if job["state"] == "completed":
        return 0
    code = job.get("exit_code")
    return code if job["state"] == "failed" and code is not None and 0 < code < 256 else 1
