"""What one prediction from history costs, with a hundred thousand feature-values in the table.

The reference is the predictor ``similar`` in the same loop over the same jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Measurement, benchmark
from foresail.evaluation._loop import nanoseconds
from foresail.kernels.columns import (
    CPUS,
    EXECUTABLE,
    QUEUE,
    REQUESTED,
    SPEC_COLUMNS,
    SUBMIT,
    SUMMARY_COLUMNS,
    USER,
)
from foresail.kernels.compile import bare_kernel
from foresail.kernels.steps import PredictorInputs, call_predictor_step, step_address
from foresail.model.registry import find

_JOBS: Final = 100_000
_FEATURE_VALUES: Final = 100_000
_DAY_SECONDS: Final = 86_400.0


@benchmark("predicting")
def measure() -> Iterator[Measurement]:
    """The median and the slowest thousandth of a prediction and its observation together."""
    costs = {name: _costs(name) for name in ("history", "similar")}
    for what, level in (("median", 0.5), ("slowest thousandth", 0.999)):
        history, similar = (1e-9 * float(np.quantile(each, level)) for each in costs.values())
        yield Measurement(
            f"predicting history {what}", history, "predictor similar", similar, 1, "job"
        )


def _costs(name: str) -> NDArray[np.int64]:
    """Nanoseconds per job, after as many jobs have filled the table; the best of three runs."""
    specs, runtime = _jobs()
    entry = find("predictor", name)
    best = np.full(_JOBS, np.iinfo(np.int64).max)
    for _ in range(3):
        steps, state = entry.build(entry.parameters()).compiled(specs)
        summaries = np.zeros((len(specs), SUMMARY_COLUMNS))
        every = np.zeros(len(specs), np.int64)
        addresses = step_address(steps.predict), step_address(steps.observe)
        _walk(*addresses, specs, runtime, *state, summaries, every)
        if name == "history":
            _demand_full(state.model)
        best = np.minimum(best, every[-_JOBS:])
    return best


def _demand_full(model: NDArray[np.float64]) -> None:
    from foresail.predictors.kernels.history_table import USED

    if model[USED] < _FEATURE_VALUES:
        raise RuntimeError(f"only {model[USED]:.0f} feature-values")


def _jobs() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Specifications and runtimes: users with a few programs each, at all hours of ninety days."""
    random = np.random.default_rng(1)
    count = 3 * _JOBS
    specs = np.zeros((count, SPEC_COLUMNS))
    specs[:, SUBMIT] = np.sort(random.uniform(0.0, 90 * _DAY_SECONDS, count))
    specs[:, CPUS] = random.choice(2.0 ** np.arange(8), count)
    specs[:, REQUESTED] = random.choice([3600.0, 7200.0, 86_400.0], count)
    specs[:, USER] = random.integers(0, 2000, count)
    specs[:, EXECUTABLE] = specs[:, USER] + random.integers(0, 17, count)
    specs[:, QUEUE] = random.integers(0, 5, count)
    return specs, np.exp(random.normal(6.0, 1.5, count))


@bare_kernel
def _walk(
    predict: float,
    observe: float,
    specs: NDArray[np.float64],
    runtime: NDArray[np.float64],
    model: NDArray[np.float64],
    users: NDArray[np.float64],
    jobs: NDArray[np.float64],
    summaries: NDArray[np.float64],
    cost: NDArray[np.int64],
) -> None:
    """Predict and observe every job, and note what both took (ns)."""
    for slot in range(len(specs)):
        now = specs[slot, SUBMIT]
        asked = PredictorInputs(slot, now, math.nan, specs, model, users, jobs, summaries)
        ended = PredictorInputs(slot, now, runtime[slot], specs, model, users, jobs, summaries)
        begin = nanoseconds()
        call_predictor_step(predict, asked)
        call_predictor_step(observe, ended)
        cost[slot] = nanoseconds() - begin
