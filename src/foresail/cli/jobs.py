"""``foresail jobs``: the jobs of the service."""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

app = typer.Typer(rich_markup_mode=None)

_LIVING: Final = ("held", "pending", "running")


@app.command()
def jobs(
    state: Annotated[
        list[str] | None, typer.Option(help="In this state; may be repeated. [not done with]")
    ] = None,
    user: Annotated[list[str] | None, typer.Option(help="Of this user; may be repeated.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Of this name; may be repeated.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="In any state.")] = False,
    most: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, a line each.")] = False,
) -> None:
    """List jobs, newest first: those not done with, unless asked otherwise."""
    from foresail.cli._service import connected, print_jobs

    states = state or (() if everything else _LIVING)
    with connected() as client:
        found = list(client.jobs(states=states, users=user or (), names=name or (), most=most))
    if as_json:
        for job in found:
            typer.echo(json.dumps(job))
    else:
        print_jobs(found)
