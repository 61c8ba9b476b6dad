"""``foresail cloud sync``: what waiting for each other costs workers of differing speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from foresail.cli.formats import Format, FormatOption, print_json, print_table
from foresail.model.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from foresail_studies.synchronization.models import Costs

STANDARD: Final = (
    "on_demand",
    "transient",
    "replicas(count=k)",
    "partial(dropped=k/2)",
    "fsp(dropped=k-1)",
)
"""What is compared when no model is named."""
_MOST_WORKERS: Final = 100_000


def command(
    workers: str = "1:64",
    models: list[str] | None = None,
    operations: float = (8_000.0),
    barriers: int = 500,
    network: float = 0.175,
    discount: float = 0.9,
    lowest_speed: float = 0.05,
    monte_carlo: int = 0,
    output_format: FormatOption = Format.TABLE,
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
        monte_carlo RUNS (0..): Draw speeds so often; 0: expected speeds.
        lowest_speed SPEED: With --monte-carlo: slower workers count as this fast.
    """
    import numpy as np

    from foresail.distributions.basic import Uniform
    from foresail_studies.synchronization.models import (
        BarrierProgram,
        at_least,
        costs,
        drawn_costs,
    )
    from foresail_studies.synchronization.named import model_of

    setting = BarrierProgram(operations, barriers, network, discount)
    counts = _workers(workers)
    named = [(name, model_of(name)) for name in models or STANDARD]
    speeds = at_least(Uniform(0.0, 1.0), lowest_speed)
    draws = np.random.default_rng(1)
    found = [
        drawn_costs(model, setting, counts, speeds, monte_carlo, draws)
        if monte_carlo
        else costs(model, setting, counts)
        for _, model in named
    ]
    told = [(name, counts, each) for (name, _), each in zip(named, found, strict=True)]
    if output_format is Format.JSON:
        print_json({"models": [_record(*each) for each in told]})
    else:
        print_table(_HEADINGS, [_best(*each) for each in told], right=len(_HEADINGS) - 1)


_HEADINGS: Final = (
    *("model", "fastest with", "speed-up", "cost", "best value with", "speed-up / cost"),
)


def _best(name: str, workers: NDArray[np.int64], costs: Costs) -> list[str]:
    """A model's best numbers of workers."""
    fast, good = costs.speedup.argmax(), costs.ratio.argmax()
    return [
        name,
        str(workers[fast]),
        f"{costs.speedup[fast]:.3f}",
        f"{costs.cost[fast]:.3f}",
        str(workers[good]),
        f"{costs.ratio[good]:.3f}",
    ]


def _record(name: str, workers: NDArray[np.int64], costs: Costs) -> dict[str, Any]:
    return {
        "model": name,
        "workers": workers.tolist(),
        **{field: values.tolist() for field, values in costs._asdict().items()},
        "speedup_per_cost": costs.ratio.tolist(),
        "fastest_workers": int(workers[costs.speedup.argmax()]),
        "best_value_workers": int(workers[costs.ratio.argmax()]),
    }


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
