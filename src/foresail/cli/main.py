"""The command ``foresail``: what there is, imported when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib.util
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from foresail import __version__
from foresail.cli.progress import progress_shown
from foresail.model.errors import ForesailError, InputError
from foresail.model.registry import DeprecatedWordWarning, blaming_plug_ins

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "A log": {
        "compare": ("compare:compare", "Compare schedulers and predictions on a log."),
        "simulate": ("compare:simulate", "Replay a log under one policy."),
        "explain": ("explain:explain", "Explain the plan at a moment, or what happened to a job."),
        "forecast": ("forecast:forecast", "Forecast when a job starts and ends, and what if."),
        "replay": ("replay:replay", "Check that a run's decisions would be made again."),
        "analyse": ("analyse:analyse", "Describe workloads: sizes, runtimes, rhythm, users."),
        "predict": ("predict:app", "Evaluate predictors on logs; train, merge and show them."),
        "trace": ("trace:app", "Inspect, validate, convert, filter, generate, fetch workloads."),
    },
    "Jobs on this machine and the live service": {
        "run": ("run:run", "Run real commands on this machine under any policy."),
        "serve": ("service_admin:serve", "Serve jobs that are submitted over HTTP."),
        "submit": ("service_jobs:submit_app", "Submit a script, a command or a file of jobs."),
        "jobs": ("service_jobs:jobs", "List jobs."),
        "show": ("service_jobs:show", "Show one job as it stands."),
        "logs": ("service_jobs:logs", "Print what a job has written."),
        "wait": ("service_jobs:wait", "Block until jobs finish."),
        "cancel": ("service_jobs:cancel", "Withdraw waiting jobs, or stop running ones."),
        "hold": ("service_jobs:hold", "Keep waiting jobs from starting."),
        "release": ("service_jobs:release", "Let held jobs start."),
        "nodes": ("service_admin:nodes", "List the nodes; take one out of use and back."),
        "top": ("service_admin:top", "Show the cluster and its queue as they change."),
        "login": ("service_admin:login", "Log in to a service."),
        "token": ("service_admin:token", "Create, list and revoke tokens of a service."),
        "doctor": ("service_admin:doctor", "Check what the service needs."),
        "db": ("db:app", "Check, export, back up, restore and move a service's store."),
    },
    "A cluster of Slurm": {
        "slurm": ("", "Foresee starts with no rights; advise, order, hold, release.")
    },
    "Studies": {
        "campaign": ("campaign:app", "Replay many policies on many logs, and choose among them."),
        "experiment": ("", "Run published studies, their claims beside what comes out."),
    },
    "The cloud": {
        "cloud": ("cloud:app", "Advise what to own and rent, which jobs wait, and the cost.")
    },
    "Tools": {
        "policies": ("policies:policies", "List what a policy can be made of, with parameters."),
        "strl": ("strl:app", "Check and solve requests in the language STRL."),
    },
}
"""Place (``module:name`` in ``foresail.cli``) and line in the help of each command.

Those without a place come with other distributions.
"""

COMMANDS: Final = {name: each for group in GROUPS.values() for name, each in group.items()}
ELSEWHERE: Final = {"experiment": "foresail-studies", "slurm": "foresail-slurm"}
"""Distributions that bring commands, by the entry point ``foresail.commands``."""


def app_of(name: str) -> typer.Typer:
    """Import a command, or a group of them, as an app for Typer.

    Raises ``InputError`` if the distribution that brings it is not installed.
    """
    if name in ELSEWHERE:
        return _app_elsewhere(name)
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(f"foresail.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return found
    from foresail.cli.log_options import with_option_records

    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name)(with_option_records(found))
    return app


def _app_elsewhere(name: str) -> typer.Typer:
    from importlib.metadata import entry_points

    for point in entry_points(group="foresail.commands", name=name) if _is_here(name) else ():
        command: typer.Typer = point.load()
        return command
    problem = f"foresail {name} comes with another distribution"
    raise InputError(problem, expected=f"{ELSEWHERE[name]} to be installed")


class _LateCommands(TyperGroup):
    """Imports a command's module only when that command is called, so that help is quick."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without any word, show the queue of the service; help, if there is none."""
        if not args and not ctx.resilient_parsing:
            from foresail.cli._service import is_queue_shown

            if is_queue_shown():
                ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is Typer's
        """Return all command names, in the order users meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command, unless only its help line is wanted."""
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or cmd_name not in sys.argv:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])
        command = typer.main.get_command(app_of(cmd_name))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - Typer's signature
        """List the commands by what they are about."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            shown = {name: says for name, (_, says) in group.items() if _is_here(name)}
            if not shown:
                continue
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), says) for name, says in shown.items()])


def _is_here(name: str) -> bool:
    """Return whether a command can be called: some come with other distributions."""
    package = ELSEWHERE.get(name, "").replace("-", "_")
    return not package or importlib.util.find_spec(package) is not None


app = typer.Typer(
    cls=_LateCommands, no_args_is_help=True, add_completion=True, rich_markup_mode=None
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"foresail {__version__}")
        raise typer.Exit


@app.callback()
def foresail(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True),
) -> None:
    """Schedule clusters by how long jobs may take, not by one guess: on a log, or live."""


_OBJECTS_BETWEEN_COLLECTIONS: Final = 50_000
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warn as Python does, but of a deprecated word in a note to the one who typed it."""
    if issubclass(category, DeprecatedWordWarning):
        typer.echo(f"foresail: {message}", err=True)
    else:
        (file or sys.stderr).write(
            warnings.formatwarning(message, category, filename, lineno, line)
        )


def main() -> None:
    """Entry point: errors in the input are one line on standard error and exit status 2.

    Imports make many objects and no garbage. Looking for it as often as Python does by itself, and
    once more at the end, would take a fifth of the time of a short command.
    """
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    warnings.showwarning = _show_warning
    if sys.stdout is None:  # the caller has closed it
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the end
    try:
        with progress_shown(sys.argv), blaming_plug_ins():
            try:
                app()
            finally:
                sys.stdout.flush()
    except ForesailError as error:
        typer.echo(f"foresail: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = "standard output" if error.filename is None else error.filename
        typer.echo(f"foresail: {where}: cannot be written ({error.strerror})", err=True)
        if error.filename is None:  # what is left of it is not to be tried again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
