"""3Sigma's predictor: golden values, a slow reference, forgetting, changes, and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import believe, compiled, take
from foresail.distributions.basic import Point
from foresail.distributions.histogram import Histogram
from foresail.distributions.summary import belief_row, summarise
from foresail.kernels.columns import (
    BELIEF_COLUMNS,
    CPUS,
    EXECUTABLE,
    MEMORY,
    PREDICTED,
    QUEUE,
    REQUESTED,
    SPEC_COLUMNS,
    SUBMIT,
    SUMMARY_COLUMNS,
    USER,
)
from foresail.kernels.steps import ReportsExpert
from foresail.model.cluster import Resources
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.event import Outcome
from foresail.model.job import Job, Stage
from foresail.predictors.history import History, HistoryParameters, Jvu, alarm_level, table_rows
from foresail.predictors.kernels import experience, experts
from slow_history import SlowHistory

DAY = 86_400.0


def job_of(number, user="u", name=None, submit=0.0, requested=None, **fields):
    """A job of one cpu."""
    return Job(
        f"job{number}",
        submit,
        (Stage(1, Resources(cpus=1.0)),),
        requested_seconds=requested,
        user=user,
        name=name,
        **fields,
    )


def live(predictor, runtimes, **fields):
    """Predict and end jobs one after the other; what was believed of each."""
    beliefs = []
    for number, runtime in enumerate(runtimes):
        job = job_of(number, **fields)
        beliefs.append(predictor.predict(job, 0.0))
        predictor.observe(job, Outcome(job.job_id, 0.0, runtime))
    return beliefs


def only(*features, **parameters):
    """Parameters with these features."""
    return HistoryParameters(features=features, **parameters)


def test_golden_estimators_and_scores():
    """G5: estimators and NMAE of 10, 20, 30, 40, 100, from the table's one row; rolling wins."""
    predictor = Jvu(only("user"))
    live(predictor, [10.0, 20.0, 30.0, 40.0, 100.0])
    estimate, score = compiled(experience.estimate), compiled(experience.score)
    for row in predictor.rows():
        histogram = experience.histogram_place(predictor._state.model)
        said = [estimate(row, histogram, k) for k in range(experience.ESTIMATORS)]
        assert said == pytest.approx([40.0, 30.0, 73.504, 170 / 3])
        errors = [score(row, k) for k in range(experience.ESTIMATORS)]
        assert errors == pytest.approx([0.631579, 0.631579, 0.557053, 0.605263], abs=1e-6)
    assert predictor.predict(job_of("next"), 0.0) == Point(pytest.approx(73.504))


@pytest.mark.parametrize("of", [Jvu, History])
def test_golden_choice_of_a_feature(of):
    """G5: the name's rolling average wins over the user's; its history is the distribution."""
    predictor = of(only("user", "executable"))
    live(predictor, [100.0, 200.0, 100.0, 200.0], name=None)
    live(predictor, [120.0, 125.0, 130.0, 135.0], user=None, name="program")
    belief = predictor.predict(job_of("next", name="program"), 0.0)
    expert = int(predictor._state.jobs[predictor._slots["jobnext"], predictor.expert_column])
    assert predictor.expert_names[expert] == "executable rolling"
    if of is Jvu:
        assert belief == Point(pytest.approx(131.88))
    else:
        assert isinstance(belief, Histogram)
        assert belief.centroids.tolist() == [120.0, 125.0, 130.0, 135.0]


def random_specs(seed, count):
    """Specification rows of few values each, some unknown; runtimes of few distinct values."""
    random = np.random.default_rng(seed)
    specs = np.zeros((count, SPEC_COLUMNS))
    specs[:, SUBMIT] = np.sort(random.uniform(0.0, 5 * DAY, count))
    specs[:, CPUS] = random.choice([1.0, 2.0, 4.0], count)
    specs[:, REQUESTED] = random.choice([100.0, 5000.0, math.inf], count)
    for column in (USER, EXECUTABLE, QUEUE):
        specs[:, column] = random.integers(-1, 4, count)
    specs[:, MEMORY] = random.choice([0.0, 1e9], count)
    return specs, random.choice([0.0, 1.0, 30.0, 60.0, 61.0, 900.0, 3600.0], count)


def keys_of(row):
    """The obvious values of the features below, None where an attribute is unknown."""
    user = None if row[USER] < 0 else row[USER]
    program = None if row[EXECUTABLE] < 0 else row[EXECUTABLE]
    hour = math.floor(row[SUBMIT] / 3600) % 24
    yield user
    yield program
    yield None if user is None or program is None else (user, program)
    yield None if user is None else (user, row[CPUS], hour)
    yield row[REQUESTED] if math.isfinite(row[REQUESTED]) else None
    yield row[MEMORY] or None
    yield math.floor(row[SUBMIT] / DAY) % 7
    yield "everybody"


FEATURES = (
    "user",
    "executable",
    "user+executable",
    "user+cpus+hour",
    "requested",
    "memory",
    "day",
)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equals_the_slow_reference(seed):
    """Winner, estimate and history of every job, a third of which end long after others."""
    specs, runtime = random_specs(seed, 400)
    parameters = only(*FEATURES, few=2)
    predictor = History(parameters)
    steps, state = predictor.compiled(specs)
    slow = SlowHistory(keys_of, [1, 1, 2, 3, 1, 1, 1, 0], few=2)
    rows = np.zeros((len(specs), SUMMARY_COLUMNS))
    random = np.random.default_rng(seed)
    running = []
    for i, spec in enumerate(specs):
        take(steps.predict, i, spec[SUBMIT], math.nan, specs, *state, rows)
        expert, history = slow.predict(i, spec)
        assert state.jobs[i, experts.EXPERT] == expert
        if expert < 0:
            assert rows[i, PREDICTED] == min(spec[REQUESTED], DAY)
        else:
            assert state.jobs[i, experts.ESTIMATES + expert] == pytest.approx(slow.said(i, expert))
            expected = Histogram.from_values(np.minimum(history, spec[REQUESTED]))
            assert rows[i] == pytest.approx(summarise(expected), rel=1e-9)
            belief = np.empty(BELIEF_COLUMNS)
            believe(steps.belief, i, specs, *state, rows, belief)
            assert belief == pytest.approx(belief_row(expected), rel=1e-9)
        running.append(i)
        while running and random.random() < 0.52:
            ended = running.pop(random.integers(len(running)))
            take(steps.observe, ended, spec[SUBMIT], runtime[ended], specs, *state, rows)
            slow.observe(ended, specs[ended], runtime[ended])


def test_an_estimate_is_scored_as_made_at_submission():
    """Jobs that end meanwhile do not improve what was said before."""
    predictor = History(only("user"))
    live(predictor, [100.0])
    late = job_of("late")
    predictor.predict(late, 0.0)
    for number in range(5):
        predictor.observe(job_of(f"other{number}"), Outcome(f"other{number}", 0.0, 500.0))
    scored = predictor.rows()[0]
    before = scored[experience.ERRORS]
    predictor.observe(late, Outcome("joblate", 0.0, 500.0))
    assert scored[experience.ERRORS] - before == pytest.approx(400.0)


def test_the_fallback_chain():
    """Limit; a day; all jobs; most attributes, before anything is scored."""
    predictor = History(only("user", "user+executable"))
    assert predictor.predict(job_of("a", requested=900.0), 0.0) == Point(900.0)
    assert predictor.predict(job_of("b"), 0.0) == Point(DAY)
    predictor.observe(job_of("b"), Outcome("jobb", 0.0, 50.0))
    assert predictor.predict(job_of("c", user="stranger"), 0.0).mean() == 50.0
    job = job_of("d", user="other", name="program")
    predictor.observe(job, Outcome("jobd", 0.0, 10.0))  # predicted by all jobs: others unscored
    predictor.predict(job_of("e", user="other", name="program"), 0.0)
    expert = int(predictor._state.jobs[predictor._slots["jobe"], experts.EXPERT])
    assert predictor.expert_names[expert] == "user+executable mean"


def test_a_belief_ends_at_the_limit():
    """Runtimes beyond it count as it, also once bins were merged."""
    predictor = History(only("user", bins=4))
    live(predictor, [10.0, 20.0, 30.0, 1000.0, 2000.0, 3000.0, 4000.0])
    belief = predictor.predict(job_of("next", requested=500.0), 0.0)
    assert belief.quantile(1.0) == 500.0
    assert belief.quantile(0.9) == 500.0
    assert float(belief.survival(499.0)) > 0.2


def test_says_which_expert_it_followed():
    """For the share of wins in an evaluation."""
    predictor = History(HistoryParameters())
    assert isinstance(predictor, ReportsExpert)
    assert len(predictor.expert_names) == 9 * 4
    assert predictor.expert_names[-1] == "all recent"


def changing(seed, before, after, **parameters):
    """Absolute errors in ln(runtime) of the median belief after jobs of one class, then another."""
    random = np.random.default_rng(seed)
    runtimes = np.exp(np.concatenate((random.normal(5, 0.5, before), random.normal(8, 0.5, after))))
    beliefs = live(History(only("user", **parameters)), runtimes)
    medians = np.array([belief.quantile(0.5) for belief in beliefs[before:]])
    return np.abs(np.log(medians) - np.log(runtimes[before:]))


def test_a_change_is_noticed():
    """After 500 jobs of five minutes the median follows to an hour within ten jobs."""
    plain, watching = changing(1, 500, 60), changing(1, 500, 60, false_alarm_jobs=1000)
    assert plain[10:].mean() > 2.0
    assert watching[10:].mean() < 0.6


def test_no_change_costs_next_to_nothing():
    """On a class that does not change errors grow by at most 3 %."""
    random = np.random.default_rng(2)
    runtimes = np.exp(random.normal(5, 1.0, 3000))
    errors = []
    for parameters in ({}, {"false_alarm_jobs": 1000}):
        beliefs = live(History(only("user", **parameters)), runtimes)
        medians = np.array([belief.quantile(0.5) for belief in beliefs[1:]])
        errors.append(np.abs(np.log(medians) - np.log(runtimes[1:])).mean())
    assert errors[1] <= 1.03 * errors[0]


@pytest.mark.parametrize("draw", ["normal", "exponential", "pareto"])
def test_false_alarms_are_as_rare_as_said(draw):
    """Whatever the distribution: ranks are uniform. Once in 200 is once in 120 to 400."""
    random = np.random.default_rng(3)
    count = 20_000
    values = {
        "normal": lambda: np.abs(random.normal(100.0, 20.0, count)),
        "exponential": lambda: random.exponential(100.0, count),
        "pareto": lambda: 10.0 * (1.0 + random.pareto(1.1, count)),
    }[draw]()
    predictor = History(only("cpus", false_alarm_jobs=200))
    specs = np.ones((1, SPEC_COLUMNS))
    steps, state = predictor.compiled(specs)
    rows = np.zeros((1, SUMMARY_COLUMNS))
    state.jobs[:, experts.ESTIMATES :] = math.nan
    for value in values:
        take(steps.observe, 0, 0.0, value, specs, *state, rows)
    alarms = table_rows(state.model)[0, experience.ALARMS]
    assert count / 400 <= alarms <= count / 120


def test_the_level_of_alarms():
    """It rises with the jobs between false alarms, and is infinite for none."""
    levels = [alarm_level(jobs) for jobs in (10.0, 100.0, 1000.0, 1e6)]
    assert levels == sorted(levels)
    assert levels[2] == pytest.approx(5.83, abs=0.1)
    assert alarm_level(None) == math.inf


@pytest.mark.parametrize("cap", [1, 2, 9, 30])
def test_memory_is_bounded(cap):
    """However many users come by, no more feature-values are kept; beliefs stay finite."""
    predictor = History(HistoryParameters(feature_values=cap))
    for number in range(60):
        job = job_of(number, user=f"user{number % 25}", name=f"program{number % 7}")
        assert math.isfinite(predictor.predict(job, 0.0).mean())
        predictor.observe(job, Outcome(job.job_id, 0.0, 60.0 + number))
    memory = predictor.memory()
    assert sum(memory.feature_values.values()) == cap
    assert memory.used_bytes == cap * memory.row_bytes
    assert memory.evictions > 0
    assert memory.learned == 60


def test_the_value_longest_unused_is_forgotten():
    """A prediction is a use, too."""
    predictor = History(only("user", feature_values=3))
    for user in ("a", "b"):
        live(predictor, [100.0], user=user)
    predictor.predict(job_of("asked", user="a"), 0.0)
    live(predictor, [100.0], user="c")
    codes = predictor._codes[USER]
    kept = {row[1] for row in predictor.rows() if row[0] == 0.0}
    assert kept == {codes["a"], codes["c"]}


def test_columns_of_the_source_are_features():
    """By attribute in the object, by column in the compiled steps; both give the same."""
    predictor = Jvu(only("program_version", "user"))
    for number, version in enumerate(["1", "2", "1", None, "2"]):
        attributes = {} if version is None else {"program_version": version}
        job = job_of(number, user=None, attributes=attributes)
        predictor.predict(job, 0.0)
        predictor.observe(job, Outcome(job.job_id, 0.0, 100.0 * int(version or 9)))
    asked = job_of("x", user=None, attributes={"program_version": "2"})
    assert predictor.predict(asked, 0.0) == Point(200.0)
    specs = np.zeros((6, SPEC_COLUMNS + 2))
    specs[:, USER] = -1.0
    specs[:, REQUESTED] = math.inf
    specs[:, -1] = [0.0, 1.0, 0.0, -1.0, 1.0, 1.0]
    columns = ("other", "program_version")
    steps, state = Jvu(only("program_version", "user")).compiled(specs, columns)
    rows = np.zeros((6, SUMMARY_COLUMNS))
    for i, runtime in enumerate([100.0, 200.0, 100.0, 900.0, 200.0]):
        take(steps.predict, i, 0.0, math.nan, specs, *state, rows)
        take(steps.observe, i, 0.0, runtime, specs, *state, rows)
    take(steps.predict, 5, 0.0, math.nan, specs, *state, rows)
    assert rows[5, PREDICTED] == 200.0


def test_an_unknown_feature_is_refused():
    """Compiled for a source that lacks the column, with a word on those that there are."""
    with pytest.raises(UnknownNameError, match="did you mean 'user'"):
        History(only("usr")).compiled(np.zeros((1, SPEC_COLUMNS)), ("colour",))
    with pytest.raises(UnknownNameError, match="colour"):
        History(only("xyz")).compiled(np.zeros((1, SPEC_COLUMNS)), ("colour",))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("features", ("user", "user")),
        ("features", ("user+user",)),
        ("features", ("user+",)),
        ("features", ("",)),
        ("features", ("all",)),
        ("features", ("user+cpus+hour+day+queue",)),
        ("bins", 1),
        ("few", 0),
        ("few", 101),
        ("false_alarm_jobs", 1.0),
        ("feature_values", 0),
    ],
)
def test_parameters_out_of_range_are_refused(field, value):
    """The error names the parameter."""
    with pytest.raises(InputError) as error:
        HistoryParameters(**{field: value})
    assert error.value.field == field


@pytest.mark.parametrize("runtime", [math.inf, math.nan, -5.0])
def test_runtimes_that_are_none_teach_nothing(runtime):
    """Infinite, unknown, or of a clock that went backwards."""
    predictor = History(HistoryParameters())
    live(predictor, [100.0, runtime, 200.0])
    assert predictor.memory().learned == 2
    assert predictor.predict(job_of("next"), 0.0).mean() == pytest.approx(150.0)


def test_zero_runtimes():
    """Jobs of no time at all: believed, scored, and no division by zero."""
    predictor = Jvu(HistoryParameters())
    live(predictor, [0.0, 0.0, 0.0])
    assert predictor.predict(job_of("next"), 0.0) == Point(0.0)
    live(predictor, [10.0])
    assert math.isfinite(predictor.predict(job_of("last"), 0.0).mean())


def test_a_clock_that_goes_backwards():
    """What has been learned is not undone by an event of long ago, nor is the event lost."""
    predictor = History(only("user"))
    recent = job_of(0)
    predictor.observe(recent, Outcome("job0", 50 * DAY, 50 * DAY + 100.0))
    old = job_of(1)
    predictor.observe(old, Outcome("job1", 0.0, 100.0))
    assert predictor.predict(job_of("next"), 1.0).mean() == pytest.approx(100.0)
    row = predictor.rows()[0]
    assert row[experience.TAKEN] == 2.0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.floats(0.0, 1e7),
            st.floats(0.0, 40 * DAY),
        ),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(
        [
            {},
            {"false_alarm_jobs": 20.0},
            {"bins": 2, "few": 1},
            {"feature_values": 2, "false_alarm_jobs": 10.0},
        ]
    ),
)
def test_beliefs_are_sound(jobs, parameters):
    """Within what was seen, in order, finite; counts add up."""
    predictor = History(HistoryParameters(**parameters))
    seen = []
    for number, (user, runtime, time) in enumerate(jobs):
        job = job_of(number, user=f"user{user}", submit=time)
        belief = predictor.predict(job, time)
        levels = [belief.quantile(level) for level in (0.0, 0.1, 0.5, 0.9, 1.0)]
        assert levels == sorted(levels)
        if isinstance(belief, Histogram):
            slack = 1e-9 * max(seen)
            assert min(seen) - slack <= levels[0]
            assert levels[-1] <= max(seen) + slack
            assert np.isfinite(summarise(belief)).all()
        predictor.observe(job, Outcome(job.job_id, time, time + runtime))
        seen.append(time + runtime - time)
    assert predictor.memory().learned == len(jobs)
