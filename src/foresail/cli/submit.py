"""``foresail submit``: hand commands to the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from foresail.model.errors import InputError

app = typer.Typer(rich_markup_mode=None)

_SCRIPT_SUFFIXES: Final = (".sh", ".bash", ".slurm", ".sbatch")


@app.command(context_settings={"allow_interspersed_args": False})
def submit(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT | JOBS | -- COMMAND...",
            help="A job script, a jobs file (.toml, .csv, .jsonl), or a command behind --.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What jobs that are alike are called.")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="Cpus of a task. [1]")] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Tasks, which start together. [1]")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of a task, such as 2GiB.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="TIME", help="It is ended after so long, such as 2h.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it should be done, such as 6h.")
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Only once this job has completed; may be repeated."),
    ] = None,
    array: Annotated[
        str | None, typer.Option(metavar="RANGE", help="One job for each number, such as 0-9.")
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable; may be repeated."),
    ] = None,
    directory: Annotated[Path | None, typer.Option(help="Where it runs. [here]")] = None,
    strl: Annotated[str | None, typer.Option(help="A request in STRL.")] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Keep it from starting.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is done.")] = False,
    key: Annotated[
        str | None,
        typer.Option(help="Your own name for this call: repeated, it submits nothing again."),
    ] = None,
) -> None:
    """Submit a command, a job script or a jobs file; prints the ids, a line each.

    With --wait, exit status 1 says that not all completed.
    """
    from foresail.cli._service import connected
    from foresail.cli.wait import wait_for

    given = {
        "name": name,
        "cpus": cpus,
        "tasks": tasks,
        "memory": memory,
        "requested_time": time,
        "deadline": deadline,
        "after": after,
        "array": array,
        "environment": _variables(environment or []),
        "directory": None if directory is None else str(directory.absolute()),
        "strl": strl,
        "held": hold or None,
    }
    wishes = {field: value for field, value in given.items() if value}
    jobs = [{"directory": str(Path.cwd()), **job, **wishes} for job in _jobs_of(words)]
    with connected() as client:
        submitted = client.submit(jobs, client_key=key)
        for job in submitted:
            typer.echo(job["job_id"])
            for warning in job.get("warnings", ()):
                typer.echo(f"foresail: job {job['job_id']}: {warning}", err=True)
        if wait:
            wait_for(client, [job["job_id"] for job in submitted])


def _jobs_of(words: list[str]) -> list[dict[str, Any]]:
    """The jobs that a file holds, or the one that a command is."""
    from foresail.client.job_script import read_script
    from foresail.live.jobs_file import FILE_SUFFIXES, raw_jobs

    if words[0] == "--":
        words = words[1:]
    elif len(words) == 1 and Path(words[0]).suffix in FILE_SUFFIXES:
        return raw_jobs(Path(words[0]))
    elif len(words) == 1 and _is_script(Path(words[0])):
        return [read_script(Path(words[0]))]
    if not words:
        raise InputError("no command", expected="foresail submit -- COMMAND")
    return [{"command": words}]


def _is_script(path: Path) -> bool:
    """Whether a word means a script: a file, or the name of one that is not there."""
    return path.is_file() or path.suffix in _SCRIPT_SUFFIXES


def _variables(assignments: list[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in assignments]
    for name, equals, _ in pairs:
        if not equals:
            raise InputError("not a variable", field="--env", value=name, expected="NAME=VALUE")
    return {name: value for name, _, value in pairs}
