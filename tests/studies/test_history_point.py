"""3Sigma's history as one number."""

import numpy as np
import pytest

from foresail.distributions.histogram import Histogram
from foresail.model.cluster import Resources
from foresail.model.event import Outcome
from foresail.model.job import Job, Stage
from foresail_studies.predictors.history_point import (
    HistoryPoint,
    HistoryPointParameters,
    equal_inverse_square,
)

SEEN = (100.0, 200.0, 400.0)


def test_golden_10_3():
    """Spec slearn 10.3: the runtime with the same expected utility."""
    row = np.array(Histogram.from_values(SEEN).row)
    assert equal_inverse_square(row) == pytest.approx(151.1857892, abs=1e-7)


def test_no_time_at_all_has_infinite_utility():
    """So nothing else counts beside it."""
    assert equal_inverse_square(np.array(Histogram.from_values((0.0, 5.0)).row)) == 0.0


@pytest.mark.parametrize(
    ("utility", "expected"),
    [("inverse_square", 151.1857892), ("median", 200.0), ("mean", 700.0 / 3.0)],
)
def test_each_utility_of_a_history(utility, expected):
    """The predictor tells what its utility makes of the jobs of the same name."""
    predictor = HistoryPoint(HistoryPointParameters(utility=utility))
    for number, seconds in enumerate((*SEEN, 1.0)):
        job = Job(f"{number}", 0.0, (Stage(1, Resources(cpus=1.0)),), None, name="same")
        belief = predictor.predict(job, 0.0)
        if number == len(SEEN):
            assert belief.mean() == pytest.approx(expected, abs=1e-6)
        predictor.observe(job, Outcome(job.job_id, 0.0, seconds))
