"""The oracle is told the truth openly, or says that it was not."""

import numpy as np
import pytest

from foresail.distributions.basic import Point
from foresail.kernels.columns import SPEC_COLUMNS
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.registry import NoParameters
from foresail.predictors.clairvoyant import Clairvoyant


def test_predicts_what_was_revealed():
    """And nothing else: no other method is given a runtime."""
    oracle = Clairvoyant(NoParameters())
    oracle.reveal({"a": 12.0})
    assert oracle.predict(Job.gang("a", 0.0, 1), 0.0) == Point(12.0)


def test_refuses_a_job_whose_runtime_was_not_revealed():
    """On a live cluster nobody can reveal it."""
    with pytest.raises(InputError, match="not revealed"):
        Clairvoyant(NoParameters()).predict(Job.gang("a", 0.0, 1), 0.0)


def test_refuses_to_replay_other_jobs_than_those_revealed():
    """One runtime per slot."""
    oracle = Clairvoyant(NoParameters())
    oracle.reveal({"a": 12.0})
    with pytest.raises(InputError, match="2 runtimes"):
        oracle.compiled(np.zeros((2, SPEC_COLUMNS)))
