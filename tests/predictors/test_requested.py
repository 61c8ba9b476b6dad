"""The requested time as the prediction, and what stands in for it."""

import pytest

from foresail.distributions.basic import Point
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.model.registry import NoParameters
from foresail.predictors.requested import Requested


def test_predicts_the_limit():
    """Whatever happened before."""
    predictor = Requested(NoParameters())
    predictor.observe(Job.gang("a", 0.0, 1, 900.0, "user"), Outcome("a", 0.0, 700.0))
    assert predictor.predict(Job.gang("b", 1.0, 1, 600.0, "user"), 1.0) == Point(600.0)


@pytest.mark.parametrize(
    ("user", "expected"), [("user", 700.0), ("other", 86_400.0), (None, 86_400.0)]
)
def test_without_a_limit_the_longest_runtime_of_the_user(user, expected):
    """And for a user without history a day."""
    predictor = Requested(NoParameters())
    for name, end in (("a", 700.0), ("b", 300.0)):
        predictor.observe(Job.gang(name, 0.0, 1, 900.0, "user"), Outcome(name, 0.0, end))
    assert predictor.predict(Job.gang("c", 1.0, 1, None, user), 1.0) == Point(expected)
