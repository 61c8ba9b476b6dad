"""``foresail token``: create, list and revoke the tokens of a service, as one of its admins.

On the service's machine everybody who is served can create tokens for themselves.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    user: Annotated[
        str | None, typer.Argument(help="Whose jobs those are that it submits. [you]")
    ] = None,
    role: Annotated[str, typer.Option(help="read-only, user, operator or admin.")] = "user",
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    days: Annotated[float | None, typer.Option(help="It opens nothing after so many.")] = None,
) -> None:
    """Create a token and print it, this once."""
    from foresail.cli._service import connected

    lifetime_seconds = None if days is None else days * 86400.0
    with connected() as client:
        user = user or client.whoami()["user"]
        typer.echo(client.create_token(user, role, label, lifetime_seconds)["secret"])


@app.command(name="list")
def list_tokens() -> None:
    """List all tokens there ever were."""
    from foresail.cli._service import connected
    from foresail.cli.formats import print_table

    with connected() as client:
        tokens = client.tokens()
    headings = ("token", "user", "role", "label", "created", "expires", "revoked")
    times = ("created_seconds", "expires_seconds", "revoked_seconds")
    print_table(
        headings,
        [
            [each["token_id"], each["user"], each["role"], each["label"]]
            + [_moment(each[name]) for name in times]
            for each in tokens
        ],
    )


@app.command()
def revoke(tokens: Annotated[list[str], typer.Argument(metavar="TOKEN...", help="Ids.")]) -> None:
    """Let tokens open nothing from now on."""
    from foresail.cli._service import connected

    with connected() as client:
        for token_id in tokens:
            client.revoke_token(token_id)


def _moment(unix_seconds: float | None) -> str:
    if unix_seconds is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_seconds))
