"""``foresail cloud sync``: what waiting for each other costs workers of differing speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foresail.cli.formats import refuse
from foresail.cli.progress import doing
from foresail.cli.renting_options import AnswerOptions
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from foresail.model.distribution import Distribution
    from foresail.model.short_form import PlugIn
    from foresail_studies.renting.barrier_costs import Costs, DrawnCosts
    from foresail_studies.renting.barriers import BarrierProgram

STANDARD: Final = (
    "on_demand",
    "transient",
    "replicas(count=k)",
    "partial(dropped=k/2)",
    "fsp(dropped=k-1)",
)
"""What is compared when no model is named."""
_MOST_WORKERS: Final = 100_000
_ALONE: Final = "changes nothing alone"

_LOWEST: Final = 0.05
_MODEL_HELP: Final = f'Such as "replicas(count=2)"; may be repeated [{", ".join(STANDARD)}].'
_LOWEST_HELP: Final = f"Slower workers count as this fast [{_LOWEST} where speeds are drawn]."


def command(
    workers: str = "1:64",
    models: list[str] | None = None,
    operations: float = (8_000.0),
    barriers: int = 500,
    network: float = 0.175,
    discount: float = 0.9,
    lowest_speed: float | None = None,
    monte_carlo: int = 0,
    speed_intervals: int = 1,
    seed: int = 1,
    answering: AnswerOptions = AnswerOptions(),
) -> None:
    """Time and cost of ways to synchronise, against the number of workers.

    A model may say its numbers by the number of workers k: fsp(dropped=k-1),
    partial(dropped=k/2), replicas(count=k), hybrid(dropped=k-1,replicas=2),
    staleness(intervals=10). By default speeds are expected ones, as published; --monte-carlo
    draws them.

    Options:
        workers FIRST:LAST: Numbers of workers, or 4,8,16.
        models --model MODEL: Such as "replicas(count=2)"; may be repeated [on_demand, transient,
            replicas(count=k), partial(dropped=k/2), fsp(dropped=k-1)].
        operations: All work; one worker does one a second.
        barriers: How often all workers synchronise.
        network SECONDS: A worker's messages at one barrier.
        discount SHARE: How much cheaper transient workers are.
        lowest_speed SPEED: Slower workers count as this fast [0.05 where speeds are drawn].
        monte_carlo RUNS (0..): Draw speeds so often; 0: expected speeds.
        speed_intervals (1..): Intervals that a drawn speed lasts.
        seed (0..): Of the draws.
    """
    from foresail_studies.renting.barriers import BarrierProgram, model_of
    from foresail_studies.renting.synchronization_page import (
        best_table,
        costs_of,
        synchronization_page,
        synchronization_record,
    )

    if speed_intervals > 1 and not monte_carlo:
        refuse({"--speed-intervals": speed_intervals}, _ALONE, "--monte-carlo RUNS too")
    setting = BarrierProgram(operations, barriers, network, discount)
    counts = _workers(workers)
    parts = [model_of(text) for text in models or STANDARD]
    for part in parts:
        part.build().rules(counts)
    speeds, how = _speeds(lowest_speed, monte_carlo > 0)
    how += f"; drawn {monte_carlo:,} times" if monte_carlo else ""
    answering.require_folder()
    with doing("costs of synchronisation"):
        found = _found(parts, setting, counts, speeds, monte_carlo, speed_intervals, seed)
    answering.answer(
        synchronization_record(found),
        (),
        [best_table([costs_of(each) for each in found])],
        lambda: synchronization_page(setting, found, how),
        [f"Transient workers: {how}."],
    )


def _workers(text: str) -> NDArray[np.int64]:
    import numpy as np

    try:
        first, colon, last = text.partition(":")
        if colon:
            counts = np.arange(int(first), min(int(last), _MOST_WORKERS + 1) + 1)
        else:
            counts = np.array([int(each) for each in text.split(",")])
    except ValueError:
        counts = np.empty(0, dtype=np.int64)
    if not counts.size or counts.min() < 1 or counts.max() > _MOST_WORKERS:
        raise InputError(
            "no numbers of workers",
            field="--workers",
            value=text,
            expected=f"1 to {_MOST_WORKERS}, such as 1:64 or 4,8,16",
        )
    return counts


def _speeds(lowest: float | None, drawn: bool) -> tuple[Distribution | None, str]:
    """Speeds of transient workers, None for the published ones; and what they are in words."""
    from foresail.distributions.basic import Uniform
    from foresail_studies.renting.barriers import at_least

    if lowest is None and not drawn:
        return None, "their speeds are uniform from 0 to 1"
    raised = _LOWEST if lowest is None else lowest
    if not raised < 1.0:
        raise InputError(
            "no worker is as fast",
            field="--lowest-speed",
            value=raised,
            expected="below 1, for speeds are uniform from 0 to 1",
        )
    words = f"their speeds are uniform from 0 to 1, and at least {raised:g}"
    return at_least(Uniform(0.0, 1.0), raised), words


def _found(
    parts: Sequence[PlugIn],
    setting: BarrierProgram,
    counts: NDArray[np.int64],
    speeds: Distribution | None,
    runs: int,
    intervals: int,
    seed: int,
) -> list[Costs | DrawnCosts]:
    import numpy as np

    from foresail_studies.renting.barrier_costs import costs, drawn_costs
    from foresail_studies.renting.barriers import AnySpeeds, label

    if not runs or speeds is None:
        ranked = None if speeds is None else AnySpeeds(speeds)
        return [costs(label(part), part.build(), setting, counts, ranked) for part in parts]
    random = np.random.default_rng(seed)
    return [
        drawn_costs(
            label(part),
            part.build(),
            setting,
            counts,
            speeds,
            runs=runs,
            random=random,
            intervals_per_draw=intervals,
        )
        for part in parts
    ]
