"""The options of ``simulate`` and ``compare`` that say what a cluster with nodes is like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from foresail.model.errors import InputError

if TYPE_CHECKING:
    from foresail.model.protocols import Predictor
    from foresail.simulator.surroundings import Outage, Surroundings
    from foresail.traces.workload import Workload

OnNodes: TypeAlias = Annotated[
    bool,
    typer.Option("--on-nodes", help="Place tasks on the workload's own nodes, event by event."),
]
Cycle: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--cycle",
        metavar="SECONDS",
        help="With --on-nodes: ask the scheduler once in so many seconds.",
    ),
]
StartDelay: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--start-delay",
        metavar="SECONDS",
        help="With --on-nodes: nodes are held so long, on average, before an attempt runs.",
    ),
]
Noise: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--noise",
        metavar="SIGMA",
        help="With --on-nodes: runtimes vary by a log-normal factor of mean 1 and this sigma.",
    ),
]
Outages: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--outages",
        metavar="SECONDS,SECONDS",
        help="With --on-nodes: mean time a node is up between failures, and mean time to repair.",
    ),
]
SurroundingsSeed: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--surroundings-seed",
        min=0,
        help="With --on-nodes: seed of delays, noise and outages [0]; the same for every policy.",
    ),
]


LearnFrom: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--learn-from",
        metavar="LOG",
        help="With --on-nodes: predictors learn from this log before the first job.",
    ),
]


@dataclass(frozen=True)
class Choices:
    """The options as given; None where they were not."""

    cycle: float | None
    start_delay: float | None
    noise: float | None
    outages: str | None
    surroundings_seed: int | None
    learn_from: Path | None = None


_OUTAGES: Final = "two numbers of seconds above 0 such as 86400,1800"


def require_fitting(
    choices: Choices, on_nodes: bool, conventions: str, enforce_limits: bool
) -> None:
    """Refuse options that do not go together.

    Raises
    ------
    InputError
        If an option of the surroundings is given without nodes, or conventions or limits with them.
    """
    if on_nodes and (conventions != "foresail" or enforce_limits):
        raise InputError(
            "not with other conventions or limits", field="--on-nodes", expected="the defaults"
        )
    for field in fields(Choices):
        value = getattr(choices, field.name)
        if value is not None and not on_nodes:
            option = f"--{field.name.replace('_', '-')}"
            raise InputError("only with --on-nodes", field=option, value=value)


def teacher_of(choices: Choices) -> Callable[[Predictor], object] | None:
    """What lets a predictor learn from the log that was given; None if none was.

    Raises
    ------
    InputError
        If the log cannot be read.
    """
    if choices.learn_from is None:
        return None
    from foresail.cli._replaying import load
    from foresail.evaluation.training import train

    return partial(train, load(choices.learn_from, None, None, None, strict=False, filters=None))


def surroundings_of(choices: Choices, workload: Workload) -> Surroundings:
    """What the simulated cluster is to do; outages go on until the last job is submitted.

    Raises
    ------
    InputError
        If a value is out of range, or there are to be outages on a workload without nodes.
    """
    from foresail.simulator.surroundings import Surroundings

    seed = choices.surroundings_seed or 0
    return Surroundings(
        cycle_seconds=choices.cycle,
        start_delay_seconds=choices.start_delay or 0.0,
        runtime_noise=choices.noise or 0.0,
        outages=() if choices.outages is None else _outages(choices.outages, workload, seed),
        seed=seed,
    )


def _outages(text: str, workload: Workload, seed: int) -> tuple[Outage, ...]:
    from foresail.simulator.surroundings import random_outages
    from foresail.traces.nodes import cluster_of

    if workload.nodes is None:
        raise InputError(
            "the workload does not say which nodes there are",
            source=workload.meta.source,
            expected="a workload folder with a nodes table",
        )
    try:
        between, repair = (float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(
            "not a pair of numbers", field="--outages", value=text, expected=_OUTAGES
        ) from error
    if not (0.0 < between < float("inf") and 0.0 < repair < float("inf")):
        raise InputError("out of range", field="--outages", value=text, expected=_OUTAGES)
    last = workload.jobs["submit_seconds"]
    horizon = float(last[-1]) if len(last) else 0.0
    return random_outages(cluster_of(workload.nodes), horizon, between, repair, seed)
