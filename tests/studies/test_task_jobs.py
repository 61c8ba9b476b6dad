"""SLearn's figures, by hand."""

import math

import numpy as np
import pytest

from foresail_studies.slearn import _shared as task_jobs
from foresail_studies.slearn._shared import speedup
from foresail_studies.slearn.studies import in_bin


def test_speedups():
    """The ratio of means is not the mean of ratios; jobs without any time are as fast."""
    found = speedup(np.array([10.0, 90.0, 0.0]), np.array([20.0, 30.0, 0.0]))
    assert found.average == 2.0
    assert found.median == 1.0
    assert found.p90 == pytest.approx(2.6)
    assert math.isnan(speedup(np.zeros(0), np.zeros(0)).average)


def test_normalised_waiting():
    """Two tasks of 10 s that wait 0 s and 20 s: once their mean length."""
    found = task_jobs.normalised_waiting(
        np.array([5.0, 7.0]),
        np.array([5.0, 25.0, 9.0]),
        np.array([10.0, 10.0, 0.0]),
        np.array([0, 2, 3]),
    )
    assert found[0] == 1.0
    assert math.isnan(found[1])


def test_errors_are_capped():
    """At 1000 percent; none falls below -100."""
    found = task_jobs.signed_error_percent(np.array([0.0, 15.0, 999.0]), np.full(3, 10.0))
    assert found.tolist() == [-100.0, 50.0, 1000.0]


def test_queues():
    """As the kernels have them (golden 10.1), and who is misplaced."""
    seconds = np.array([0.0, 999.999, 1000.0, 9990.0, 1e4, 3.5e6, 1e11, 1e12, np.nan])
    assert task_jobs.size_queues(seconds).tolist() == [0, 0, 1, 1, 2, 4, 9, 9, 0]
    found = task_jobs.queue_correctness(
        np.array([0, 1, 2, 0]), np.array([0, 0, 3, 9]), np.array([True, True, True, False])
    )
    assert found == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_resistance():
    """What is left of running tasks, and what waits ahead, in thousands of seconds of the slots."""
    found = task_jobs.resistance(
        when=np.array([0.0, 10.0, 20.0]),
        queue=np.array([2, 0, 1]),
        entered=np.array([0.0, 10.0, 20.0]),
        start=np.array([0.0, 400.0, 100.0, 150.0]),
        seconds=np.array([100.0, 50.0, 50.0, 30.0]),
        first_task=np.array([0, 2, 3, 4]),
        slots=1,
    )
    assert found.tolist() == pytest.approx([0.0, 0.09, 0.08 + 0.05])


def test_bins():
    """Each job is in one of the four."""
    width, size = np.array([1, 5, 2, 9]), np.array([10.0, 90.0, 1900.0, 8000.0])
    names = ("thin, small", "wide, small", "thin, large", "wide, large")
    found = np.array([in_bin(name, width, size) for name in names])
    assert np.array_equal(found, np.eye(4, dtype=bool))
