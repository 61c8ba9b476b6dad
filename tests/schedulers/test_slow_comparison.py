"""Every scheduler on random small workloads: the compiled replay against the slow simulator."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed_predictor import fixed_policy, workload_of
from foresail.model.event import PREDICTSIM, STANDARD
from foresail.schedulers.backfilling import GuardedParameters
from foresail.simulator.replay import replay
from slow_simulator import (
    Rules,
    SlowJob,
    SlowSimulation,
    conservative,
    easy,
    guarded,
    in_order,
    reserving,
)

DOUBTFUL = GuardedParameters().plan
GUARDED_QUEUE = GuardedParameters().queue
SHARES = GuardedParameters().patience, GuardedParameters().bound

SCHEDULERS = {
    "fcfs": Rules(in_order),
    "sjf": Rules(in_order, "predicted"),
    "ljf": Rules(in_order, "-predicted"),
    "saf": Rules(in_order, "predicted * cpus"),
    "in_order(queue=cpus - wait,age_limit_seconds=40)": Rules(
        in_order, "cpus - wait", age_limit=40
    ),
    "easy": Rules(easy),
    "easy(order=shortest)": Rules(easy, candidates="predicted"),
    "easy(plan=min(requested, 2 * predicted))": Rules(easy, plan="min(requested, 2 * predicted)"),
    "easy(queue=smallest_area,order=widest,age_limit_seconds=25)": Rules(
        easy, "predicted * cpus", "-cpus", age_limit=25
    ),
    "easy(queue=-wait / max(predicted, 1),order=now - 2 * submit)": Rules(
        easy, "-wait / max(predicted, 1)", "now - 2 * submit"
    ),
    "easy(queue=predicted / probe)": Rules(easy, "predicted / probe"),
    "easy(queue=-wait / probe,order=predicted / probe,age_limit_seconds=60)": Rules(
        easy, "-wait / probe", "predicted / probe", age_limit=60
    ),
    "easy(reservations=0)": Rules(reserving(0)),
    "easy(reservations=2,order=shortest)": Rules(reserving(2), candidates="predicted"),
    "easy(reservations=3,queue=longest,age_limit_seconds=30)": Rules(
        reserving(3), "-predicted", age_limit=30
    ),
    "conservative": Rules(conservative),
    "conservative(plan=requested)": Rules(conservative, plan="requested"),
    "conservative(queue=shortest,age_limit_seconds=50)": Rules(
        conservative, "predicted", age_limit=50
    ),
    "guarded": Rules(guarded, GUARDED_QUEUE, plan=DOUBTFUL, shares=SHARES),
    "guarded(patience=0.2,bound=0.4)": Rules(
        guarded, GUARDED_QUEUE, plan=DOUBTFUL, shares=(0.2, 0.4)
    ),
    "guarded(patience=0)": Rules(guarded, GUARDED_QUEUE, plan=DOUBTFUL, shares=(0.0, SHARES[1])),
    "guarded(queue=longest,plan=predicted,patience=0.5,bound=0)": Rules(
        guarded, "-predicted", plan="predicted", shares=(0.5, 0.0)
    ),
}
CORRECTIONS = (
    "requested",
    "incremental",
    "incremental(reading=absolute)",
    "doubling",
)

MadeJob = tuple[float, int, float, float | None, float, str | None]
"""Submit, cpus, runtime, requested, predicted, user."""


@st.composite
def made_jobs(draw: st.DrawFn) -> tuple[int, list[MadeJob]]:
    """A machine and jobs for it, many in the same second, with estimates that are off."""
    processors = draw(st.integers(1, 16))
    seconds = st.one_of(st.integers(0, 12), st.integers(0, 120))
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 5, 20]), min_size=1, max_size=40))
    jobs: list[MadeJob] = []
    submit = 0
    for gap in gaps:
        submit += gap
        runtime = draw(seconds)
        requested = draw(st.one_of(st.none(), st.just(runtime), seconds, st.just(30)))
        predicted = draw(st.one_of(st.just(runtime), st.integers(1, 120), st.just(10)))
        user = draw(st.sampled_from(["ann", "bob", None]))
        jobs.append((submit, draw(st.integers(1, processors)), runtime, requested, predicted, user))
    return processors, jobs


def slowly(
    processors: int, jobs: Sequence[MadeJob], rules: Rules, correction: str, predictsim: bool
) -> SlowSimulation:
    slow_jobs = [
        SlowJob(number, submit, cpus, runtime, math.inf if limit is None else limit, told, user)
        for number, (submit, cpus, runtime, limit, told, user) in enumerate(jobs)
    ]
    simulation = SlowSimulation(processors, rules, correction, predictsim)
    simulation.run(slow_jobs)
    return simulation


def policy_and_workload(text: str, correction: str, processors: int, jobs: Sequence[MadeJob]):
    policy = fixed_policy(f"{text},requested,{correction}", [float(job[4]) for job in jobs])
    return policy, workload_of([job[:4] for job in jobs], processors, [job[5] for job in jobs])


@pytest.mark.parametrize("conventions", [STANDARD, PREDICTSIM], ids=lambda each: each.name)
@pytest.mark.parametrize("text", SCHEDULERS)
def test_replay_does_what_the_slow_simulator_does(text, conventions):
    """Every start, every correction, and who overtook whom."""

    @settings(max_examples=25)
    @given(made_jobs(), st.sampled_from(CORRECTIONS))
    def compare(made, correction):
        processors, jobs = made
        slow = slowly(processors, jobs, SCHEDULERS[text], correction, conventions is PREDICTSIM)
        policy, workload = policy_and_workload(text, correction, processors, jobs)
        table = replay(workload, policy, conventions).jobs
        assert table["start_seconds"].to_list() == [job.start for job in slow.jobs]
        assert table["corrections"].to_list() == [job.corrections for job in slow.jobs]
        assert table["backfilled"].to_list() == [job.backfilled for job in slow.jobs]
        assert conventions is PREDICTSIM or slow.most_in_use <= processors

    compare()
