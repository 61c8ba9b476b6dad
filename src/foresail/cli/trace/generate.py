"""``foresail trace generate``: a workload from a model or from another log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.cli.log_options import Plugins
from foresail.cli.progress import doing
from foresail.model.errors import InputError


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The generator [list them all].")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of jobs.")] = None,
    processors: Annotated[
        int | None, typer.Option(min=1, help="Processors of the machine.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same jobs.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A workload folder, or FILE.swf[.gz|.zst]."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "--param", metavar="KEY=VALUE", help="Any parameter."),
    ] = None,
    plugins: Plugins = None,
) -> None:
    """Generate a workload; without NAME, list the generators and their parameters."""
    del plugins  # they are loaded
    from foresail.model.registry import find
    from foresail.model.short_form import make_part, settings_of

    if name is None:
        from foresail.cli.formats import print_plugins

        print_plugins("generator", "what it makes")
        return
    if output is None:
        raise InputError(
            "nowhere to write", field="--output", expected="a folder or FILE.swf[.gz|.zst]"
        )
    given = settings_of({"jobs": jobs, "processors": processors})
    parameters = make_part(find("generator", name), [*given, *(settings or ())]).parameters
    _generate(name, parameters, seed, output)


def _generate(name: str, parameters: object, seed: int, output: Path) -> None:
    from foresail.cli.trace._writing import write
    from foresail.model.words import count, duration
    from foresail.traces.generating import ACHIEVED, generate

    with doing(f"generating by {name}"):
        workload = generate(name, parameters, seed)
    write(workload, output)
    submit = workload.jobs["submit_seconds"]
    users = workload.jobs["user"].drop_nulls().n_unique()
    of_users = f" of {count(users, 'user')}" if users else ""
    span = duration(submit[-1] - submit[0])
    typer.echo(f"{output}: {count(len(workload), 'job')}{of_users} over {span}")
    for name, value in workload.meta.header.items():
        if name.startswith(ACHIEVED):
            typer.echo(f"  {name.removeprefix(ACHIEVED).replace('_', ' ')}: {value}")
