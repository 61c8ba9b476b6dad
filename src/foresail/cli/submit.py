"""``foresail submit``: hand commands to the service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from foresail.client.asked_jobs import AskedJobs
    from foresail.client.service_client import ServiceClient

app = typer.Typer(rich_markup_mode=None)


class _AsTyped(TyperCommand):
    """A command that reads its words itself: by the table that scripts are read by too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave all words as they are, unless help is asked for."""
        return super().parse_args(ctx, args if args[:1] == ["--help"] else ["--", *args])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """What stands behind the command's name."""
        return ["[OPTIONS] SCRIPT [ARGUMENTS] | JOBS | -- COMMAND..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """The options of the table."""
        from foresail.client.job_options import OPTIONS

        with formatter.section("Options"):
            formatter.write_dl(
                [(", ".join(each.names.split()) + f" {each.form}", each.says) for each in OPTIONS]
            )


@app.command(cls=_AsTyped)
def submit(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Submit a job script, a jobs file (.toml, .csv, .jsonl) or a command; prints the id.

    The options are those of sbatch, also on #SBATCH and #FORESAIL lines of a script; what is typed
    wins. Without a script, or with -, it is read from standard input. What was understood is said
    on standard error.
    """
    from foresail.cli._service import asked_for, connected
    from foresail.cli.wait import wait_for
    from foresail.client.asked_jobs import asked_jobs

    asked = asked_jobs(words or [], time.time())
    for line in asked.call.get("late", ()):
        typer.echo(f"foresail: line {line} is behind the first command: ignored", err=True)
    with connected() as client:
        _require_one_node(client, asked)
        if asked.call.get("test_only"):
            _tell_start(client, asked.jobs)
            return
        submitted = client.submit(asked.jobs, client_key=asked.call.get("key"))
        ids = list(dict.fromkeys(job["job_id"].partition("_")[0] for job in submitted))
        is_quiet = asked.call.get("quiet")
        for job_id in () if is_quiet else ids:
            typer.echo(job_id)
        told = set[tuple[str, ...]]()
        for job in submitted:
            understood = (*(() if is_quiet else (asked_for(job),)), *job.get("warnings", ()))
            for said in () if understood in told else understood:
                typer.echo(f"foresail: job {job['job_id']}: {said}", err=True)
            told.add(understood)
        if asked.call.get("wait"):
            wait_for(client, ids)


def _require_one_node(client: ServiceClient, asked: AskedJobs) -> None:
    from foresail.model.errors import InputError

    if asked.needs_one_node and len(client.nodes()) > 1:
        raise InputError(
            "tasks of a job may be on several nodes here",
            field="--nodes",
            value=1,
            expected="one task, with --cpus-per-task for how much it needs",
        )


def _tell_start(client: ServiceClient, jobs: Sequence[Any]) -> None:
    from foresail.cli._service import starts_in

    now = time.time()
    for job in jobs:
        forecast = client.what_if({"job": dict(job)})["then"]
        typer.echo(f"would start: {starts_in(forecast, now) or 'at no known time'}")
