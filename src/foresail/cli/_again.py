"""``foresail explain RUN --again``: which decisions of a log this version would not make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import typer

from foresail.cli.progress import doing
from foresail.clusters.learned import recall
from foresail.clusters.run_directory import RunDirectory
from foresail.control.log_text import read_log
from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.control.records import Manifest
from foresail.control.state import ImpossibleTransition
from foresail.model.decision import Instruction
from foresail.model.errors import InputError
from foresail.model.protocols import NeedsTruth
from foresail.model.words import count
from foresail.simulator.recorded import Difference, differences

_MOST_SHOWN: Final = 5


def decide_again(run: Path, log: Path) -> int:
    """Say which steps of a log would be decided otherwise now; how many these are.

    Raises
    ------
    InputError
        If the log cannot be repeated.
    """
    with doing(f"deciding {log.name} again"):
        found = list(_differences(run, log))
    if not found:
        typer.echo("every decision is made again")
        return 0
    typer.echo(f"{count(len(found), 'step')} would be decided otherwise:")
    for each in found[:_MOST_SHOWN]:
        was, now = _words(each.recorded), _words(each.repeated)
        typer.echo(f"  step {each.step:,}, at {each.time:.0f} s: {was}; now {now}")
    if len(found) > _MOST_SHOWN:
        typer.echo(f"  and {count(len(found) - _MOST_SHOWN, 'further step')}")
    return len(found)


def _differences(run: Path, log: Path) -> Iterator[Difference]:
    def build(manifest: Manifest) -> Controller:
        scheduler, predictor, correction = parse_policy(manifest.policy).build()
        if isinstance(predictor, NeedsTruth):
            raise InputError(
                "its predictor was told how long jobs run, which the log does not hold",
                source=log,
                value=manifest.policy,
                expected="the log of a policy whose predictor learns",
            )
        if (run / "run.json").is_file():
            recall(RunDirectory.open(run), predictor)
        parts = (scheduler, predictor, correction)
        return Controller(manifest.cluster, *parts, manifest.conventions)

    try:
        yield from differences(read_log(log), build)
    except ImpossibleTransition as error:
        raise InputError(f"cannot have happened: {error}", source=log) from error


def _words(instructions: tuple[Instruction, ...]) -> str:
    told = [f"{type(each).__name__} {each.job_id}" for each in instructions[:_MOST_SHOWN]]
    return ", ".join(told) + (", ..." if len(instructions) > _MOST_SHOWN else "") or "nothing"
