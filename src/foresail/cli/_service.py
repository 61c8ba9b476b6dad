"""What the commands that speak to a service share: the connection, and how jobs are shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.tables import print_table
from foresail.model.words import duration

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

_HEADINGS: Final = ("job", "name", "user", "state", "cpus", "waited", "ran", "starts in", "why")


def connected() -> ServiceClient:
    """A client of the service that the user has logged in to.

    Raises
    ------
    InputError
        If there is no token.
    """
    from foresail.client.connection import find_connection
    from foresail.client.service_client import ServiceClient

    return ServiceClient(find_connection())


def for_each_job(summary: str, request: Callable[[ServiceClient, str], object]) -> typer.Typer:
    """The command that requests the same for every job, by its id."""
    app = typer.Typer(rich_markup_mode=None)

    @app.command(help=summary)
    def command(jobs: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids.")]) -> None:
        with connected() as client:
            for job_id in jobs:
                request(client, job_id)

    return app


def print_jobs(jobs: Sequence[Mapping[str, Any]]) -> None:
    """A line a job, or that there are none."""
    if not jobs:
        typer.echo("no jobs")
        return
    now = time.time()
    print_table(_HEADINGS, [_row(job, now) for job in jobs])


def _row(job: Mapping[str, Any], now: float) -> tuple[str, ...]:
    start, end = job.get("start_seconds"), job.get("end_seconds")
    waited = (start or end or now) - job["submit_seconds"]
    ran = None if start is None else (end or now) - start
    return (
        job["job_id"],
        job["name"],
        job["user"],
        job["state"],
        str(job.get("cpus", "")),
        duration(max(0.0, waited)),
        "" if ran is None else duration(max(0.0, ran)),
        starts_in(job.get("forecast"), now),
        why(job),
    )


def memory(amount: float | None) -> str:
    """An amount of memory in bytes, for people; empty where there is none to tell of."""
    if not amount:
        return ""
    return f"{amount / 2**30:.1f} GiB" if amount >= 2**30 else f"{amount / 2**20:.0f} MiB"


def starts_in(forecast: Mapping[str, Any] | None, now: float) -> str:
    """The odds of a start: ``20 min (5 to 50 min)``; empty where there is no forecast."""
    start = (forecast or {}).get("start")
    if not start:
        return ""
    low, median, high = (start[key] for key in ("p10", "p50", "p90"))
    if median is None:
        return "at no known time"
    if high is not None and high - now < 1.0:
        return "now"
    latest = "never" if high is None else duration(max(0.0, high - now))
    soonest, likely = (duration(max(0.0, each - now)) for each in (low, median))
    return f"{likely} ({soonest} to {latest})"


def why(job: Mapping[str, Any]) -> str:
    """Why a job waits, or ended as it did."""
    reason = job.get("reason") or {}
    return str(reason.get("sentence") or job.get("because") or "")
