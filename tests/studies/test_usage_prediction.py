"""DSPredict: the same predictor per quantity, each with its own winner."""

import pytest

from foresail.distributions.basic import Point
from foresail.model.cluster import Resources
from foresail.model.errors import UnknownNameError
from foresail.model.event import Outcome
from foresail.model.job import Job, Stage
from foresail.predictors.history import HistoryParameters
from foresail.predictors.kernels import experts
from foresail_studies.predictors.dspredict import UsagePredictor


def job_of(number, user="user", name="program", cpus=2.0, memory=0.0):
    """A job of three tasks with a limit that has nothing to do with what it uses."""
    request = Resources(cpus=cpus, memory_bytes=memory)
    return Job(f"job{number}", 0.0, (Stage(3, request),), 0.25, user=user, name=name)


def taught(quantities, usages, **parameters):
    predictor = UsagePredictor(HistoryParameters(**parameters), quantities)
    for number, (job, usage) in enumerate(usages):
        predictor.predict(job, 0.0)
        predictor.observe(job, Outcome(job.job_id, 0.0, 60.0), usage)
        assert number == int(job.job_id[3:])
    return predictor


def test_each_quantity_has_its_own_winner():
    """Memory goes with the user, cpu with the program: both are told, whatever the limit is."""
    usages = []
    for number in range(24):
        user, program = number % 2, number // 2 % 2
        job = job_of(number, user=f"user{user}", name=f"program{program}")
        usages.append((job, {"cpu": 0.5 + program, "memory": 1e9 * (1 + user)}))
    predictor = taught(("cpu", "memory"), usages, features=("user", "executable"))
    beliefs = predictor.predict(job_of(99, user="user1", name="program0"), 0.0)
    assert beliefs["cpu"].mean() == pytest.approx(0.5)
    assert beliefs["memory"].mean() == pytest.approx(2e9)
    winners = []
    for name in ("cpu", "memory"):
        history = predictor.histories[name]
        expert = int(history._state.jobs[history._slots["job99"], experts.EXPERT])
        winners.append(history.expert_names[expert].split()[0])
    assert winners == ["executable", "user"]


def test_without_history_the_request():
    """Per task; quantities that nobody asks for are left out until something is known."""
    predictor = UsagePredictor()
    assert predictor.predict(job_of(0, memory=4e9), 0.0) == {
        "cpu": Point(2.0),
        "cpu_max": Point(2.0),
        "memory": Point(4e9),
        "memory_max": Point(4e9),
    }
    predictor.observe(job_of(0), Outcome("job0", 0.0, 60.0), {"cpu_time": 90.0})
    beliefs = predictor.predict(job_of(1), 0.0)
    assert set(beliefs) == {"cpu", "cpu_max", "cpu_time"}
    assert beliefs["cpu_time"].mean() == 90.0


def test_averages_and_maxima_are_apart():
    """The two variants of one resource are two quantities."""
    usages = [(job_of(0), {"cpu": 0.5, "cpu_max": 2.0})]
    beliefs = taught(("cpu", "cpu_max"), usages).predict(job_of(1), 0.0)
    assert (beliefs["cpu"].mean(), beliefs["cpu_max"].mean()) == (0.5, 2.0)


def test_an_unknown_quantity_is_refused():
    """With a word on the known ones."""
    with pytest.raises(UnknownNameError, match="did you mean 'memory'"):
        UsagePredictor(quantities=("memry",))
