"""The study of published models of runtimes: every system is measured, and learns from the past."""

import numpy as np
import pytest

from foresail.model.errors import InputError
from foresail_studies.study import Mean, log_of, study_part
from foresail_studies.waiting.runtime_models import LearnedJobs

SETTINGS = ["seeds=1", "workload=lublin(jobs=400)", "short_minutes=[15]"]


@pytest.fixture(scope="module")
def results():
    """Of all cases of a small study."""
    study = study_part("waiting-runtime-models", SETTINGS, quick=True).build()
    return study, {(case.group, case.system): case.task.measure() for case in study.cases}


def test_every_claim_is_about_a_case(results):
    """And about something that is measured."""
    study, found = results
    sides = [side for claim in study.claims for side in (claim.bound.less, claim.bound.more)]
    for side in (side for side in sides if isinstance(side, Mean)):
        assert side.measure in found[side.group, side.system]


def test_the_oracle_is_right(results):
    """It errs in nothing, and 10 % off errs by some 10 %."""
    _, found = results
    oracle, close = found["short and long", "oracle"], found["short and long", "10 % off"]
    assert oracle["percentage_error"] == 0.0
    assert oracle["correlation"] == 1.0
    assert close["percentage_error"] == pytest.approx(0.1, abs=0.03)


def test_orders_are_different(results):
    """Where everybody waits, nothing is rented that fits, and the order decides how long."""
    _, found = results
    waits = {
        system: found["shortest first", system]["mean_wait_seconds"]
        for system in ("oracle", "any order", "in order of arrival")
    }
    assert waits["oracle"] < min(waits["any order"], waits["in order of arrival"])
    assert waits["any order"] != waits["in order of arrival"]


def test_models_learn_from_earlier_jobs_only():
    """The last quarter is measured; what a model says of it does not depend on its runtimes."""
    learned = LearnedJobs("lublin(jobs=400)", 0, 100.0, "linear")
    jobs, estimates = learned.read()
    workload = log_of("lublin(jobs=400)", 0)
    assert len(jobs) == estimates.size == 100
    assert np.array_equal(jobs.runtime_seconds, workload.runtime_seconds[300:])
    assert np.unique(estimates).size > 1


def test_what_cannot_be_learned():
    """A model that does not exist, and a log that is too short."""
    with pytest.raises(InputError, match="no such model"):
        study_part("waiting-runtime-models", ["models=[oracle]"], quick=True).build()
    with pytest.raises(InputError, match="too few jobs"):
        LearnedJobs("lublin(jobs=1)", 0, 100.0, "linear").read()
