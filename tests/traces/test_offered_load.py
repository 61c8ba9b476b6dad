"""Load, deadlines, perturbed beliefs and carried samples: the arithmetic of the workloads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces.facts import offered_load
from foresail_studies.generators._demands import deadline_seconds
from foresail_studies.predictors.perturbed import perturbed
from foresail_studies.predictors.sampled import FEATURE, as_text, samples_of


def test_golden_load():
    """G17: 4 nodes for 10 h, jobs of 2, 1 and 4 nodes for 3, 8 and 1 h."""
    hours = np.array([3.0, 8.0, 1.0])
    assert offered_load(np.array([2, 1, 4]), hours * 3600, 4, 36000.0) == pytest.approx(0.45)


def test_golden_deadlines():
    """G16: a slack of 60 %, and DistSched's ratio of 1.2, which is a slack of 20 %."""
    slack = np.array([0.6, 1.2 - 1.0])
    assert deadline_seconds(np.zeros(2), np.full(2, 100.0), slack) == pytest.approx([160.0, 120.0])


def test_two_thirds_are_accurate_without_a_shift():
    """At shift 0 a job is within 10 % with probability 0.683, and off either way alike."""
    result = perturbed(np.full(200_000, 50.0), 0.0, 20.0, np.random.default_rng(1))
    assert np.mean(np.abs(result.shift) <= 0.1) == pytest.approx(0.683, abs=0.004)
    assert np.mean(result.shift < -0.1) == pytest.approx(np.mean(result.shift > 0.1), abs=0.004)
    assert result.mean_seconds.mean() == pytest.approx(50.0, rel=0.001)
    assert (result.deviation_seconds == 10.0).all()


@given(
    shift=st.floats(-200, 300),
    spread=st.floats(0, 200),
    runtimes=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=30),
)
def test_perturbed_beliefs_are_sound(shift, spread, runtimes):
    """Means stay positive, and the spread is that of the runtime."""
    runtime = np.array(runtimes)
    result = perturbed(runtime, shift, spread, np.random.default_rng(0))
    assert (result.mean_seconds > 0).all()
    assert result.deviation_seconds == pytest.approx(runtime * spread / 100)
    expected = runtime * np.maximum(1 + result.shift, 0.01)
    assert result.mean_seconds == pytest.approx(expected)


def test_a_shift_moves_the_mean():
    """Beliefs aimed 50 % too low are nearly all under the runtime."""
    result = perturbed(np.ones(10_000), -50.0, 10.0, np.random.default_rng(2))
    assert result.shift.mean() == pytest.approx(-0.5, abs=0.005)
    assert result.shift.std() == pytest.approx(0.1, abs=0.005)
    assert np.mean(result.shift < -0.1) > 0.999


def test_samples_travel_as_text():
    """What is written is read, to the millisecond."""
    samples = np.array([[1.2345, 2.0], [3.0, 4.5]])
    texts = as_text(samples)
    assert samples_of({FEATURE: texts[0]}) == pytest.approx([1.2345, 2.0], abs=5e-4)
    assert samples_of({FEATURE: texts[1]}).tolist() == [3.0, 4.5]


@pytest.mark.parametrize("attributes", [{}, {FEATURE: ""}, {FEATURE: "1,two"}], ids=str)
def test_a_job_without_samples_is_refused(attributes):
    """The error says which workload has them."""
    with pytest.raises(InputError, match="e2e_sample"):
        samples_of(attributes)
