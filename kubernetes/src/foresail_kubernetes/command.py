"""``foresail-kubernetes``: what goes on beside a service."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from foresail.client.connection import find_connection
from foresail.client.service_client import ServiceClient
from foresail.model.errors import ForesailError, InputError
from foresail_kubernetes.connection import Access
from foresail_kubernetes.telling import tell_for_ever
from foresail_kubernetes.transient import notices, rounds
from foresail_kubernetes.transient.planning import NoPlanError, added_up, plan_services
from foresail_kubernetes.transient.pools import node_pool
from foresail_kubernetes.transient.settings import read_settings

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kubernetes, beside a service of Foresail that observes it.",
)


_Settings = Annotated[Path, typer.Argument(metavar="SETTINGS.toml", help="Services and markets.")]
_Config = Annotated[str, typer.Option(metavar="FILE", help="As for cluster = ...")]
_Context = Annotated[str, typer.Option(metavar="NAME", help="Context of that file.")]


@app.command()
def transient(
    settings: _Settings,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two rounds.")] = 1.0,
    namespace: Annotated[str, typer.Option(help="Namespace of the lease.")] = "default",
    identity: Annotated[str, typer.Option(help="Name of this replica; that of the host.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Answer /healthz there.")] = 0,
    config: _Config = "",
    context: _Context = "",
) -> None:
    """Keep services on transient machines: plan, pools, machines that are taken back, room."""
    try:
        asked = read_settings(settings)
        place = rounds.Place(settings.parent, namespace, identity or socket.gethostname())
        access = Access(config, context)
        asyncio.run(rounds.go_on(access, asked, place, every, port, _say))
    except ForesailError as error:
        _say(str(error))
        raise typer.Exit(2) from error


@app.command()
def pools(settings: _Settings) -> None:
    """Print NodePools of Karpenter for the services, as one list; exit status 1: no plan holds."""
    try:
        asked = read_settings(settings)
        if asked.pools.node_class is None:
            expected = "group, kind and name of what machines are made of"
            raise InputError("is missing", field="pools.node_class", expected=expected)
        plans = plan_services(asked, settings.parent)
        manifests = [node_pool(each, asked.pools) for each in added_up(plans)]
    except ForesailError as error:
        _say(str(error))
        raise typer.Exit(1 if isinstance(error, NoPlanError) else 2) from error
    for each in plans:
        _say(each.sentence)
    listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
    typer.echo(msgspec.json.format(msgspec.json.encode(listed)))


@app.command()
def notice(
    node: Annotated[str, typer.Argument(help="Node that this runs on.")],
    cloud: Annotated[str, typer.Option(help="Whose metadata service: aws, gcp or azure.")],
    machine: Annotated[str, typer.Option(help="Its name to the cloud; that of the node.")] = "",
    address: Annotated[str, typer.Option(metavar="URL", help="Another metadata service.")] = "",
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two questions.")] = 2.0,
    config: _Config = "",
    context: _Context = "",
) -> None:
    """Watch a machine's metadata until it is about to be taken back, and annotate its node."""
    access = Access(config, context)
    try:
        watch = notices.watch_metadata(access, node, machine or node, cloud, address, every, _say)
        asyncio.run(watch)
    except ForesailError as error:
        _say(str(error))
        raise typer.Exit(2) from error


@app.command()
def tell(
    every: Annotated[float, typer.Option(min=1.0, help="Seconds between two rounds.")] = 30.0,
    most: Annotated[int, typer.Option(min=1, help="Most pods that are told in a round.")] = 100,
    scheduler: Annotated[
        str, typer.Option(metavar="NAME", help="Pods of this one get the condition, too.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="One round.")] = False,
    config: _Config = "",
    context: _Context = "",
) -> None:
    """Write to pods that wait when they are likely to start, and why they wait.

    The service is the one that ``foresail jobs`` asks.
    """
    count = 1 if once else None
    access = Access(config, context)

    def service() -> ServiceClient:
        return ServiceClient(find_connection())

    try:
        is_told = asyncio.run(tell_for_ever(access, service, every, most, _say, scheduler, count))
    except ForesailError as error:
        _say(str(error))
        raise typer.Exit(2) from error
    raise typer.Exit(not is_told)


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
