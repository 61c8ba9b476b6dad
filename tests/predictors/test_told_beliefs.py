"""Predictors that are told what to believe: perturbed truths, and samples that jobs carry."""

import numpy as np
import pytest

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.registry import find
from foresail.model.short_form import part_of
from foresail.traces.generating import generate
from made_scenarios import simulate_on_nodes


def perturbed(text, truth):
    predictor = part_of("predictor", text).build()
    predictor.reveal(truth)
    return predictor


def test_beliefs_are_shifted_and_spread():
    """Means are off by the shift with a deviation of a tenth; deviations are the stated share."""
    truth = {f"j{i}": 1000.0 for i in range(3000)}
    predictor = perturbed("perturbed(shift_percent=50,spread_percent=10)", truth)
    beliefs = [predictor.predict(Job.gang(job_id, 0.0, 1), 0.0) for job_id in truth]
    means = np.array([belief.mean() for belief in beliefs])
    assert means.mean() == pytest.approx(1500.0, rel=0.01)
    assert means.std() == pytest.approx(100.0, rel=0.1)
    first = beliefs[0]
    spread = (first.quantile(0.8413447) - first.quantile(0.1586553)) / 2
    assert spread == pytest.approx(100.0, rel=1e-3)


def test_points_and_no_shift():
    """Without spread a belief is one number; two thirds of them lie within a tenth of the truth."""
    truth = {f"j{i}": 100.0 * (i % 7 + 1) for i in range(3000)}
    predictor = perturbed("perturbed(spread_percent=0)", truth)
    off = [
        predictor.predict(Job.gang(job_id, 0.0, 1), 0.0).mean() / runtime - 1.0
        for job_id, runtime in truth.items()
    ]
    assert np.mean(np.abs(off) <= 0.1) == pytest.approx(0.683, abs=0.03)


def test_all_shifted_alike():
    """Without a deviation every estimate is off by the shift exactly."""
    truth = {"a": 100.0, "b": 700.0}
    text = "perturbed(shift_percent=-50,deviation_percent=0,spread_percent=0)"
    predictor = perturbed(text, truth)
    means = [predictor.predict(Job.gang(name, 0.0, 1), 0.0).mean() for name in truth]
    assert means == pytest.approx([50.0, 350.0])


def test_nothing_is_known_of_a_job_that_was_not_revealed():
    """It says so instead of guessing."""
    with pytest.raises(InputError, match="not revealed"):
        perturbed("perturbed", {}).predict(Job.gang("new", 0.0, 1), 0.0)


@pytest.mark.parametrize(
    "setting", ["spread_percent=-1", "seed=-1", "shift_percent=nan", "deviation_percent=-1"]
)
def test_absurd_parameters(setting):
    """Each is refused."""
    with pytest.raises(InputError, match="out of range"):
        part_of("predictor", f"perturbed({setting})")


def test_samples_are_believed():
    """In a simulation of jobs that carry samples, the predicted mean is that of the samples."""
    entry = find("generator", "e2e_sample")
    workload = generate("e2e_sample", entry.parameters(hours=0.1, samples=5), 2)
    schedule = simulate_on_nodes(workload, parse_policy("prio,sampled"))
    carried = dict(workload.jobs.select("job_id", "runtime_samples").iter_rows())
    for job_id, predicted in schedule.jobs.select("job_id", "predicted_seconds").iter_rows():
        mean = np.mean([float(value) for value in carried[job_id].split(",")])
        assert predicted == pytest.approx(mean)
