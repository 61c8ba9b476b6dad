"""``foresail show``: one job of the service, as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foresail.cli._service import (
    JobIds,
    asked_for,
    clock_time,
    connected,
    members_of,
    now_of,
    runs_for,
    starts_in,
    why,
)
from foresail.cli.formats import print_json
from foresail.model.words import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(rich_markup_mode=None)


@app.command()
def show(
    jobs: JobIds, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """Everything that is known of jobs, and at last why each waits or has ended."""
    with connected() as client:
        for number, job_id in enumerate(members_of(client, jobs)):
            job = client.job(job_id)
            if as_json:
                print_json(job)
                continue
            lines = list(_lines(job, now_of(job)))
            width = max(len(name) for name, _ in lines)
            typer.echo("\n" * (number > 0), nl=False)
            for name, value in lines:
                typer.echo(f"{name:<{width}}  {value}")


def _lines(job: Mapping[str, Any], now: float) -> Iterator[tuple[str, str]]:
    yield "job", f"{job['job_id']}  {job['name']}  of {job['user']}"
    attempt = job.get("attempt", 0)
    yield "state", job["state"] + (f" (attempt {attempt})" if attempt > 1 else "")
    yield "asks for", asked_for(job)
    for warning in job.get("warnings", ()):
        yield "note", warning
    forecast = starts_in(job.get("forecast"), now)
    if forecast:
        yield "starts in", forecast
    for name in ("submit", "start", "end"):
        at = job.get(f"{name}_seconds")
        if at is not None:
            yield (
                name,
                f"{clock_time(at)}  ({duration(abs(now - at))} {'ago' if at <= now else 'on'})",
            )
    if job.get("belief"):
        yield "should run for", runs_for(job["belief"])
    for name in ("places", "command", "directory"):
        if job.get(name) not in (None, ""):
            yield name, str(job[name])
    files = [job[name] for name in ("output", "errors") if job.get(name)]
    yield "logs", " and ".join(files) or f"foresail logs {job['job_id']}"
    if job.get("log_is_cut"):
        yield "log cut", "it wrote more than is kept; the rest is lost"
    code = job.get("exit_code")
    if code is not None:
        yield "exit code", str(code)
    if why(job):
        yield "why", why(job)
