"""Deadlines at the end of a chain of jobs: what the first of them is worth, and whole runs."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from foresail.control.policy import parse_policy
from foresail.distributions.basic import Uniform
from foresail.distributions.empirical import Empirical
from foresail.model.preference import Preference, PreferenceKind
from foresail.model.registry import find
from foresail.schedulers._planning.valuing import PlanAheadParameters
from foresail.schedulers._planning.weighing import claims_of
from foresail.simulator.conditions import ClusterConditions
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate, simulate_on_nodes
from planning_problems import built, job, outcome, racks, running, view_of, waiting

PLANS = "window_slots=8,slot_seconds=2.5,hopeless_jobs=drop,over_estimates=off,cycle_seconds=60"
KNOWING = PlanAheadParameters(over_estimates="off", end_to_end=True)
WIDE = Uniform(0.0, 10.0)


def after(made, *names):
    """The same job, once others have ended."""
    return replace(made, after=names)


def chain_view(first, last, deadline=15.0, others=(), nodes=1):
    """A job, and one with a deadline that waits for it."""
    pending = waiting((job("first", 1), first), *others)
    blocked = waiting((after(job("last", 1, deadline=deadline), "first"), last))
    return replace(view_of(racks(nodes), pending), blocked=blocked)


@pytest.mark.parametrize(
    ("first", "last", "chance"),
    [
        (5.0, 10.0, 1.0),
        (5.0, 10.5, 0.0),
        (Empirical([2.0, 4.0]), Empirical([10.0, 12.0]), 0.75),
        (WIDE, WIDE, 0.875),
    ],
    ids=["in time", "too late", "atoms", "uniform"],
)
def test_a_first_job_is_worth_the_chance_of_its_chain(first, last, chance):
    """It is worth the deadline times the chance that both end by then, beside its own worth."""
    view = chain_view(first, last)
    alone = built(f"3sigma({PLANS})").demands(view).problem.worth[0]
    worth = built(f"3sigma({PLANS},end_to_end=yes)").demands(view).problem.worth[0]
    assert worth[0] - alone[0] == pytest.approx(1000.0 * chance, abs=4.0)
    assert (np.diff(worth) <= 1e-9).all()


def test_where_the_first_job_runs_counts():
    """On slower nodes only the first job is longer, not what follows."""
    likes = Preference(PreferenceKind.PARTITION, ("r1",), 2.0)
    pending = waiting((job("first", 1, preference=likes), 4))
    blocked = waiting((after(job("last", 1, deadline=12.0), "first"), 4))
    view = replace(view_of(racks(1, 1), pending), blocked=blocked)
    worth = built(f"3sigma({PLANS},end_to_end=yes)").demands(view).problem.worth
    assert (worth > 500.0).tolist() == [[True, True] + 6 * [False], [True] + 7 * [False]]


def test_one_by_one_a_chain_is_urgent():
    """In order of arrival, jobs that a deadline waits for go before best-effort jobs."""
    view = chain_view(5.0, 5.0, deadline=12.0)
    early = waiting((job("patient", 1), 5.0), (job("first", 1), 5.0))
    view = replace(view, pending=early)
    for knowing, first in (("no", "patient"), ("yes", "first")):
        scheduler = built(f"3sigma({PLANS},placing=in_order,end_to_end={knowing})")
        assert outcome(scheduler, view)[0][first] == 0.0


def test_the_longest_way_counts():
    """A job that two lead on from is as early as the longer of them, and what comes then, needs."""
    blocked = waiting(
        (after(job("short", 1), "a"), 2),
        (after(job("long", 1), "a"), 7),
        (after(job("end", 1, deadline=100.0), "short", "long"), 10),
    )
    view = replace(view_of(racks(1), waiting((job("a", 1), 1))), blocked=blocked)
    (claim,) = claims_of(view, KNOWING)["a"]
    assert claim.rest.mean() == pytest.approx(17.0)
    assert claim.decay.full == 1000.0


def test_who_leads_to_a_deadline_shares_its_worth():
    """Of two jobs that a deadline waits for each is worth half of it; running ones count too."""
    blocked = waiting((after(job("end", 1, deadline=100.0), "a", "b"), 10))
    pending = waiting((job("a", 1), 1), (job("c", 1), 1))
    busy = [running(job("b", 1), 20, ["n11"])]
    view = replace(view_of(racks(2), pending, busy), blocked=blocked)
    claims = claims_of(view, KNOWING)
    assert {name: [claim.decay.full for claim in each] for name, each in claims.items()} == {
        "a": [500.0],
        "b": [500.0],
    }


def test_several_deadlines_add_up():
    """A job that leads to two deadlines is claimed by both, each with its own way."""
    blocked = waiting(
        (after(job("near", 1, deadline=20.0), "a"), 5),
        (after(job("far", 1, deadline=40.0), "near"), 10),
    )
    view = replace(view_of(racks(1), waiting((job("a", 1), 1))), blocked=blocked)
    claims = claims_of(view, KNOWING)["a"]
    found = [(claim.decay.begin_seconds, claim.rest.mean()) for claim in claims]
    assert found == [(20.0, 5.0), (40.0, 15.0)]


def test_jobs_that_wait_for_each_other_claim_nothing():
    """A circle never ends: nobody is worth more for it, and no job is lost."""
    blocked = waiting(
        (after(job("b", 1, deadline=50.0), "a", "c"), 1), (after(job("c", 1), "b"), 1)
    )
    view = replace(view_of(racks(1), waiting((job("a", 1), 1))), blocked=blocked)
    assert claims_of(view, KNOWING) == {}
    assert outcome(built("3sigma(end_to_end=yes)"), view)[0] == {"a": 0.0}


def test_a_job_that_a_deadline_waits_for_is_not_stopped():
    """It has no deadline of its own, but stopping it would cost one."""
    busy = [running(job("first", 1), 40, ["n11"], start=-5.0)]
    pending = waiting((job("urgent", 1, deadline=12.0), 10))
    blocked = waiting((after(job("last", 1, deadline=60.0), "first"), 10))
    view = replace(view_of(racks(1), pending, busy), blocked=blocked)
    text = "3sigma(window_slots=8,slot_seconds=5,over_estimates=off,end_to_end={})"
    assert outcome(built(text.format("no")), view)[1] == ["first"]
    assert outcome(built(text.format("yes")), view)[1] == []


def test_a_chain_that_is_hopeless_from_the_start_counts_late():
    """As for single jobs: its history may be wrong, so its worth only falls after the deadline."""
    view = chain_view(10.0, 10.0)
    falls = {
        over_estimates: claims_of(
            view, PlanAheadParameters(over_estimates=over_estimates, end_to_end=True)
        )["first"][0].decay
        for over_estimates in ("off", "adaptive")
    }
    assert falls["off"].end_seconds == falls["off"].begin_seconds == 15.0
    assert falls["adaptive"].end_seconds > 20.0


HAND = Workload(
    jobs_table(
        {
            "job_id": ["other", "first", "last"],
            "submit_seconds": [0.0, 0.0, 0.0],
            "runtime_seconds": [10.0, 10.0, 10.0],
            "requested_seconds": [10.0, 10.0, 10.0],
            "tasks": [1, 1, 1],
            "deadline_seconds": [40.0, None, 25.0],
            "after_jobs": [None, None, "first"],
        }
    ),
    WorkloadMeta("hand", "", processors=1),
)


@pytest.mark.parametrize(("knowing", "ends"), [("no", [10, 20, 30]), ("yes", [30, 10, 20])])
def test_knowing_the_chain_meets_both_deadlines(knowing, ends):
    """One node: if the chain's first job does not know of its deadline, the last one is late."""
    policy = parse_policy(f"3sigma(slot_seconds=5,end_to_end={knowing})")
    schedule = simulate(HAND, policy)
    assert schedule.jobs["end_seconds"].to_list() == ends


@pytest.mark.parametrize("policy", ["fcfs", "easy", "tetrisched"])
def test_dependencies_of_a_workload_are_kept(policy):
    """Whatever the scheduler, compiled or not, a job starts after those that it waits for."""
    schedule = simulate(HAND, parse_policy(policy))
    at = {row["job_id"]: row for row in schedule.jobs.to_dicts()}
    assert at["last"]["start_seconds"] >= at["first"]["end_seconds"]


def test_a_job_outside_the_workload_is_not_waited_for():
    """Who is left of a longer log does not wait for ever for who is not."""
    part = HAND.with_jobs(HAND.jobs.filter(pl.col("job_id") != "first"))
    assert [each.after for each in part.specifications()] == [(), ()]


def pipelines(part, **settings):
    """A workload of chains."""
    entry = find("generator", "pipelines")
    small = {"hours": 0.5, "history_hours": 1.0, "nodes": 64, "jobs": 40, **settings}
    return entry.build(entry.parameters(part=part, **small)).generate(np.random.default_rng(2))


def test_pipelines_link_the_jobs_of_e2e():
    """The same jobs; those with deadlines in chains of 2 to 5 that are submitted together."""
    made = pipelines("run")
    entry = find("generator", "e2e")
    bare = entry.build(entry.parameters(hours=0.5, history_hours=1.0, nodes=64, jobs=40)).generate(
        np.random.default_rng(2)
    )
    assert made.jobs.sort("job_id")["runtime_seconds"].equals(
        bare.jobs.sort("job_id")["runtime_seconds"]
    )
    jobs = {row["job_id"]: row for row in made.jobs.to_dicts()}
    ends = [row for row in jobs.values() if row["deadline_seconds"] is not None]
    linked = 0
    for end in ends:
        chain = [end]
        while chain[-1]["after_jobs"] is not None:
            chain.append(jobs[chain[-1]["after_jobs"]])
        assert len(chain) <= 5
        assert {row["submit_seconds"] for row in chain} == {end["submit_seconds"]}
        work = sum(row["runtime_seconds"] for row in chain)
        slack = (end["deadline_seconds"] - end["submit_seconds"]) / work - 1.0
        assert min(abs(slack - each) for each in (0.2, 0.4, 0.6, 0.8)) < 1e-6
        linked += len(chain)
    assert linked == bare.jobs["deadline_seconds"].is_not_null().sum()


def test_all_jobs_of_chains_are_run():
    """On nodes, in cycles: every job ends, each after the one that it waits for."""
    made = pipelines("run")
    policy = parse_policy("3sigma(end_to_end=yes),clairvoyant,exponential_increment")
    schedule = simulate_on_nodes(made, policy, conditions=ClusterConditions(cycle_seconds=20.0))
    done = schedule.jobs.filter(pl.col("ended_because") == "completed")
    assert sorted(done["job_id"]) == sorted(made.jobs["job_id"])
    times = {row["job_id"]: row for row in done.to_dicts()}
    for row in made.jobs.filter(pl.col("after_jobs").is_not_null()).to_dicts():
        before = times[row["after_jobs"]]["end_seconds"]
        assert times[row["job_id"]]["start_seconds"] >= before - 1e-9
