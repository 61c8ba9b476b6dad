"""Classes of similar jobs: by hand, against dictionaries, in a full table, and on real logs."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from compiled import take
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.summary import summarise
from foresail.kernels.columns import (
    CPUS,
    EXECUTABLE,
    Q10,
    Q90,
    REQUESTED,
    SUBMIT,
    SUMMARY_COLUMNS,
    USER,
)
from foresail.model.event import Outcome
from foresail.model.job import Job
from foresail.predictors import similar
from foresail.predictors.similar import (
    DECAYS,
    STRENGTHS,
    UNKNOWN_SECONDS,
    UNKNOWN_SPREAD,
    Similar,
    SimilarParameters,
)
from foresail.traces.folder import load_workload
from random_history import END, random_history
from random_history import SUBMIT as SUBMITTED
from shared import shared


def taught(runtimes, job, **parameters):
    """A predictor that saw such a job run so long."""
    predictor = Similar(SimilarParameters(**parameters))
    for i, runtime in enumerate(runtimes):
        name = f"{job.job_id}{i}"
        predictor.observe(replace(job, job_id=name), Outcome(name, 0.0, runtime))
    return predictor


PRIOR = math.log(UNKNOWN_SECONDS)


@pytest.mark.parametrize(
    ("job", "strengths"),
    [
        (Job.gang("shape", 0.0, 4, 3600.0, "user"), (1, 2, 2, 2)),
        (Job.gang("limit", 0.0, 8, 3600.0, "user"), (1, 2, 2)),
        (Job.gang("user", 0.0, 4, 60.0, "user"), (2,)),
        (Job.gang("bucket", 0.0, 4, 3601.0, "other"), (1,)),
        (Job.gang("stranger", 0.0, 4, 60.0, "other"), ()),
        (Job.gang("unlimited", 0.0, 4, None, "other"), ()),
    ],
)
def test_one_ended_job_by_hand(job, strengths):
    """One x of 6 after the prior.

    By the limit E[x] is (6 + prior) / 2, by the user (6 + 2 times that) / 3, and so on through the
    classes that the job shares with the one that ended; E[x^2] likewise from 36.
    """
    past = Job.gang("past", 0.0, 4, 3600.0, "user")
    mean, square = PRIOR, PRIOR**2 + UNKNOWN_SPREAD**2
    for strength in strengths:
        mean = (6.0 + strength * mean) / (1.0 + strength)
        square = (36.0 + strength * square) / (1.0 + strength)
    belief = taught([math.exp(6.0)], past).predict(job, 1.0)
    assert isinstance(belief, LogNormal)
    assert belief.mu == pytest.approx(mean)
    assert belief.sigma**2 == pytest.approx(square - mean**2)
    longest = UNKNOWN_SECONDS * math.exp(2.0 * UNKNOWN_SPREAD)
    assert belief.cap == pytest.approx(job.requested_seconds or 1.5 * longest)


def coincidences(seed, count=1500):
    """Specification rows whose limits, cpus, executables and users share numbers; runtimes."""
    random = np.random.default_rng(seed)
    specs = np.full((count, 7), -1.0)
    specs[:, SUBMIT] = np.arange(count)
    specs[:, CPUS] = random.choice([1.0, 2.0, 4.0], count)
    specs[:, REQUESTED] = random.choice([0.5, 1.0, 2.0, 4.0, 5000.0, math.inf], count)
    specs[:, USER] = random.integers(-1, 5, count)
    specs[:, EXECUTABLE] = random.choice([-1.0, 1.0, 2.0, 4.0], count)
    return specs, np.exp(random.normal(4.0, 2.0, count))


def classes_of(row):
    """The obvious keys, coarse to fine, with the number of the level."""
    limit = row[REQUESTED]
    bucket = None if math.isinf(limit) else math.floor(2.0 * math.log2(max(limit, 1.0)))
    yield 0, ("limit", bucket)
    yield 1, ("user", row[USER])
    if row[EXECUTABLE] >= 0.0:
        yield 2, ("executable", row[USER], row[EXECUTABLE])
    yield 3, ("request", row[USER], limit)
    yield 4, ("shape", row[USER], limit, row[CPUS])


def test_equals_dictionaries():
    """Every belief over a random history in which half the jobs end a while after their turn."""
    specs, runtime = coincidences(seed=31)
    steps, state = Similar(SimilarParameters()).compiled(specs)
    rows = np.empty((len(specs), SUMMARY_COLUMNS))
    seen = defaultdict(lambda: np.zeros(3))
    late = []
    longest = UNKNOWN_SECONDS * math.exp(2.0 * UNKNOWN_SPREAD)
    for i, row in enumerate(specs):
        take(steps.predict, i, 0.0, math.nan, specs, *state, rows)
        mean = PRIOR
        square = mean**2 + UNKNOWN_SPREAD**2
        for level, key in classes_of(row):
            n, total, squares = seen[key]
            strength = STRENGTHS[level]
            mean = (total + strength * mean) / (n + strength)
            square = (squares + strength * square) / (n + strength)
        cap = 1.5 * longest if math.isinf(row[REQUESTED]) else row[REQUESTED]
        expected = [mean, math.sqrt(square - mean**2), cap]
        assert state.jobs[i] == pytest.approx(expected, rel=1e-9)
        assert rows[i] == pytest.approx(summarise(LogNormal(*state.jobs[i])))
        late.append(i)
        if i % 2 == 0:
            continue
        for ended in (late.pop(0), late.pop(0)):
            take(steps.observe, ended, 0.0, runtime[ended], specs, *state, rows)
            longest = max(longest, runtime[ended])
            x = math.log(max(runtime[ended], 1.0))
            for level, key in classes_of(specs[ended]):
                seen[key] = DECAYS[level] * seen[key] + (1.0, x, x * x)


def test_executables_by_name_and_by_code():
    """The object's job names and the compiled columns make the same classes."""
    past = random_history(seed=32)
    codes = np.random.default_rng(32).integers(-1, 4, len(past.jobs))
    jobs = [
        replace(job, name=None if code < 0 else f"program{code}")
        for job, code in zip(past.jobs, codes, strict=True)
    ]
    specs = past.specs()
    specs[:, EXECUTABLE] = codes
    predictor = Similar(SimilarParameters())
    steps, state = predictor.compiled(specs)
    rows = np.empty((len(jobs), SUMMARY_COLUMNS))
    for now, kind, i in past.events:
        if kind == SUBMITTED:
            take(steps.predict, i, now, math.nan, specs, *state, rows)
            assert np.array_equal(summarise(predictor.predict(jobs[i], now)), rows[i])
        elif kind == END:
            take(steps.observe, i, now, past.runtime[i], specs, *state, rows)
            predictor.observe(jobs[i], past.outcome(i))


def test_a_runtime_teaches_at_least_the_shortest():
    """A job of no time at all counts as one of a second."""
    job = Job.gang("a", 0.0, 1, 3600.0, "user")
    assert taught([0.0], job).predict(job, 0.0) == taught([1.0], job).predict(job, 0.0)


def test_jobs_of_a_likeness_are_believed_the_same():
    """Whatever else they are: a controller asks about one of them."""
    predictor = Similar(SimilarParameters())
    past = random_history(seed=23, jobs=300)
    for now, kind, i in past.events:
        if kind == SUBMITTED:
            predictor.predict(past.jobs[i], now)
        elif kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
    assert predictor.likens_jobs
    for job in past.jobs[:50]:
        two = replace(job.stages[0], tasks=2, request=replace(job.stages[0].request, cpus=1.5))
        one = replace(two, tasks=1, request=replace(two.request, cpus=3.0, memory_bytes=7.0))
        alike = [
            replace(job, job_id="one", submit_seconds=1e6, stages=(one,), group="g", queue="q"),
            replace(job, job_id="two", submit_seconds=2e6, stages=(two,), partition="p"),
        ]
        assert alike[0].likeness == alike[1].likeness
        for each in alike:
            predictor.predict(each, 2e6)
        assert predictor.refreshed(alike[0], 3e6) == predictor.refreshed(alike[1], 3e6)
        for each in alike:
            predictor.withdrawn(each, 3e6)


@pytest.mark.parametrize("classes", [1, 5, 8, 40])
def test_a_full_table_keeps_working(classes):
    """Each of its rows is of another class, and beliefs stay finite."""
    specs, runtime = coincidences(seed=33, count=600)
    steps, state = Similar(SimilarParameters(classes=classes)).compiled(specs)
    rows = np.empty((len(specs), SUMMARY_COLUMNS))
    for i in range(len(specs)):
        take(steps.predict, i, 0.0, math.nan, specs, *state, rows)
        take(steps.observe, i, 0.0, runtime[i], specs, *state, rows)
    table = state.model[similar.TABLE :].reshape(classes, similar.COLUMNS)
    assert np.all(table[:, 3] > 0.0)
    assert len(np.unique(table[:, :3], axis=0)) == classes
    assert np.all(np.isfinite(rows))


def test_a_full_table_forgets_the_lightest():
    """A user with a history keeps it while fifty strangers come by once each."""
    known = Job.gang("known", 0.0, 4, 3600.0, "user")
    predictor = taught([600.0] * 20, known, classes=8)
    before = predictor.predict(known, 0.0)
    for i in range(50):
        stranger = Job.gang(f"stranger{i}", 0.0, 1, None, f"stranger{i}")
        predictor.observe(stranger, Outcome(stranger.job_id, 0.0, 9000.0))
    assert predictor.predict(known, 0.0) == before


@pytest.mark.parametrize("log", ["KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie"])
def test_beliefs_hold_as_often_as_they_say(log):
    """After a tenth of a log the middle 80 % of the belief holds 75 to 85 % of what happened.

    Runtimes below a second count as one.
    """
    workload = load_workload(shared(f"traces/predictsim-sc15/{log}.filtered.swf.gz"))
    specs, runtime = workload.specs, workload.runtime_seconds
    wait = workload.jobs["recorded_wait_seconds"].fill_null(0.0).to_numpy()
    count = len(specs)
    end = specs[:, SUBMIT] + wait + np.maximum(runtime, 0.5)  # after its submission
    order = np.lexsort((np.repeat((1, 0), count), np.concatenate((specs[:, SUBMIT], end))))
    steps, state = Similar(SimilarParameters()).compiled(specs)
    rows = np.empty((count, SUMMARY_COLUMNS))
    for event in order.tolist():
        if event < count:
            take(steps.predict, event, 0.0, math.nan, specs, *state, rows)
        else:
            take(steps.observe, event - count, 0.0, runtime[event - count], specs, *state, rows)
    learned = np.maximum(runtime, 1.0)
    held = (rows[:, Q10] <= learned) & (learned <= rows[:, Q90])
    assert 0.75 <= np.mean(held[count // 10 :]) <= 0.85
