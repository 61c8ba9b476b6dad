"""``foresail strl explain``: what a file of requests asks for, in words."""

from __future__ import annotations

import typer

from foresail.cli.strl._options import RequestFile


def command(path: RequestFile) -> None:
    """What is asked for, which alternatives there are, and what each is worth."""
    from foresail.strl.text import read
    from foresail.strl.wording import explain

    for line in explain(read(path)):
        typer.echo(line)
