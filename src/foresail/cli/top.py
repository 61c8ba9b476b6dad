"""``foresail top``: the cluster and its queue, drawn anew as they change."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.model.words import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)


@app.command()
def top(
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    rows: Annotated[int, typer.Option(min=1, help="Jobs shown.")] = 30,
) -> None:
    """Show the cluster and its jobs until Ctrl-C; once, where there is no terminal."""
    from rich.console import Console
    from rich.live import Live

    from foresail.cli._service import connected

    with connected() as client:
        if not sys.stdout.isatty():
            Console(width=100, highlight=False).print(_drawn(client, rows))
            return
        with Live(_drawn(client, rows), screen=True, auto_refresh=False) as live:
            try:
                while True:
                    time.sleep(every)
                    live.update(_drawn(client, rows), refresh=True)
            except KeyboardInterrupt:
                return


def _drawn(client: ServiceClient, rows: int) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from foresail.cli._service import in_use, now_of, starts_in, why

    cluster = client.cluster()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    narrowed = partial(Text, no_wrap=True, overflow="ellipsis")
    shown = client.jobs(order="next", most=rows)
    # Columns that may wrap are narrowed first, and their cells do not wrap: ids stay whole.
    for heading in ("job", "name", "user", "state", "for", "starts in", "why"):
        table.add_column(heading, no_wrap=heading in ("job", "state", "for"))
    for job in shown:
        now, since = now_of(job), job.get("start_seconds") or job["submit_seconds"]
        table.add_row(
            *(job["job_id"], narrowed(job["name"]), narrowed(job["user"]), job["state"]),
            duration(max(0.0, now - since)),
            *(narrowed(starts_in(job.get("forecast"), now)), narrowed(why(job))),
        )
    return Group(Text(f"{cluster['policy']}\n{in_use(cluster)}"), table)
