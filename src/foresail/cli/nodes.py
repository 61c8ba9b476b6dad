"""``foresail nodes``: what there is to run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from foresail.cli.tables import print_table

app = typer.Typer(rich_markup_mode=None)


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
        if resume is not None:
            client.resume(resume)
        headings = ("node", "partition", "state", "cpus", "free", "memory", "free", "jobs")
        print_table(headings, [_row(node) for node in client.nodes()], right=5)


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        node["name"],
        node["partition"],
        node["state"],
        f"{node['cpus']:g}",
        f"{node['free_cpus']:g}",
        _size(node.get("memory_bytes")),
        _size(node.get("free_memory_bytes")),
        str(len(node.get("jobs", ()))),
    )


def _size(amount: float | None) -> str:
    return "" if not amount else f"{amount / 2**30:.1f} GiB"
