"""``foresail-kubernetes``: what goes on beside a service."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from foresail.client.connection import find_connection
from foresail.client.service_client import ServiceClient
from foresail.model.errors import ForesailError
from foresail_kubernetes.connection import Access
from foresail_kubernetes.telling import tell_for_ever

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kubernetes, beside a service of Foresail that observes it.",
)


@app.callback()
def commands() -> None:
    """Have a name for each command, though there is one."""


@app.command()
def tell(
    every: Annotated[float, typer.Option(min=1.0, help="Seconds between two rounds.")] = 30.0,
    most: Annotated[int, typer.Option(min=1, help="Most pods that are told in a round.")] = 100,
    scheduler: Annotated[
        str, typer.Option(metavar="NAME", help="Pods of this one get the condition, too.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="One round.")] = False,
    config: Annotated[str, typer.Option(metavar="FILE", help="As for cluster = ...")] = "",
    context: Annotated[str, typer.Option(metavar="NAME", help="Context of that file.")] = "",
) -> None:
    """Write to pods that wait when they are likely to start, and why they wait.

    The service is the one that ``foresail jobs`` asks.
    """
    rounds = 1 if once else None
    access = Access(config, context)

    def service() -> ServiceClient:
        return ServiceClient(find_connection())

    def say(sentence: str) -> None:
        sys.stderr.write(f"{sentence}\n")

    try:
        asyncio.run(tell_for_ever(access, service, every, most, say, scheduler, rounds))
    except ForesailError as error:
        say(str(error))
        raise typer.Exit(2) from error
