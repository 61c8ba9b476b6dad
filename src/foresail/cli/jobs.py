"""``foresail jobs``: the jobs of the service."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def jobs(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--states", "--state", "-t", help="In these states: R,PD or running. [not done with]"
        ),
    ] = None,
    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="Of this user.")] = None,
    me: Annotated[bool, typer.Option("--me", help="One's own.")] = False,
    name: Annotated[list[str] | None, typer.Option("--name", "-n", help="Of this name.")] = None,
    job: Annotated[
        list[str] | None, typer.Option("--jobs", "--job", "-j", metavar="JOB,...", help="These.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="In any state.")] = False,
    most: Annotated[
        int, typer.Option("--limit", "--most", min=0, help="At most so many; 0 for all.")
    ] = 50,
    each_member: Annotated[
        bool, typer.Option("--array", "-r", help="A line for each member of an array.")
    ] = False,
    no_headings: Annotated[bool, typer.Option("--noheader", "-h", help="No headings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, a line each.")] = False,
) -> None:
    """List jobs: what runs, then what starts next; or, of any state or by id, newest first."""
    from foresail.cli._jobs_table import print_jobs, states_of
    from foresail.cli._service import connected
    from foresail.client.job_ids import job_ids
    from foresail.client.service_client import LIVING_STATES

    states = states_of(state) if state else () if everything or job else LIVING_STATES
    is_of_queue = bool(states) and set(states) <= set(LIVING_STATES)
    with connected() as client:
        wanted: dict[str, Any] = {
            "states": states,
            "users": [*_separated(user), *([client.whoami()["user"]] if me else [])],
            "names": _separated(name),
            "job_ids": job_ids(job) if job else None,
        }
        order: Literal["next", "newest"] = "next" if is_of_queue else "newest"
        found = list(client.jobs(**wanted, order=order, most=most or None))
        left = client.count_jobs(**wanted) - most if len(found) == most else 0
    if as_json:
        for each in found:
            typer.echo(json.dumps(each))
    elif found:
        print_jobs(found, with_headings=not no_headings, each_member=each_member)
    else:
        typer.echo("no jobs", err=True)
    if left > 0:
        typer.echo(f"foresail: {left:,} more: --limit N shows more, --limit 0 all", err=True)


def _separated(words: list[str] | None) -> list[str]:
    return [each for word in words or () for each in word.split(",")]
