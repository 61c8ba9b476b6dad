"""What the commands that speak to a service share: the connection, and how jobs are shown."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from foresail.model.words import count, duration, listed, memory_size

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

JobIds: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="Ids, also 18 or 18_[1-3] of arrays.")
]

_OF_A_JOB: Final = (404, 409)
"""Refusals that are about one job, not about whoever asks."""


def connected() -> ServiceClient:
    """A client of the service that the user has logged in to."""
    from foresail.client.connection import find_connection
    from foresail.client.service_client import ServiceClient

    return ServiceClient(find_connection())


def for_each_job(summary: str, request: Callable[[ServiceClient, str], object]) -> typer.Typer:
    """The command that requests the same for every job, by its id."""
    app = typer.Typer(rich_markup_mode=None)

    @app.command(help=summary)
    def command(jobs: JobIds) -> None:
        from foresail.client.job_ids import job_ids

        with connected() as client:
            for_each(job_ids(jobs), lambda job_id: request(client, job_id))

    return app


def members_of(client: ServiceClient, words: Iterable[str]) -> list[str]:
    """The jobs that ids mean, of an array its members; ids that mean none, for a refusal."""
    from foresail.client.job_ids import job_ids

    members: list[str] = []
    for each in job_ids(words):
        found = client.jobs(job_ids=[each], order="oldest")
        members += [job["job_id"] for job in found] or [each]
    return members


def for_each(job_ids: Iterable[str], request: Callable[[str], object]) -> None:
    """Request something of every job; of which it cannot be is said, with exit status 1 then."""
    from foresail.client.service_client import ServiceRefusal

    is_done = True
    for job_id in job_ids:
        try:
            request(job_id)
        except ServiceRefusal as refusal:
            if refusal.status not in _OF_A_JOB:
                raise
            typer.echo(f"foresail: {refusal}", err=True)
            is_done = False
    if not is_done:
        raise typer.Exit(1)


def now_of(job: Mapping[str, Any]) -> float:
    """The time by the service's clock, which its times are told by."""
    now: float | None = job.get("now_seconds")
    return time.time() if now is None else now


def asked_for(job: Mapping[str, Any]) -> str:
    """What a job asks for, as it was understood."""
    return ", ".join(_asked_for(job))


def _asked_for(job: Mapping[str, Any]) -> Iterator[str]:
    tasks = job.get("tasks", 1)
    yield count(job["cpus"], "cpu") + (f" for {tasks:,} tasks" if tasks > 1 else "")
    memory = job.get("memory_bytes")
    yield f"at most {memory_size(memory)} of memory" if memory else "no memory limit"
    if job.get("gpus"):
        yield count(job["gpus"], "gpu")
    limit, deadline = job.get("requested_seconds"), job.get("deadline_seconds")
    yield "no time limit" if limit is None else f"a limit of {duration(limit)}"
    if deadline is not None:
        yield f"to be done within {duration(deadline - job['submit_seconds'])}"
    others = job.get("dependencies", "")
    after = [each for each in job.get("after", ()) if each not in re.split("[:,]", others)]
    if after:
        yield "to run after " + listed(after)
    if others:
        yield f"to run {others}"
    if job.get("begin_seconds") is not None:
        yield f"not before {clock_time(job['begin_seconds'])}"
    if job.get("most_at_once") is not None:
        yield f"{job['most_at_once']:,} of its array at once"


def in_use(cluster: Mapping[str, Any]) -> str:
    """How the cluster is used, on one line."""
    counts, used = cluster["jobs_by_state"], cluster["cpus"] - cluster["free_cpus"]
    return (
        f"cpus {max(0.0, used):g} of {cluster['cpus']:g} in use, "
        f"{counts.get('running', 0)} running, {counts.get('pending', 0)} waiting, "
        f"{counts.get('held', 0)} held"
    )


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
    return spread(soonest, likely, latest)


def clock_time(unix_seconds: float) -> str:
    """A moment by the clock."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix_seconds))


def runs_for(belief: Mapping[str, Any]) -> str:
    """The odds of a runtime: ``20 min (5 to 50 min)``."""
    low, median, high = (
        "no known time" if belief[key] is None else duration(belief[key])
        for key in ("p10", "p50", "p90")
    )
    return spread(low, median, high)


def spread(low: str, middle: str, high: str) -> str:
    """Something and its range, unless that is no wider: ``20 min (5 to 50 min)``."""
    return middle if low == middle == high else f"{middle} ({low} to {high})"


def why(job: Mapping[str, Any]) -> str:
    """Why a job waits, or ended as it did."""
    reason = job.get("reason") or {}
    return str(reason.get("sentence") or job.get("because") or "")
