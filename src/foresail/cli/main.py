"""The command ``foresail``: one small file per command or group, imported when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import Any, Final, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from foresail import __version__
from foresail.cli.progress_line import progress_shown
from foresail.model.errors import ForesailError
from foresail.model.plug_in_errors import blaming_plug_ins
from foresail.model.renamed import DeprecatedWordWarning

COMMANDS: Final = {
    "compare": "What other schedulers and predictions would have done to a log.",
    "simulate": "Replay a log under one policy.",
    "run": "Run real commands on this machine under any policy.",
    "serve": "Run what is submitted over HTTP, under any policy.",
    "doctor": "What a service needs, and whether that is well.",
    "db": "The store of a service: check it, or write a session as files to replay.",
    "token": "Create, list and revoke the tokens of a service.",
    "submit": "Hand commands, scripts or a jobs file to the service.",
    "jobs": "List the jobs of the service.",
    "show": "One job of the service, as it stands.",
    "logs": "What a job of the service has written.",
    "wait": "Until jobs of the service are done with.",
    "cancel": "Withdraw waiting jobs of the service, or stop running ones.",
    "forecast": "When a job of the service will start and end, and what if.",
    "hold": "Keep waiting jobs of the service from starting.",
    "release": "Let held jobs of the service start.",
    "nodes": "The nodes of the service; take one out of use and back.",
    "top": "The service's cluster and queue, as they change.",
    "login": "Which service the commands speak to, and as whom.",
    "analyse": "What workloads are like: sizes, runtimes, rhythm, users, outcomes.",
    "trace": "Inspect, validate, convert, filter, sample, generate and fetch workloads.",
    "campaign": "Replay many policies on many logs, and choose by leave-one-out.",
    "experiment": "Run published studies, their claims beside what comes out.",
    "predict": "Evaluate predictors on logs; train, merge and show their state.",
    "strl": "Check, explain and solve requests in STRL, the space-time request language.",
    "cloud": "What to own and what to rent, which jobs wait, and what it costs.",
    "policies": "List what a policy can be made of, with parameters.",
    "explain": "The plan at a moment of a run, why jobs waited, or what happened to one job.",
    "replay": "Whether every decision of a run would be made again.",
}
"""Command name to the line shown in the help. The code is in ``foresail.cli.<name>``."""


class LateCommands(TyperGroup):
    """Imports a command's module only when that command is called, so that help is quick."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without any word, show the queue of the service; help, if there is none."""
        if not args and not ctx.resilient_parsing:
            from foresail.cli._jobs_table import is_queue_shown

            if is_queue_shown():
                ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is Typer's
        """All command names, in the order users meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now unless only its help line is wanted."""
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or cmd_name not in sys.argv:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name], short_help=COMMANDS[cmd_name])
        module = importlib.import_module(f"foresail.cli.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LateCommands, no_args_is_help=True, add_completion=True, rich_markup_mode=None
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"foresail {__version__}")
        raise typer.Exit


@app.callback()
def foresail(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True),
) -> None:
    """Foresail plans cluster work by the odds: replay a log, compare policies, run jobs."""


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
    """As Python does, but a deprecated word is a note to the one who typed it."""
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
