"""What ``foresail`` alone shows of a service: what runs and is next, one's own first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import typer

from foresail.model.errors import ForesailError, InputError

if TYPE_CHECKING:
    from foresail.client.service_client import ServiceClient

_TIMEOUT_SECONDS: Final = 2.0
_MOST: Final = 15
"""So many jobs of one's own, and of others."""


def is_queue_shown() -> bool:
    """Print the queue of the service; whether there is one that answers."""
    from foresail.client.connection import find_connection

    try:
        connection = find_connection()
    except InputError:
        return False
    from foresail.client.service_client import ServiceClient

    try:
        with ServiceClient(
            connection, patience_seconds=0.0, timeout_seconds=_TIMEOUT_SECONDS
        ) as client:
            _show_queue(client, connection.address)
    except ForesailError as error:
        typer.echo(f"foresail: {error}", err=True)
        return False
    return True


def _show_queue(client: ServiceClient, address: str) -> None:
    from foresail.cli._jobs_table import print_jobs
    from foresail.cli._service import in_use

    me, plan = client.whoami()["user"], client.plan(most=2 * _MOST)
    own = [
        *client.jobs(users=[me], states=("running", "pending", "held"), order="next", most=_MOST)
    ]
    others = [each for each in _planned(plan) if each["user"] != me][:_MOST]
    typer.echo(f"{address}, {in_use(client.cluster())}")
    if own or others:
        print_jobs([*own, *others])
        typer.echo("START is the time yet, and its range four times in five; yours come first")
    typer.echo("foresail submit SCRIPT, foresail jobs, foresail explain JOB, foresail --help")


def _planned(plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What runs, then what is next, of everybody; nameless where one may not see it."""
    for each in plan["running"]:
        yield {**each, "state": "running", "start_seconds": each["start"]["p50"]}
    for each in plan["waiting"]:
        yield {**each, "state": "pending", "forecast": {"start": each["start"]}}
