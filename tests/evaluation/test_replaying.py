"""Replaying predictions: the order of things, learning, both ways of asking, bad input."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

from foresail.distributions.basic import Point
from foresail.evaluation.replaying import evaluate
from foresail.kernels.steps import PredictorState, PredictorSteps
from foresail.model.errors import InputError, UnknownNameError
from foresail.predictors.recent import Recent, RecentParameters
from made_evaluations import Objects, as_part, made_workload, random_jobs
from toys import Constant, Oracle

PREDICTORS = ["requested", "recent(k=3)", "regression", "quantile_regression", "similar"]


def heard(workload, learning="on_completion"):
    """What a predictor is told about a workload, in order."""
    listener = Constant(10.0)
    evaluate(workload, as_part(listener), learning=learning)
    return listener.heard


def test_completions_come_when_they_happened():
    """A job is learned at submission + wait + runtime; ends, submissions, starts at one instant."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 10.0, 30.0],
            "recorded_wait_seconds": [5.0, None, 0.0],
            "runtime_seconds": [25.0, 20.0, 1.0],
        }
    )
    assert heard(workload) == [
        ("predict", "1", 0.0),
        ("started", "1", 5.0),
        ("predict", "2", 10.0),
        ("started", "2", 10.0),
        ("ended", "1", 30.0),
        ("ended", "2", 30.0),
        ("predict", "3", 30.0),
        ("started", "3", 30.0),
        ("ended", "3", 31.0),
    ]


def test_a_job_of_no_runtime_ends_after_its_start():
    """Ends come first at an instant, but never before the job's own start."""
    workload = made_workload({"submit_seconds": [5.0, 5.0], "runtime_seconds": [0.0, 0.0]})
    assert [kind for kind, _, _ in heard(workload)] == ["predict"] * 2 + ["started"] * 2 + [
        "ended"
    ] * 2


def test_learning_in_order():
    """Each job is learned right after it was predicted, whenever it ended (A-9)."""
    workload = made_workload(
        {"submit_seconds": [0.0, 1.0], "runtime_seconds": [500.0, 1.0], "user": ["a", "a"]}
    )
    assert [(kind, job) for kind, job, _ in heard(workload, "in_order")] == [
        ("predict", "1"),
        ("started", "1"),
        ("ended", "1"),
        ("predict", "2"),
        ("started", "2"),
        ("ended", "2"),
    ]
    learned = evaluate(workload, "recent", learning="in_order").jobs["predicted"].to_list()
    assert learned[1] == 500.0
    assert evaluate(workload, "recent").jobs["predicted"][1] != 500.0


@pytest.mark.parametrize("learning", ["on_completion", "in_order"])
@pytest.mark.parametrize("text", PREDICTORS)
def test_objects_and_steps_agree(text, learning):
    """Asked through its methods, a predictor is scored as through its compiled steps."""
    workload = random_jobs(600, seed=5)
    steps = evaluate(workload, text, learning=learning).jobs
    objects = evaluate(workload, as_part(Objects(text)), learning=learning).jobs
    for name in steps.columns:
        if steps[name].dtype == pl.Float64:
            assert objects[name].to_numpy() == pytest.approx(
                steps[name].to_numpy(), rel=1e-9, abs=1e-9
            ), name
        else:
            assert objects[name].to_list() == steps[name].to_list()


def test_a_quantity_is_what_is_learned():
    """The truth told is the quantity; jobs it is unknown of are neither predicted nor learned."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 100.0, 200.0],
            "runtime_seconds": [10.0, 10.0, 10.0],
            "used_cpu_seconds": [30.0, None, 50.0],
            "user": ["a", "a", "a"],
        }
    )
    for predictor in ("recent", as_part(Objects("recent"))):
        found = evaluate(workload, predictor, quantity="cpu_time")
        assert found.jobs["job_id"].to_list() == ["1", "3"]
        assert found.jobs["actual"].to_list() == [30.0, 50.0]
        assert found.jobs["predicted"][1] == 30.0
        assert (found.unknown_jobs, found.unit) == (1, "core seconds")


def test_runtimes_unknown_infinite_or_negative_are_left_out():
    """What was not recorded is neither learned nor scored, but counted; zero is an amount."""
    runtimes = [10.0, None, math.inf, -5.0, 0.0, math.nan]
    workload = made_workload(
        {"submit_seconds": [float(i) for i in range(6)], "runtime_seconds": runtimes}
    )
    found = evaluate(workload, "requested")
    assert found.jobs["job_id"].to_list() == ["1", "5"]
    assert found.unknown_jobs == 4


def test_an_oracle_is_told_and_exact():
    """A predictor that is handed the truth openly is right about every job."""
    workload = random_jobs(50)
    found = evaluate(workload, as_part(Oracle())).jobs
    assert found["predicted"].to_list() == found["actual"].to_list()
    assert found["crps"].sum() == 0.0
    assert 0.3 < found["level"].mean() < 0.7
    assert evaluate(workload, "clairvoyant").jobs["crps"].sum() == 0.0


class Endless(Constant):
    """Believes in infinity about odd jobs."""

    def predict(self, job, now):
        return Point(math.inf if int(job.job_id) % 2 else 5.0)


def test_beliefs_without_a_number_are_left_out():
    """An infinite estimate is no estimate: not scored, but counted."""
    workload = made_workload({"submit_seconds": [0.0, 1.0], "runtime_seconds": [1.0, 1.0]})
    found = evaluate(workload, as_part(Endless(1.0)))
    assert found.jobs["job_id"].to_list() == ["2"]
    assert found.unpredicted_jobs == 1


class FollowsWidth(Recent):
    """Says that it followed the expert of the job's width."""

    expert_names = ("narrow", "wide")
    expert_column = 0

    def compiled(self, specs, features=()) -> tuple[PredictorSteps, PredictorState]:
        steps, state = super().compiled(specs, features)
        column = np.where(specs[:, 1] > 1, 1.0, np.where(specs[:, 1] == 1, 0.0, -1.0))
        return steps, state._replace(jobs=column[:, np.newaxis].copy())


def test_the_expert_followed_is_named():
    """A predictor that chooses tells whom it followed, or nobody."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0],
            "runtime_seconds": [1.0, 1.0, 1.0],
            "tasks": [1, 4, 0],
        }
    )
    found = evaluate(workload, as_part(FollowsWidth(RecentParameters())))
    assert found.jobs["expert"].to_list() == ["narrow", "wide", None]


@pytest.mark.parametrize("text", PREDICTORS)
def test_costs_are_measured(text):
    """Jobs cost processor time; compiled steps tell the size of their state."""
    cost = evaluate(random_jobs(300), text).cost
    assert 0.0 <= cost.median_seconds <= cost.p999_seconds < 1.0
    assert cost.p999_seconds > 0.0
    assert cost.state_bytes > 0
    assert evaluate(random_jobs(20), as_part(Constant(1.0))).cost.state_bytes is None


def test_two_evaluations_are_the_same():
    """Nothing but the measured cost depends on when it runs."""
    workload = random_jobs(200)
    first, second = (evaluate(workload, "quantile_regression") for _ in range(2))
    assert first.jobs.equals(second.jobs)
    told = [dataclasses.replace(each, cost=None, jobs=None) for each in (first, second)]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"predictor": "similr"}, UnknownNameError, "similar"),
        ({"quantity": "cpus"}, UnknownNameError, "cpu"),
        ({"learning": "later"}, UnknownNameError, "on_completion"),
        ({"quantity": "memory"}, InputError, "no job whose memory is known"),
        ({"predictor": "recent(k=0)"}, InputError, "k"),
    ],
    ids=["predictor", "quantity", "learning", "unknown of all", "parameter"],
)
def test_bad_input_is_named(changes, error, words):
    """What cannot be evaluated is refused in words."""
    with pytest.raises(error, match=words):
        evaluate(random_jobs(5), **{"predictor": "recent", **changes})


def test_a_predictor_that_predicts_nothing_is_refused():
    """Scores of no job are no answer; the predictor is named."""
    workload = made_workload({"submit_seconds": [0.0, 1.0], "runtime_seconds": [1.0, 2.0]})
    part = as_part(Constant(math.nan))
    with pytest.raises(
        InputError, match=f"predictor {part.text} predicts a time of none of 2 jobs"
    ):
        evaluate(workload, part)
