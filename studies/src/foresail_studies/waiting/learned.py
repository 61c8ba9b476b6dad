"""Models in the studies of waiting beside waits: runtimes, and how well they predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from foresail.cloud.waiting.kernels.waiting import FIXED, RENT, TRIED, TraceColumns
from foresail.cloud.waiting.kernels.waiting_choice import WaitModel
from foresail.cloud.waiting.learning import DEPTH, SEED, WaitRows, predicted_waits, scikit_learn
from foresail.cloud.waiting.simulating import Simulated, WaitingPolicy
from foresail.model.arrays import Floats
from foresail.model.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class LongJobs:
    """Numbers of long jobs, of those that meet full machines, and the cost of trying them."""

    trial_cost: float
    """For trials of long jobs, which were stopped."""
    long_jobs: float
    blocked_long_jobs: float
    """Shares of jobs that are long; and, of the long ones, that found no fixed machine free."""
    blocked_wait_seconds: float
    """Mean wait of the long jobs that found none."""


def long_jobs_of(simulated: Simulated, policy: WaitingPolicy, trial_price: float = 1.0) -> LongJobs:
    """The long jobs of a simulated policy.

    A job is long from the policy's threshold for short ones on, or if a trial does not end it.
    ``trial_price`` is that of a machine for a trial, relative to the same on demand.
    """
    columns = simulated.columns
    place = simulated.place
    hourly = simulated.shapes.asked[columns.shape, RENT] / 3600.0
    long = columns.runtime >= policy.short_seconds
    if policy.speculation_seconds > 0.0:
        long = columns.runtime > policy.speculation_seconds
    wait = simulated.start_seconds - columns.submit
    blocked = (place != FIXED) | (wait > 0.0)
    trials = np.where(place >= TRIED, _of_trials(columns, policy, trial_price), 0.0) * hourly
    some = blocked & long
    return LongJobs(
        trial_cost=float(trials[long].sum()),
        long_jobs=float(long.mean()),
        blocked_long_jobs=float(some.sum() / max(int(long.sum()), 1)),
        blocked_wait_seconds=float(wait[some].mean()) if np.any(some) else 0.0,
    )


def _of_trials(columns: TraceColumns, policy: WaitingPolicy, trial_price: float) -> Floats:
    """On-demand seconds that each job's trial is worth; a lost one is made again on demand."""
    tried = np.minimum(columns.runtime, policy.speculation_seconds)
    if columns.lost.size == 0:
        return tried * trial_price
    lost = columns.lost
    return np.where(lost > 0.0, lost * trial_price + tried, tried * trial_price)


_LEARNED_SHARE: Final = 0.7

RuntimeModel = Callable[[Floats], Floats]
"""Estimated seconds by rows of job features."""


class WaitScore(NamedTuple):
    """Score of predicted waits: against a threshold (MCC), and in seconds (MAPE).

    The MAPE is that of jobs which waited, and whose whole wait is known.
    """

    correlation: float
    percentage_error: float


def split_rows(rows: WaitRows) -> tuple[WaitRows, WaitRows]:
    """Seven tenths of the rows at random, and the others."""
    order = np.random.default_rng(SEED).permutation(rows.wait_seconds.size)
    cut = int(_LEARNED_SHARE * order.size)
    first, second = (
        WaitRows(rows.features[part], rows.wait_seconds[part], rows.cut[part])
        for part in (order[:cut], order[cut:])
    )
    return first, second


def score_waits(model: WaitModel, rows: WaitRows, threshold_seconds: float) -> WaitScore:
    """Score a model on rows that it has not seen."""
    predicted = predicted_waits(model, rows.features).mean(axis=1)
    whole = ~rows.cut
    error = mean_absolute_percentage_error(predicted[whole], rows.wait_seconds[whole])
    beyond = predicted > threshold_seconds, rows.wait_seconds > threshold_seconds
    return WaitScore(matthews_correlation(*beyond), error)


RUNTIME_MODELS: Final = ("linear", "forest", "svr", "network")


def learn_runtimes(kind: str, features: Floats, runtime_seconds: Floats) -> RuntimeModel:
    """A model of runtimes from rows of what is known on submission (section 7.2's comparison).

    ``kind`` is linear regression, a random forest, support vectors or a neural network. Learning
    support vectors takes a time that grows with the square of the rows.

    Raises ``UnknownNameError`` if there is no such kind; ``InputError`` if scikit-learn is not
    installed.
    """
    if kind not in RUNTIME_MODELS:
        raise UnknownNameError("runtime model", kind, RUNTIME_MODELS)
    if kind == "linear":
        model = scikit_learn("linear_model").LinearRegression()
    elif kind == "forest":
        model = scikit_learn("ensemble").RandomForestRegressor(
            n_estimators=50, max_depth=DEPTH, random_state=SEED
        )
    elif kind == "svr":
        model = scikit_learn("svm").SVR()
    else:
        model = scikit_learn("neural_network").MLPRegressor(
            hidden_layer_sizes=(64, 32), max_iter=1000, early_stopping=True, random_state=SEED
        )
    scaled = scikit_learn("pipeline").make_pipeline(
        scikit_learn("preprocessing").StandardScaler(), model
    )
    scaled.fit(features, runtime_seconds)

    def estimate(rows: Floats) -> Floats:
        return np.maximum(np.asarray(scaled.predict(rows), dtype=np.float64), 0.0)

    return estimate


def perturbed(runtime_seconds: Floats, mean_error: float, seed: int = SEED) -> Floats:
    """Runtimes as a model of this mean absolute percentage error might tell them (0.1 is 10 %).

    Each is multiplied by 1 + e, with e normal and E|e| the error; never below 0.
    """
    deviation = mean_error * np.sqrt(np.pi / 2.0)
    errors = np.random.default_rng(seed).normal(0.0, deviation, runtime_seconds.size)
    return runtime_seconds * np.maximum(1.0 + errors, 0.0)


def matthews_correlation(predicted: ArrayLike, true: ArrayLike) -> float:
    """Correlation of two yes-or-no sequences (MCC): 1 is perfect, 0 as good as chance."""
    said, was = np.asarray(predicted, dtype=bool), np.asarray(true, dtype=bool)
    return matthews_correlation_of(
        int(np.sum(said & was)),
        int(np.sum(~said & ~was)),
        int(np.sum(said & ~was)),
        int(np.sum(~said & was)),
    )


def matthews_correlation_of(
    true_positives: int, true_negatives: int, false_positives: int, false_negatives: int
) -> float:
    """The same from the four counts; 0 where one of the margins is empty."""
    tp, tn = float(true_positives), float(true_negatives)
    fp, fn = float(false_positives), float(false_negatives)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return float((tp * tn - fp * fn) / np.sqrt(product)) if product > 0.0 else 0.0


def mean_absolute_percentage_error(predicted: ArrayLike, true: ArrayLike) -> float:
    """Mean of |predicted - true| / true over what is above 0 (MAPE); 1 is 100 %."""
    said = np.asarray(predicted, dtype=np.float64)
    was = np.asarray(true, dtype=np.float64)
    some = was > 0.0
    if not np.any(some):
        return float("nan")
    return float(np.mean(np.abs(said[some] - was[some]) / was[some]))
