"""``foresail trace fetch``: download a public archive log by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.progress import doing, in_bytes


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the log [list them all].")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to put it.")
    ] = Path(),
    from_address: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="URL",
            help="Another address of the file, or of its folder (ends in /).",
        ),
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take it even if its digest is another.")
    ] = False,
) -> None:
    """Download a public archive log, resuming and checking; without NAME, list the catalogue."""
    from foresail.traces.catalogue import catalogue
    from foresail.traces.fetching import fetch

    if name is None:
        _list()
        return
    known = catalogue()
    log = known.find(name)
    address = from_address or known.archive.address + log.path
    with doing(f"downloading {log.file_name}", said=in_bytes) as entered:
        tell = entered.progressed
        fetched = fetch(log, output, address, progress=tell, accept_other_digest=unverified)
    state = "downloaded" if fetched.downloaded else "was there"
    if fetched.verified:
        digest = "its text has the catalogue's SHA-256"
    elif log.text_sha256 is None:
        digest = f"whole, but the catalogue has no digest of it; SHA-256 {fetched.sha256}"
    else:
        digest = f"NOT the catalogue's SHA-256 but {fetched.sha256}"
    typer.echo(f"{fetched.path}: {state}; {digest}")
    typer.echo(known.archive.terms)
    typer.echo(f"Cite: {known.archive.citation}.")


def _list() -> None:
    from foresail.cli.formats import print_table
    from foresail.model.words import number
    from foresail.traces.catalogue import catalogue

    known = catalogue()
    print_table(
        ("name", "system", "jobs", "processors", "digest known"),
        [
            (
                log.name,
                log.system,
                number(log.jobs),
                number(log.processors),
                "yes" if log.text_sha256 else "no",
            )
            for log in known.log
        ],
        right=3,
    )
    typer.echo()
    typer.echo(f"{known.archive.name}: {known.archive.address}")
    typer.echo(known.archive.terms)
