"""Commands about a service itself: serve, doctor, login, token, nodes and top."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.formats import print_table
from foresail.cli.log_options import CommandGroup
from foresail.cli.progress import stop_showing
from foresail.explain.start_words import by_clock
from foresail.model.errors import InputError
from foresail.model.words import duration, memory_size

if TYPE_CHECKING:
    from collections.abc import Container

    from rich.console import RenderableType

    from foresail.client.service_client import ServiceClient


def serve(configuration: Path | None = None, /, shared_account: bool = False) -> None:
    """Run jobs that are submitted over HTTP, under any policy, until SIGTERM; jobs run on.

    Root, and who may become it, serves every account of the machine as itself; others their own.

    SIGHUP reads the policy of the configuration file anew.

    Options:
        configuration: Configuration file (TOML). [everything by default]
        shared_account: Serve users with tokens whose jobs all run as the account that this runs as.
    """
    stop_showing()  # what is on standard error is the log's
    gc.disable()  # until the run is recovered: what is loaded until then is no garbage
    from foresail.live.accounts import go_on_as_root_where_permitted
    from foresail.live.cluster_plugin import require_linux
    from foresail.service.configuration import read_configuration
    from foresail.service.metrics import log_to_standard_error
    from foresail.service.running import RunningService

    require_linux()
    chosen = read_configuration(configuration)
    if shared_account:
        chosen = chosen.model_copy(update={"shared_account": True})
    if not chosen.shared_account:
        go_on_as_root_where_permitted()
    log_to_standard_error(chosen.log_format)
    RunningService(chosen, configuration, typer.echo).work()


def doctor(configuration: Path | None = None, /) -> None:
    """Check what a service needs; status 1 if something is not well.

    Options:
        configuration: Configuration file (TOML). [everything by default]
    """
    from foresail.service.configuration import read_configuration
    from foresail.service.doctor import examined

    ill = False
    for found in examined(read_configuration(configuration)):
        ill = ill or bool(found.remedy)
        typer.echo(f"{'not well' if found.remedy else 'well':<9} {found.what:<13} {found.says}")
        if found.remedy:
            typer.echo(f"{'':<24}{found.remedy}")
    if ill:
        raise typer.Exit(1)


def login(address: str = "http://127.0.0.1:8451", /, token_file: Path | None = None) -> None:
    """Log in: keep the address of a service and your token for it, once it has answered.

    On the machine itself no login is needed for a service that root runs, nor for your own.

    Options:
        address [ADDRESS]: Address of the service.
        token_file FILE: Where the token is. [asked for, or standard input]
    """
    from foresail.client.connection import Connection, is_socket, keep_connection, token_in
    from foresail.client.service_client import ServiceClient

    if not address.startswith(("http://", "https://", "/")):
        raise InputError(
            "not an address",
            field="ADDRESS",
            value=address,
            expected="http://..., https://..., or the path of a socket",
        )
    if is_socket(address):
        token = ""
    elif token_file is not None:
        token = token_in(token_file)
    elif sys.stdin.isatty():
        token = typer.prompt("token", hide_input=True).strip()
    else:
        token = sys.stdin.readline().strip()
    if not (token or is_socket(address)) or not token.isascii() or '"' in token or "\\" in token:
        raise InputError("not a token", expected="what `foresail token create` has printed")
    connection = Connection(address.rstrip("/"), token)
    with ServiceClient(connection) as client:
        me = client.whoami()
    path = keep_connection(connection)
    typer.echo(f"{me['user']} ({me['role']}) at {connection.address}; kept in {path}")
    for remark in me["remarks"]:
        typer.echo(remark)


token = CommandGroup(
    "Create, list and revoke tokens; on the service's machine everybody may create their own."
)


@token.named("create")
def create(
    user: str | None = None, /, role: str = "user", label: str = "", days: float | None = None
) -> None:
    """Create a token and print it, this once.

    Options:
        user: Whose jobs those are that it submits. [you]
        role: read-only, user, operator or admin.
        label: What it is for.
        days: It opens nothing after so many.
    """
    from foresail.cli._service import connected

    lifetime_seconds = None if days is None else days * 86400.0
    with connected() as client:
        user = user or client.whoami()["user"]
        typer.echo(client.create_token(user, role, label, lifetime_seconds)["secret"])


@token.command(name="list")
def list_tokens() -> None:
    """List all tokens there ever were."""
    from foresail.cli._service import connected

    with connected() as client:
        tokens = client.tokens()
    headings = ("token", "user", "role", "label", "created", "expires", "revoked")
    times = ("created_seconds", "expires_seconds", "revoked_seconds")
    print_table(
        headings,
        [
            [each["token_id"], each["user"], each["role"], each["label"]]
            + [_minute(each[name]) for name in times]
            for each in tokens
        ],
    )


@token.command()
def revoke(tokens: Annotated[list[str], typer.Argument(metavar="TOKEN...", help="Ids.")]) -> None:
    """Let tokens open nothing from now on."""
    from foresail.cli._service import connected

    with connected() as client:
        for token_id in tokens:
            client.revoke_token(token_id)


def _minute(unix_seconds: float | None) -> str:
    if unix_seconds is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_seconds))


_LOOKS: Final = 30
_BETWEEN_LOOKS_SECONDS: Final = 0.1


def nodes(drain: str | None = None, until: str | None = None, resume: str | None = None) -> None:
    """List nodes, or take one out of use and back.

    Options:
        drain NODE: Let nothing new start on this node (undivided: all).
        until MOMENT: With --drain: when it should be used again.
        resume NODE: Let jobs start on this node again.
    """
    from foresail.cli._service import connected, moment_of

    if until is not None and drain is None:
        raise InputError("only with --drain", field="--until")
    with connected() as client:
        if drain is not None:
            at = moment_of(until, "--until")
            client.drain(drain, at)
            _wait_until(client, drain, {"drained", "down"}, at)
        if resume is not None:
            client.resume(resume)
            _wait_until(client, resume, {"up", "down"})
        headings = ("node", "partition", "state", "cpus", "free", "memory", "free", "gpus", "free")
        print_table(headings, [_row(node) for node in client.nodes()], right=6)


def _wait_until(
    client: ServiceClient, name: str, states: Container[str], until: float | None = None
) -> None:
    """Give the service a moment to do what was asked."""
    for _ in range(_LOOKS):
        node = next(each for each in client.nodes() if each["name"] == name)
        if node["state"] in states and until in (None, node["until_seconds"]):
            return
        time.sleep(_BETWEEN_LOOKS_SECONDS)


def _row(node: Mapping[str, Any]) -> tuple[str, ...]:
    until = node["until_seconds"] if node["state"] == "drained" else None
    return (
        node["name"],
        node["partition"],
        node["state"] + (f" until {by_clock(until, time.time())}" if until else ""),
        f"{node['cpus']:g}",
        f"{node['free_cpus']:g}",
        memory_size(node["memory_bytes"]),
        memory_size(node["free_memory_bytes"]),
        f"{node['gpus']:g}",
        f"{node['free_gpus']:g}",
    )


def top(every: float = 2.0, rows: int = 30) -> None:
    """Show the cluster and its jobs until Ctrl-C; once, where there is no terminal.

    Options:
        every (0.2..): Seconds between two looks.
        rows (1..): Jobs shown.
    """
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

    from foresail.cli._service import in_use, now_of, start_cell, why

    cluster = client.cluster()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    narrowed = partial(Text, no_wrap=True, overflow="ellipsis")
    shown = client.jobs(order="next", most=rows)
    # Columns that may wrap are narrowed first, and their cells do not wrap: ids stay whole.
    for heading in ("job", "name", "user", "state", "for", "starts", "why"):
        table.add_column(heading, no_wrap=heading in ("job", "state", "for"))
    for job in shown:
        now, since = now_of(job), job.get("start_seconds") or job["submit_seconds"]
        table.add_row(
            *(job["job_id"], narrowed(job["name"]), narrowed(job["user"]), job["state"]),
            duration(max(0.0, now - since)),
            *(narrowed(start_cell(job.get("forecast"), now)), narrowed(why(job))),
        )
    return Group(Text(f"{cluster['policy']}\n{in_use(cluster)}"), table)
