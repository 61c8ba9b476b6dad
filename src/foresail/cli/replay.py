"""``foresail replay``: whether this version, given what happened, would decide a run as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from foresail.cli._moments import learned_before, log_of
from foresail.cli.log_options import Plugins
from foresail.cli.progress import doing
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.twin import Difference, differences
from foresail.model.decision import Instruction, Preempt, Start, TickAt, WakeAt, Withdraw
from foresail.model.errors import InputError
from foresail.record.job_life import ImpossibleTransition
from foresail.record.log_text import read_log
from foresail.record.records import Manifest
from foresail.scenario.beginning import controller_of
from foresail.scenario.scenario import Scenario

_MOST_SHOWN: Final = 5


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or its event log.")],
    plugins: Plugins = None,
) -> None:
    """Decide a run again, event by event, and compare with its log: status 1 if they differ."""
    del plugins  # they are loaded
    log = log_of(run)
    with doing(f"deciding {log.name} again"):
        found = list(_differences(run, log))
    if not found:
        typer.echo("every decision is made again")
        return
    typer.echo("decided otherwise, at first:")
    for each in found:
        was, now = _words(each.recorded, each.time), _words(each.repeated, each.time)
        typer.echo(f"  step {each.step:,}, at {each.time:.0f} s: {was}; now: {now}")
    raise typer.Exit(1)


def _differences(run: Path, log: Path) -> Iterator[Difference]:
    before = learned_before(run)

    def build(manifest: Manifest) -> Controller:
        policy, conventions = parse_policy(manifest.policy), manifest.conventions
        scenario = Scenario(None, policy, manifest.cluster, conventions, learned_before=before)
        if policy.needs_truth:
            raise InputError(
                "its predictor knew how long jobs run, which the log does not hold",
                source=log,
                value=manifest.policy,
                expected="the log of a policy whose predictor learns",
            )
        return controller_of(scenario)

    try:
        yield from differences(read_log(log), build)
    except ImpossibleTransition as error:
        raise InputError(f"cannot have happened: {error}", source=log) from error


def _words(instructions: tuple[Instruction, ...], now: float) -> str:
    words = [_of_one(each, now) for each in instructions[:_MOST_SHOWN]]
    return ", ".join(words) + (", ..." if len(instructions) > _MOST_SHOWN else "") or "nothing"


def _of_one(instruction: Instruction, now: float) -> str:
    job_id = instruction.job_id
    match instruction:
        case Start():
            return f"start {job_id}"
        case Preempt():
            return f"stop {job_id}"
        case Withdraw():
            return f"withdraw {job_id}"
        case WakeAt(time=time):
            return f"expect {job_id} to end in {time - now:.0f} s"
        case TickAt(time=time):
            return f"look at {job_id} in {time - now:.0f} s"
