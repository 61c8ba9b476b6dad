"""``foresail login``: which service the commands speak to, and as whom."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from foresail.model.errors import InputError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def login(
    address: Annotated[
        str, typer.Argument(metavar="[ADDRESS]", help="Address of the service.")
    ] = "http://127.0.0.1:8451",
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the token is. [asked for, or standard input]"),
    ] = None,
) -> None:
    """Keep the address of a service and your token for it, once it was shown to be right.

    On the machine itself no login is needed for a service that root runs, nor for your own.
    """
    from foresail.client.connection import Connection, is_socket, keep_connection
    from foresail.client.service_client import ServiceClient
    from foresail.model.documents import text_of

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
        token = text_of(token_file).strip()
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
