"""Models of waits: as arrays what scikit-learn says, and better than chance in a simulation."""

import sys

import numpy as np
import pytest
from drawn_traces import proportional_family

from foresail.cloud.waiting.jobs import FixedMachines, TraceJobs
from foresail.cloud.waiting.kernels.waiting_choice import (
    CORES,
    CPU_USE,
    RUNNING,
    WAITING,
    WAITING_SECONDS,
)
from foresail.cloud.waiting.simulating import (
    Beliefs,
    WaitingPolicy,
    linear_waits,
    simulate,
    wait_rows,
    waiting_policy,
)
from foresail.model.errors import InputError, UnknownNameError
from foresail_studies.waiting._shared import (
    matthews_correlation,
    mean_absolute_percentage_error,
    perturbed,
)
from foresail_studies.waiting.metrics import measured
from foresail_studies.waiting.runtime_models import learn_runtimes
from foresail_studies.waiting.variants import (
    KNOWING_NOTHING,
    lost_in_trials,
    score_waits,
    split_rows,
    taken_by,
    variant_of,
)
from foresail_studies.waiting.wait_models import forest_waits, predicted_waits

FAMILY = proportional_family()
FIXED = FixedMachines(12, 8, price_per_hour=0.4 * 8 * 0.0481)


@pytest.fixture(scope="module")
def jobs():
    """Some load, in waves: now and then many jobs wait."""
    random = np.random.default_rng(11)
    count = 6_000
    gaps = random.exponential(14.0, count) * (1.0 + 0.8 * np.sin(np.arange(count) / 300.0))
    cores = random.choice([1, 2, 4, 8], size=count, p=[0.5, 0.2, 0.2, 0.1])
    return TraceJobs(np.cumsum(gaps), random.lognormal(4.6, 1.6, count), cores)


POLICY = waiting_policy("compound", 1800.0, 60.0)


@pytest.fixture(scope="module")
def rows(jobs):
    """Examples of all that waited, or did not have to."""
    policy = waiting_policy("all-jobs-wait-threshold", 7200.0)
    found = simulate(jobs, FIXED, FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=1)
    return wait_rows(found, policy)


def test_features_are_what_the_cluster_looks_like():
    """Two machines' cores; one job runs, one waits, and a third comes."""
    jobs = TraceJobs(np.array([0.0, 10.0, 30.0]), np.full(3, 1e4), np.array([3, 4, 2]))
    policy = waiting_policy("all-jobs-wait")
    found = simulate(
        jobs, FixedMachines(1, 6), FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=1
    )
    third = found.features[2]
    assert third[[CPU_USE, RUNNING, WAITING, WAITING_SECONDS, CORES]].tolist() == [
        0.5, 1.0, 1.0, 20.0, 2.0,
    ]  # fmt: skip
    examples = wait_rows(found, policy)
    assert examples.wait_seconds.tolist() == [0.0, 1e4 - 10.0, 0.0]
    every_second = simulate(
        jobs, FixedMachines(1, 6), FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=2
    )
    assert wait_rows(every_second, policy).features.tolist() == found.features[::2].tolist()


def test_waits_that_were_cut_short_lie_beyond_the_patience():
    """The third of three long jobs on one core leaves the queue."""
    jobs = TraceJobs(np.zeros(3), np.full(3, 100.0), np.ones(3, dtype=np.int64))
    policy = waiting_policy("all-jobs-wait-threshold", 150.0)
    found = simulate(
        jobs, FixedMachines(1, 1), FAMILY, policy, Beliefs.true_runtimes(jobs), features_every=1
    )
    examples = wait_rows(found, policy)
    assert examples.wait_seconds.tolist() == [0.0, 100.0, 225.0]
    assert examples.cut.tolist() == [False, False, True]


def test_linear_model(rows):
    """Least squares, as NumPy solves it; nothing below 0."""
    model = linear_waits(rows)
    inputs = np.column_stack((rows.features, np.ones(rows.features.shape[0])))
    best = inputs @ np.linalg.lstsq(inputs, rows.wait_seconds, rcond=None)[0]
    found = predicted_waits(model, rows.features)[:, 0]
    assert found == pytest.approx(np.maximum(best, 0.0), abs=1e-3)


def test_trees_predict_as_scikit_learn_does(rows):
    """The arrays are the trees."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    inputs = rows.features.astype(np.float32)
    forest = ensemble.RandomForestRegressor(
        n_estimators=7, max_depth=114, min_samples_leaf=5, random_state=137
    ).fit(inputs, rows.wait_seconds)
    found = predicted_waits(forest_waits(rows, trees=7), inputs.astype(np.float64))
    assert found[:, 0] == pytest.approx(forest.predict(inputs))


def test_trees_foresee_long_waits(rows):
    """On jobs they have not seen, better than chance and than a line."""
    pytest.importorskip("sklearn.ensemble")
    learn, test = split_rows(rows)
    assert learn.wait_seconds.size == int(0.7 * rows.wait_seconds.size)
    line = score_waits(linear_waits(learn), test, 600.0)
    forest = score_waits(forest_waits(learn, trees=10), test, 600.0)
    assert forest["correlation"] > 0.5
    assert forest["correlation"] > line["correlation"]
    assert forest["percentage_error"] < line["percentage_error"]


def test_variants_keep_their_order(jobs, rows):
    """The naive pays what the oracle pays and waits longer; trials cost, and less so on spot."""
    results, line = {}, linear_waits(rows)
    for name in (
        *("oracle", "naive", "speculative", "speculative, spot", "runtimes 10 % off"),
        *(KNOWING_NOTHING, "waits by line", "combined, line"),
    ):
        each = variant_of(name, jobs, POLICY, line if "line" in name else None)
        found = simulate(jobs, FIXED, FAMILY, each.policy, each.beliefs, each.lost_seconds)
        results[name] = measured(found, FIXED, each.policy, each.trial_price)
    oracle, naive = results["oracle"], results["naive"]
    assert naive.total_cost == pytest.approx(oracle.total_cost)
    assert naive.mean_wait_seconds > oracle.mean_wait_seconds
    assert results["speculative"].trial_cost > results["speculative, spot"].trial_cost > 0.0
    assert results["speculative"].rented_to_fixed > oracle.rented_to_fixed
    assert results["runtimes 10 % off"].price == pytest.approx(oracle.price, rel=0.02)
    assert results[KNOWING_NOTHING].rented_jobs < oracle.rented_jobs
    assert results[KNOWING_NOTHING].expired_jobs == 0
    assert {"waits by line", "combined, line"} <= set(results)


def test_a_weighing_policy_is_worth_it(jobs, rows):
    """With delays that cost, it pays less in sum than never and always waiting."""
    pytest.importorskip("sklearn.ensemble")
    model = forest_waits(rows, trees=10)
    delay = np.full(len(jobs), 0.02)
    sums = {}
    for name, policy in (
        ("weighing", waiting_policy("weighing", 7200.0)),
        ("always", waiting_policy("all-jobs-wait")),
        ("never", waiting_policy("no-jobs-wait")),
    ):
        told = Beliefs(jobs.runtime_seconds, model, delay)
        found = simulate(jobs, FIXED, FAMILY, policy, told)
        result = measured(found, FIXED, policy)
        sums[name] = result.total_cost + result.delay_cost
    assert sums["weighing"] < min(sums["always"], sums["never"])


@pytest.mark.parametrize("kind", ["linear", "forest", "svr", "network"])
def test_runtime_models(kind):
    """Each learns what is easy to learn, roughly."""
    pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(2)
    features = random.uniform(0.0, 1.0, (600, 2))
    runtime = 10.0 + 5.0 * features[:, 0]
    estimates = learn_runtimes(kind, features, runtime)(features)
    assert np.corrcoef(estimates, runtime)[0, 1] > 0.9


def test_scores():
    """MCC of the spec, its bounds, and MAPE."""
    said, was = [True] * 7 + [False] * 5, [True] * 6 + [False] * 4 + [True] * 2
    assert matthews_correlation(said, was) == pytest.approx(0.4780914437, abs=1e-10)
    assert matthews_correlation([True, True], [True, True]) == 0.0
    assert matthews_correlation([True, False], [True, False]) == 1.0
    assert mean_absolute_percentage_error([90.0, 130.0, 5.0], [100.0, 100.0, 0.0]) == 0.2
    runtime = np.full(100_000, 50.0)
    assert mean_absolute_percentage_error(perturbed(runtime, 0.1), runtime) == pytest.approx(
        0.1, rel=0.02
    )


def test_revocations():
    """The published shape, and what is lost of trials on such machines."""
    assert taken_by(np.array([0.0, 3600.0, 24 * 3600.0])) == pytest.approx(
        [0.0, 0.45 * (1 - np.exp(-1.0)), 1.0], abs=1e-9
    )
    lives = lost_in_trials(np.full(100_000, 1e6), 1e6, 0)
    assert np.mean(lives <= 3600.0) == pytest.approx(0.2845, abs=0.005)
    lost = lost_in_trials(np.full(100_000, 1e6), 900.0, 0)
    assert lost.max() < 900.0
    assert np.mean(lost > 0.0) == pytest.approx(0.45 * (1 - np.exp(-0.25)), abs=0.005)
    assert not lost_in_trials(np.zeros(10), 900.0, 0).any()


def test_wrong_input(jobs):
    """A simulation without features; an unknown model."""
    found = simulate(jobs, FIXED, FAMILY, WaitingPolicy(), Beliefs.true_runtimes(jobs))
    with pytest.raises(InputError, match="no features"):
        wait_rows(found, WaitingPolicy())
    with pytest.raises(UnknownNameError, match="runtime model"):
        learn_runtimes("oracle", np.ones((2, 1)), np.ones(2))


def test_without_scikit_learn(rows, monkeypatch):
    """Trees say what they need; a line needs nothing."""
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(InputError, match="scikit-learn"):
        forest_waits(rows)
    assert linear_waits(rows).base.size == 1
