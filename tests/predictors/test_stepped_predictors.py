"""Every predictor: the object that the event loop asks and the compiled steps agree, bit by bit."""

import math

import numpy as np
import pytest

from compiled import take
from foresail.distributions.summary import summarise
from foresail.kernels.columns import REQUESTED, SUMMARY_COLUMNS
from foresail.kernels.steps import CompiledPredictor
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job
from foresail.model.protocols import Predictor
from foresail.model.registry import entries, find
from random_history import END, START, SUBMIT, random_history

VARIANTS = [
    *(
        (entry.name, {})
        for entry in entries("predictor")
        if isinstance(entry.build(entry.parameters()), CompiledPredictor)
    ),
    ("recent", {"k": 3, "whole_seconds": True}),
    ("regression", {"over": "linear", "under": "squared", "weight": "short_wide"}),
    ("quantile_regression", {"levels": (0.2, 0.8)}),
    ("similar", {"classes": 20}),
    ("history", {"false_alarm_jobs": 20, "bins": 8, "feature_values": 200}),
    ("jvu", {"features": ("user", "user+requested")}),
]
LEARNERS = [(name, changes) for name, changes in VARIANTS if name != "clairvoyant"]
REFRESHING = [
    *(
        each
        for each in LEARNERS
        if find("predictor", each[0]).build.refreshed is not Predictor.refreshed
    ),
    ("combined", {"members": ("calibrated", "recent")}),
    ("calibrated", {"of": "history"}),
]


def built(name, changes=None):
    entry = find("predictor", name)
    return entry.build(entry.parameters(**(changes or {})))


def summaries_of_object(predictor, past):
    """Summary rows of all jobs, from the beliefs that the object returns."""
    rows = np.empty((len(past.jobs), SUMMARY_COLUMNS))
    for now, kind, i in past.events:
        if kind == SUBMIT:
            rows[i] = summarise(predictor.predict(past.jobs[i], now))
        elif kind == START:
            predictor.started(past.jobs[i], now)
        elif kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
    return rows


def summaries_of_steps(predictor, past):
    """Summary rows of all jobs, from the compiled steps."""
    specs = past.specs()
    steps, state = predictor.compiled(specs)
    rows = np.empty((len(past.jobs), SUMMARY_COLUMNS))
    for now, kind, i in past.events:
        step = {SUBMIT: steps.predict, START: steps.started, END: steps.observe}[kind]
        runtime = past.runtime[i] if kind == END else math.nan
        take(step, i, now, runtime, specs, *state, rows)
    return rows


@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_object_and_steps_agree(name, changes):
    """Over 800 jobs of 80 users, slots used again and arrays grown, every row is the same."""
    past = random_history(seed=11, jobs=800, users=80)
    as_object, as_steps = built(name, changes), built(name, changes)
    assert isinstance(as_object, Predictor)
    assert isinstance(as_object, CompiledPredictor)
    if as_object.needs_truth:
        truth = {job.job_id: past.runtime[i] for i, job in enumerate(past.jobs)}
        as_object.reveal(truth)
        as_steps.reveal(truth)
    rows = summaries_of_object(as_object, past)
    assert np.array_equal(rows, summaries_of_steps(as_steps, past))
    assert np.all(np.isfinite(rows))
    assert np.all(rows >= 0.0)


@pytest.mark.parametrize(("name", "changes"), LEARNERS)
def test_the_truth_is_out_of_reach(name, changes):
    """What a job's own runtime will be changes nothing in its prediction: only ends teach."""
    past = random_history(seed=12, jobs=60)
    specs = past.specs()
    steps, state = built(name, changes).compiled(specs)
    rows = np.empty((2, SUMMARY_COLUMNS))
    jobs = np.zeros((len(past.jobs), SUMMARY_COLUMNS))
    for which, runtime in enumerate((math.nan, 12345.0)):
        take(steps.predict, 0, 0.0, runtime, specs, *state, jobs)
        rows[which] = jobs[0]
    assert np.array_equal(rows[0], rows[1])


@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_predictions_stay_within_the_limit(name, changes):
    """No quantile of any prediction is beyond a limit that the user gave."""
    past = random_history(seed=13, jobs=200)
    predictor = built(name, changes)
    if predictor.needs_truth:
        predictor.reveal({job.job_id: past.runtime[i] for i, job in enumerate(past.jobs)})
    rows = summaries_of_object(predictor, past)
    limits = past.specs()[:, REQUESTED]
    assert np.all(rows[:, :-1] <= limits[:, np.newaxis])


@pytest.mark.parametrize(("name", "changes"), LEARNERS)
def test_an_end_that_teaches_nothing_leaves_no_trace(name, changes):
    """A preempted attempt is forgotten, and the next attempt is learned like a first one."""
    past = random_history(seed=14, jobs=100)
    plain, disturbed = built(name, changes), built(name, changes)
    summaries_of_object(plain, past)
    summaries_of_object(disturbed, past)
    job = Job.gang("again", 1e6, 4, 3600.0, "user1")
    disturbed.predict(job, 1e6)
    disturbed.started(job, 1e6)
    disturbed.observe(job, Outcome("again", 1e6, 1e6 + 50, EndedBecause.PREEMPTED))
    for predictor in (plain, disturbed):
        predictor.predict(job, 1e6 + 60)
        predictor.started(job, 1e6 + 60)
        predictor.observe(job, Outcome("again", 1e6 + 60, 1e6 + 200))
    later = Job.gang("later", 1e6 + 300, 2, 7200.0, "user1")
    assert np.array_equal(
        summarise(plain.predict(later, 1e6 + 300)), summarise(disturbed.predict(later, 1e6 + 300))
    )


@pytest.mark.parametrize(("name", "changes"), LEARNERS)
def test_a_job_that_was_cancelled_while_it_waited_leaves_no_trace(name, changes):
    past = random_history(seed=15, jobs=100)
    plain, disturbed = built(name, changes), built(name, changes)
    summaries_of_object(plain, past)
    summaries_of_object(disturbed, past)
    in_flight = disturbed.snapshot().in_flight
    for number in range(50):
        job = Job.gang(f"cancelled{number}", 1e6, 4, 3600.0, "user1")
        disturbed.predict(job, 1e6)
        disturbed.withdrawn(job, 1e6 + 50)
    disturbed.withdrawn(Job.gang("unheard of", 1e6, 4, 3600.0, "user1"), 1e6 + 50)
    assert disturbed.snapshot().in_flight == in_flight
    later = Job.gang("later", 1e6 + 300, 2, 7200.0, "user1")
    for predictor in (plain, disturbed):
        predictor.predict(later, 1e6 + 60)
        predictor.started(later, 1e6 + 60)
        predictor.observe(later, Outcome("later", 1e6 + 60, 1e6 + 200))
    last = Job.gang("last", 1e6 + 400, 2, 7200.0, "user1")
    assert np.array_equal(
        summarise(plain.predict(last, 1e6 + 400)), summarise(disturbed.predict(last, 1e6 + 400))
    )


@pytest.mark.parametrize(("name", "changes"), REFRESHING)
def test_being_asked_again_teaches_nothing(name, changes):
    """Whoever waits may be asked about at every end: what is predicted later stays the same."""
    past = random_history(seed=16, jobs=250)
    unasked = summaries_of_object(built(name, changes), past)
    predictor, rows, waiting, changed = built(name, changes), np.empty_like(unasked), set(), 0
    for now, kind, i in past.events:
        if kind == SUBMIT:
            rows[i] = summarise(predictor.predict(past.jobs[i], now))
            waiting.add(i)
        elif kind == START:
            predictor.started(past.jobs[i], now)
            waiting.discard(i)
        elif kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
            for j in waiting:
                anew = summarise(predictor.refreshed(past.jobs[j], now))
                changed += not np.array_equal(anew, rows[j])
    assert np.array_equal(rows, unasked)
    assert changed > 0 or changes.get("of") == "history"  # which stays with what it predicted


@pytest.mark.parametrize(("name", "changes"), REFRESHING)
def test_a_job_that_goes_back_is_believed_like_one_that_comes(name, changes):
    """Whatever was predicted in between, its belief is not that of another job."""
    past = random_history(seed=17, jobs=100)
    lost, fresh = built(name, changes), built(name, changes)
    for predictor in (lost, fresh):
        summaries_of_object(predictor, past)
    job = Job.gang("again", 1e6, 4, 36000.0, "user1")
    other = Job.gang("other", 1e6, 1, 60.0, "user2")
    lost.predict(job, 1e6)
    lost.started(job, 1e6)
    lost.observe(job, Outcome("again", 1e6, 1e6 + 50, EndedBecause.LOST))
    fresh.predict(job, 1e6 + 50)
    believed = []
    for predictor in (lost, fresh):
        predictor.predict(other, 1e6 + 50)
        believed.append(summarise(predictor.refreshed(job, 1e6 + 60)))
    assert np.array_equal(*believed)


@pytest.mark.parametrize(
    "name", ["requested", "recent", "regression", "quantile_regression", "similar"]
)
def test_outcomes_of_an_earlier_run_teach(name):
    """Jobs observed but never predicted here move later predictions, slots and all."""
    past = random_history(seed=15, jobs=200)
    predictor = built(name)
    job = Job("next", 1e6, past.jobs[0].stages, user=past.jobs[0].user)
    before = summarise(predictor.predict(job, 1e6))
    for _, kind, i in past.events:
        if kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
    assert not np.array_equal(before, summarise(predictor.predict(job, 1e6)))


def test_a_second_attempt_may_start_without_a_new_prediction():
    """After a preemption the slot is gone; the start makes a new one and the end is learned."""
    predictor = built("recent", {"k": 1})
    job = Job.gang("twice", 0.0, 1, 900.0, "user")
    predictor.predict(job, 0.0)
    predictor.started(job, 0.0)
    predictor.observe(job, Outcome("twice", 0.0, 10.0, EndedBecause.PREEMPTED))
    predictor.started(job, 20.0)
    predictor.observe(job, Outcome("twice", 20.0, 90.0))
    assert predictor.predict(Job.gang("next", 100.0, 1, 900.0, "user"), 100.0).mean() == 70.0


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("recent", "k", 0),
        ("quantile_regression", "levels", (0.5, 0.5)),
        ("quantile_regression", "levels", ()),
        ("quantile_regression", "levels", (0.0, 0.5)),
        ("similar", "classes", 0),
    ],
)
def test_parameters_out_of_range_are_refused(name, field, value):
    """The error names the parameter."""
    with pytest.raises(InputError) as error:
        find("predictor", name).parameters(**{field: value})
    assert error.value.field == field
