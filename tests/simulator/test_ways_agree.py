"""Engine and replay give the same schedule: every scheduler with several predictors, on made logs.

``test_engine_replay`` has the simple policies on jobs of one user; here are several users, kinds of
jobs that inform each other, guards against starvation, and orders that change while jobs wait.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import polars as pl
import pytest

from fixed_predictor import workload_of
from foresail.control.policy import is_compiled, named_policies, parse_policy
from foresail.model.event import PREDICTSIM, STANDARD, Conventions
from foresail.model.registry import entries
from foresail.simulator.replay import replay
from foresail.traces.workload import Workload
from made_scenarios import simulate_by_events

SCHEDULERS = [
    "guarded(patience=0.3,bound=0.5)",
    "guarded(queue=submit / probe - wait,patience=0)",
    "easy(queue=-wait / probe,order=predicted / probe,age_limit_seconds=80)",
    "easy(queue=now - 3 * submit,order=-wait,plan=q90)",
    "easy(queue=slowdown,age_limit_seconds=60)",
    "conservative(queue=shortest,age_limit_seconds=70)",
]
PREDICTORS = ["requested", "clairvoyant", "recent", "similar", "regression", "quantile_regression"]
POLICIES = [
    *(
        f"{scheduler},{predictor},incremental"
        for scheduler in SCHEDULERS
        for predictor in PREDICTORS
    ),
    *(
        f"{entry.name},similar,quantile"
        for entry in entries("scheduler")
        if is_compiled(parse_policy(entry.name))
    ),
    *(name for name in named_policies() if is_compiled(parse_policy(name))),
]


def crowded(seed: int, jobs: int = 70) -> Workload:
    """Jobs of five users on 8 cpus: bursts of alike ones, many in the same second."""
    draw = random.Random(seed)
    rows, users = [], []
    submit = 0
    while len(rows) < jobs:
        submit += draw.choice([0, 1, 10, 60])
        cpus, limit = draw.randint(1, 8), draw.choice([30, 60, 240, None])
        user = draw.choice(["ann", "bob", "cid", "dee", None])
        for _ in range(draw.choice([1, 1, 2, 6])):
            runtime = draw.choice([0, 1, draw.randint(1, 60), draw.randint(1, 60)])
            rows.append((submit, cpus, runtime, limit))
            users.append(user)
    return workload_of(rows, 8, users)


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize("text", POLICIES)
def test_every_column_is_the_same(text, conventions):
    """Starts, ends, beliefs, corrections, who overtook; and as many passes and corrections."""
    policy = parse_policy(text)
    for seed in range(2):
        workload = crowded(seed)
        by_events = simulate_by_events(workload, policy, conventions)
        compiled = replay(workload, policy, conventions)
        for column in compiled.jobs.columns:
            differ = by_events.jobs[column].ne_missing(compiled.jobs[column])
            assert not differ.any(), (column, by_events.jobs.filter(differ).head(3))
        for counter in ("passes", "corrections"):
            assert by_events.meta.counters[counter] == compiled.meta.counters[counter]
        if conventions is STANDARD:
            assert by_events.meta.counters["refusals"] == 0


@pytest.mark.parametrize("free", ["actual", "expected"])
@pytest.mark.parametrize("passes", ["per_instant", "per_event"])
@pytest.mark.parametrize("text", ["easy(order=shortest),recent,incremental", "guarded,similar"])
def test_ties_are_settled_alike(text, passes, free):
    """Whether ends or submissions come first changes what is predicted, the same way in both."""
    policy = parse_policy(text)
    predicted = []
    for ties, seed in product(("ends_first", "submissions_first"), range(4)):
        workload, conventions = crowded(seed), Conventions("some", passes, ties, free)
        compiled = replay(workload, policy, conventions).jobs
        assert compiled.equals(simulate_by_events(workload, policy, conventions).jobs)
        predicted.append(compiled["predicted_seconds"].to_list())
    assert predicted[:4] != predicted[4:]


@pytest.mark.parametrize(
    "text", ["easy", "easy(order=shortest),recent,incremental", "conservative"]
)
def test_delayed_heads_are_counted_alike(text):
    """Passes after which the same job is the head and its reservation is later."""
    workload = crowded(7)
    policy = parse_policy(text)
    by_events = simulate_by_events(workload, policy).meta.counters["delayed_heads"]
    assert replay(workload, policy).meta.counters["delayed_heads"] == by_events


def test_limits_are_enforced_alike():
    """With enforced limits jobs end at their request, and say so, whichever way."""
    workload = crowded(3)
    policy = parse_policy("easy,recent,doubling")
    compiled = replay(workload, policy, enforce_limits=True).jobs
    by_events = simulate_by_events(workload, policy, enforce_limits=True).jobs
    assert compiled.equals(by_events)
    run = (compiled["end_seconds"] - compiled["start_seconds"]).to_numpy()
    requested = compiled["requested_seconds"].fill_null(np.inf).to_numpy()
    assert (run <= requested).all()
    limited = (compiled["ended_because"] == "limit").to_numpy()
    assert limited.tolist() == (workload.runtime_seconds > requested).tolist()
    assert limited.any()


def test_kinds_are_user_and_request():
    """Two jobs have the same kind exactly if user and request are equal, unknown ones included."""
    workload = crowded(1)
    kinds = workload.kinds
    pairs = list(zip(workload.jobs["user"], workload.jobs["requested_seconds"], strict=True))
    first = {pair: kinds[index] for index, pair in reversed(list(enumerate(pairs)))}
    assert [first[pair] for pair in pairs] == kinds.tolist()
    assert len(set(kinds.tolist())) == len(first) == kinds.max() + 1


@pytest.mark.parametrize("text", ["easy", "conservative,recent", "guarded,similar", "sjf"])
def test_fractions_of_cpus_add_up(text):
    """Tenths of a cpu are lent and given back, and the whole cpu is there again in the end."""
    for seed in range(20):
        draw = random.Random(seed)
        rows = [(number // 2, 1, draw.randint(1, 9), 10) for number in range(30)]
        workload = workload_of(rows, 1)
        shares = pl.Series([draw.choice([0.1, 0.2, 0.3, 0.7, 1.0]) for _ in rows])
        workload = workload.with_jobs(workload.jobs.with_columns(cpus_per_task=shares))
        compiled = replay(workload, parse_policy(text)).jobs
        by_events = simulate_by_events(workload, parse_policy(text))
        assert compiled["start_seconds"].is_finite().all()
        assert compiled.equals(by_events.jobs)
        assert by_events.meta.counters["refusals"] == 0
