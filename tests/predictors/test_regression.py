"""The regression: parameters, learning, and the learning step against a slow reference."""

import math

import numpy as np
import pytest

from compiled import compiled, take
from foresail.kernels.columns import CPUS, PREDICTED, REQUESTED, SUMMARY_COLUMNS
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.predictors.kernels import history
from foresail.predictors.kernels.linear_model import (
    ETA,
    LARGE_AREA,
    SHAPES,
    SQUARED,
    error_slope,
    expand,
    job_weight,
)
from foresail.predictors.regression import TERMS, Regression, RegressionParameters
from random_history import END, START, SUBMIT, random_history


def slow_model(under, l2):
    """Prediction and learning over the 231 terms, with NumPy, as spec section 7 numbers them."""
    size = TERMS
    w, s, g = np.zeros((3, size))
    state = {"n": 0.0, "t": 0}

    def terms(features):
        basis = np.empty(size)
        compiled(expand)(features, basis)
        return basis

    def predict(features):
        x = terms(features)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(np.abs(x) > s, s / np.abs(x), 1.0)
        return float(np.sum(w * share * x))

    def learn(features, cpus, runtime):
        x = terms(features)
        state["t"] += 1
        grown = np.abs(x) > s
        w[grown] *= s[grown] / np.abs(x[grown])
        s[grown] = np.abs(x[grown])
        seen = s > 0
        state["n"] += np.sum(x[seen] ** 2 / s[seen] ** 2)
        slope = compiled(error_slope)(float(w @ x) - runtime, SQUARED, under)
        slope *= compiled(job_weight)(LARGE_AREA, cpus, runtime)
        gradient = slope * x + l2 * w
        g[:] += gradient**2
        move = seen & (g > 0)
        rate = ETA * math.sqrt(state["t"] / state["n"])
        w[move] -= rate * gradient[move] / (s[move] * np.sqrt(g[move]))

    return predict, learn


@pytest.mark.parametrize("under", ["linear", "squared"])
def test_equals_slow_reference(under):
    """Predictions over a random history, from the features that the steps stored."""
    past = random_history(seed=21, jobs=250)
    specs = past.specs()
    steps, state = Regression(RegressionParameters(under=under)).compiled(specs)
    predict, learn = slow_model(SHAPES[under], l2=4e9)
    rows = np.empty((len(past.jobs), SUMMARY_COLUMNS))
    for now, kind, i in past.events:
        features = state.jobs[i, history.FIRST_FEATURE :]
        if kind == SUBMIT:
            take(steps.predict, i, now, math.nan, specs, *state, rows)
            expected = min(max(abs(predict(features)), 1.0), specs[i, REQUESTED])
            assert rows[i, PREDICTED] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        elif kind == START:
            take(steps.started, i, now, math.nan, specs, *state, rows)
        elif kind == END:
            take(steps.observe, i, now, past.runtime[i], specs, *state, rows)
            learn(features, specs[i, CPUS], past.runtime[i])
    assert len(np.unique(rows[:, PREDICTED])) > 20


def predicted_after(count, runtime, requested=3600.0, **parameters):
    """Prediction of a user's next job after ``count`` jobs that ran ``runtime`` seconds."""
    predictor = Regression(RegressionParameters(**parameters))
    for i in range(count):
        job = Job.gang(f"job{i}", 100.0 * i, 4, requested, "user")
        predictor.observe(job, Outcome(job.job_id, 100.0 * i, 100.0 * i + runtime))
    now = 100.0 * count
    return predictor.predict(Job.gang("next", now, 4, requested, "user"), now).mean()


def test_first_predictions_are_one_second():
    """All coefficients are zero at first (spec section 4) and the output is brought to 1 s."""
    assert predicted_after(0, 0.0) == 1.0


def test_learns_a_constant():
    """After three hundred jobs of eight hours another like them is expected, not the request."""
    learned = predicted_after(
        300, 30_000.0, 180_000.0, over="linear", under="linear", weight="const"
    )
    assert learned == pytest.approx(30_000.0, rel=0.2)


def test_a_negative_output_counts_by_its_size():
    """Under a loss that pulls below zero, the output still tells jobs apart."""
    past = random_history(seed=23)
    predictor = Regression(RegressionParameters())
    made = set()
    for now, kind, i in past.events:
        if kind == SUBMIT:
            made.add(predictor.predict(past.jobs[i], now).mean())
        elif kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
    assert len(made) > 20


@pytest.mark.parametrize(
    ("parameters", "pull"),
    [
        ({}, 4e9),
        ({"over": "linear", "under": "squared"}, 4e9),
        ({"over": "linear"}, 0.0),
    ],
)
def test_pull_suits_the_loss(parameters, pull):
    """The published 4e9, but none where both sides are linear."""
    assert RegressionParameters(**parameters).pull == pull
