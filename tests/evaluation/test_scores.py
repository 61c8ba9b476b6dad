"""The numbers of an evaluation: by hand, on what is known to be right, and over time."""

import json
import math

import numpy as np
import polars as pl
import pytest

from foresail.distributions.basic import Point
from foresail.distributions.log_normal import LogNormal
from foresail.evaluation.replaying import evaluate
from foresail.evaluation.scores import PINBALL_LEVELS, as_table, pinball, scores
from foresail.evaluation.tables import expert_wins, learning_curve, reliability, worst_users
from foresail.model.errors import InputError
from foresail.model.protocols import Predictor
from made_evaluations import as_part, made_workload, random_jobs
from toys import Constant

WEEK = 604_800.0


class Right(Predictor):
    """Knows the distribution that each user's runtimes are drawn from, not the runtimes."""

    def __init__(self, spread: float) -> None:
        self.spread = spread

    def predict(self, job, now):
        return LogNormal(4.0 + int(job.user) / 4.0, self.spread)

    def observe(self, job, outcome):
        pass


class Remembers(Predictor):
    """Believes the last runtime it heard of, and 100 at first."""

    def __init__(self) -> None:
        self.last = 100.0

    def predict(self, job, now):
        return Point(self.last)

    def observe(self, job, outcome):
        self.last = outcome.runtime_seconds


def lognormal_jobs(jobs, spread):
    generator = np.random.default_rng(3)
    user = generator.integers(0, 12, jobs)
    return made_workload(
        {
            "submit_seconds": np.sort(generator.uniform(0, 10 * WEEK, jobs)),
            "runtime_seconds": np.exp(4.0 + user / 4.0 + generator.normal(0.0, spread, jobs)),
            "user": [str(each) for each in user],
        }
    )


@pytest.fixture(scope="module")
def right():
    """Evaluation of a predictor that knows the distributions."""
    return evaluate(lognormal_jobs(6000, 0.7), as_part(Right(0.7)))


def test_a_right_predictor_keeps_its_word(right):
    """Its intervals hold what they state, its levels are uniform, its median is in the middle."""
    told = scores(right)
    for stated, interval in told.coverage.items():
        assert interval.value == pytest.approx(stated / 100.0, abs=0.02)
        assert interval.low <= interval.value <= interval.high
    table = reliability(right)
    assert np.abs((table["observed"] - table["stated"]).to_numpy()).max() < 0.02
    assert table["jobs"].to_numpy() == pytest.approx(300.0, abs=80.0)


def test_a_right_predictor_scores_best(right):
    """CRPS is proper: too bold and too shy a belief about the same jobs score worse."""
    workload = lognormal_jobs(6000, 0.7)
    bold, shy = (scores(evaluate(workload, as_part(Right(spread)))) for spread in (0.3, 1.5))
    told = scores(right)
    assert told.relative_crps.value < min(bold.relative_crps.value, shy.relative_crps.value)
    assert bold.coverage[80].value < 0.6
    assert shy.coverage[80].value > 0.95
    assert told.nmae_of_median.value < told.nmae.value
    assert told.within_factor_two_of_median.value > told.within_factor_two.value
    assert bold.width[80] < told.width[80] < shy.width[80]


def test_scores_by_hand():
    """One number for every job: all scores follow from the absolute errors."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0, 3.0],
            "runtime_seconds": [10.0, 20.0, 40.0, 0.0],
        }
    )
    evaluation = evaluate(workload, as_part(Constant(20.0)))
    told = scores(evaluation)
    assert told.mean_absolute_error == pytest.approx(12.5)
    assert told.crps == pytest.approx(12.5)
    assert told.nmae.value == pytest.approx(50.0 / 70.0)
    assert told.relative_crps.value == pytest.approx(50.0 / 70.0)
    assert told.median_percentage_error == pytest.approx(50.0)
    assert told.p90_percentage_error == pytest.approx(90.0)
    assert told.within_factor_two == told.within_factor_two_of_median
    assert told.within_factor_two.value == 1.0
    assert told.nmae == told.nmae_of_median
    assert (told.errors.jobs, told.errors.zero_jobs, told.ranges) == (3, 1, 0)
    assert told.pinball["q90"] == pytest.approx((0.1 * 10 + 0.0 + 0.9 * 20 + 0.1 * 20) / 4)
    assert told.pinball["q50"] == pytest.approx(12.5 / 2)
    assert told.coverage[50].value == pytest.approx(0.25)
    assert not told.nmae.is_known


def test_pinball_of_each_level():
    """Too low a quantile costs its level, too high a one the rest, per unit."""
    stated = {name: [4.0, 12.0] for name in PINBALL_LEVELS}
    jobs = pl.DataFrame({"actual": [10.0, 10.0], **stated})
    for name, level in PINBALL_LEVELS.items():
        assert pinball(jobs, name) == pytest.approx([6.0 * level, 2.0 * (1.0 - level)])


def test_all_of_zero():
    """Where every truth is zero no ratio is defined, and none is made up."""
    workload = made_workload({"submit_seconds": [0.0, 1.0], "runtime_seconds": [0.0, 0.0]})
    evaluation = evaluate(workload, as_part(Constant(5.0)))
    told = scores(evaluation)
    assert told.mean_absolute_error == 5.0
    assert math.isnan(told.nmae.value)
    assert math.isnan(told.within_factor_two.value)
    assert math.isnan(told.median_percentage_error)
    assert learning_curve(evaluation).row(0, named=True) == {
        "stretch": 1,
        "jobs": 2,
        "within_factor_two": None,
        "nmae": None,
        "relative_crps": None,
        "relative_width": 0.0,
    }


def test_nothing_predicted():
    """A predictor that never gives a number is refused by name: it has no scores."""
    workload = made_workload({"submit_seconds": [0.0], "runtime_seconds": [1.0]})
    with pytest.raises(InputError, match="predicts a time of none of 1 job"):
        evaluate(workload, as_part(Constant(math.inf)))


def test_the_learning_curve_counts_weeks():
    """A change of the work shows in its week only; weeks count from the first submission."""
    submit = np.concatenate([np.linspace(0, 0.9 * WEEK, 50) + week * WEEK for week in (0, 1, 3)])
    runtime = np.repeat([100.0, 100.0, 1000.0], 50)
    workload = made_workload({"submit_seconds": submit + 5e6, "runtime_seconds": runtime})
    curve = learning_curve(evaluate(workload, as_part(Remembers()), learning="in_order"))
    assert curve["stretch"].to_list() == [1, 2, 4]
    assert curve["jobs"].to_list() == [50, 50, 50]
    assert curve["within_factor_two"].to_list() == pytest.approx([1.0, 1.0, 0.98])
    assert curve["nmae"].to_list() == pytest.approx([0.0, 0.0, 900.0 / 50_000.0])


def test_worst_users_by_summed_error():
    """The user whose errors add up to most comes first, with the share of all."""
    workload = made_workload(
        {
            "submit_seconds": [0.0, 1.0, 2.0, 3.0],
            "runtime_seconds": [10.0, 30.0, 100.0, 12.0],
            "user": ["a", "b", "b", None],
        }
    )
    table = worst_users(evaluate(workload, as_part(Constant(10.0))))
    assert table["user"].to_list() == ["b", None, "a"]
    assert table["share_of_error"].to_list() == pytest.approx([110 / 112, 2 / 112, 0.0])
    first = table.row(0, named=True)
    assert (first["jobs"], first["under"], first["within_factor_two"]) == (2, 1.0, 0.0)


def test_experts_that_won():
    """How often each was followed, and how good then; a predictor without experts has none."""
    evaluation = evaluate(random_jobs(40), "recent")
    assert expert_wins(evaluation).height == 0
    jobs = evaluation.jobs.head(4).with_columns(
        expert=pl.Series(["user", "user", None, "width"]),
        predicted=pl.Series([10.0, 30.0, 10.0, 10.0]),
        actual=pl.Series([10.0, 10.0, 10.0, 20.0]),
    )
    told = expert_wins(
        type(evaluation)(**{**vars(evaluation), "jobs": jobs, "experts": ("user", "width")})
    )
    assert told.rows() == [
        ("user", 2, 0.5, 0.5, 1.0),
        ("width", 1, 0.25, 1.0, 0.5),
        (None, 1, 0.25, 1.0, 0.0),
    ]


def test_intervals_need_weeks_or_days():
    """Weeks are drawn where there are five, days where there are not, else nothing is said."""
    assert scores(evaluate(random_jobs(400, weeks=8.0), "recent")).block_seconds == WEEK
    short = scores(evaluate(random_jobs(400, weeks=2.0), "recent"))
    assert short.block_seconds == 86400.0
    assert short.nmae.low < short.nmae.value < short.nmae.high
    assert scores(evaluate(random_jobs(400, weeks=0.3), "recent")).blocks == 0


def test_json_and_row():
    """Numbers go to JSON and to a table; what is unknown is null."""
    told = scores(evaluate(random_jobs(50, weeks=0.1), "similar"))
    nested = json.loads(json.dumps(told.as_json(), allow_nan=False))
    assert nested["nmae"]["low"] is None
    assert nested["coverage"]["80"]["value"] == told.coverage[80].value
    row = as_table([told, told]).row(1, named=True)
    assert row["coverage_80"] == told.coverage[80].value
    assert row["errors_under"] == told.errors.under
    assert row["predictor"] == "similar"
