"""``foresail nodes``: what there is to run on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.formats import print_table
from foresail.model.words import memory_size

if TYPE_CHECKING:
    from collections.abc import Container

    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)

_LOOKS: Final = 30
_BETWEEN_LOOKS_SECONDS: Final = 0.1


@app.command()
def nodes(
    drain: Annotated[
        str | None, typer.Option(metavar="NODE", help="Let nothing new start on this node.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="NODE", help="Let jobs start on this node again.")
    ] = None,
) -> None:
    """List nodes, or take one out of use and back."""
    from foresail.cli._service import connected

    with connected() as client:
        if drain is not None:
            client.drain(drain)
            _wait_until(client, drain, {"drained", "down"})
        if resume is not None:
            client.resume(resume)
            _wait_until(client, resume, {"up", "down"})
        headings = ("node", "partition", "state", "cpus", "free", "memory", "free", "gpus", "free")
        print_table(headings, [_row(node) for node in client.nodes()], right=6)


def _wait_until(client: ServiceClient, name: str, states: Container[str]) -> None:
    """Give the service a moment to do what was asked."""
    for _ in range(_LOOKS):
        if any(node["name"] == name and node["state"] in states for node in client.nodes()):
            return
        time.sleep(_BETWEEN_LOOKS_SECONDS)


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        node["name"],
        node["partition"],
        node["state"],
        f"{node['cpus']:g}",
        f"{node['free_cpus']:g}",
        memory_size(node["memory_bytes"]),
        memory_size(node["free_memory_bytes"]),
        f"{node['gpus']:g}",
        f"{node['free_gpus']:g}",
    )
