"""Jobs that want their tasks apart: at most one task in a failure domain in every slot."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.model.preference import Preference, PreferenceKind
from foresail.schedulers._planning.problem import left_by
from planning_problems import built, job, outcome, racks, running, view_of, waiting

SLOTS, SLOT = 3, 10.0
EXACT = (
    f"window_slots={SLOTS},slot_seconds={SLOT},relative_gap=0,hopeless_jobs=drop,"
    "cycle_seconds=60,preemption=no"
)
APART = Preference(PreferenceKind.SPREAD, ("rack",), 4.0)
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def planner(more="over_estimates=off"):
    """3Sigma's scheduler, planning until nothing better is left."""
    return built(f"3sigma({EXACT},{more})")


def apart(name, tasks, deadline=None):
    """A job that is four times slower unless each of its tasks is in another rack."""
    return job(name, tasks, 0.0, deadline, APART)


def test_a_full_rack_is_waited_for():
    """Three nodes are free, all in one rack: two tasks start apart when the other rack is."""
    busy = [running(job("r", 1), 15.0, ["n21"])]
    view = view_of(racks(3, 1), waiting((apart("a", 2, 35.0), 10.0)), busy)
    assert outcome(planner(), view)[0] == {"a": 20.0}


def test_racks_are_shared_task_by_task():
    """Of three racks with a node each, two jobs of two tasks take two racks one after the other."""
    view = view_of(racks(1, 1, 1), waiting((apart("a", 2, 40.0), 10.0), (apart("b", 2, 40.0), 10)))
    assert sorted(outcome(planner(), view)[0].values()) == [0.0, 10.0]
    both = view_of(racks(2, 1, 1), waiting((apart("a", 2, 40.0), 10.0), (apart("b", 2, 40.0), 10)))
    assert sorted(outcome(planner(), both)[0].values()) == [0.0, 0.0]


def test_other_jobs_leave_a_node_in_each_rack():
    """Four tasks that may be anywhere take two nodes of each rack: the third is for one apart."""
    view = view_of(
        racks(3, 3), waiting((job("wide", 4, 0.0, 30.0), 20.0), (apart("a", 2, 30.0), 20.0))
    )
    decision = planner().decide(view)
    placed = {each.job_id: each.placement for each in decision.starts}
    assert placed["a"].tasks_by_partition == (("r1", 1), ("r2", 1))
    assert sum(tasks for _, tasks in placed["wide"].tasks_by_node) == 4


def test_more_tasks_than_racks_run_slower():
    """Three tasks on two racks cannot be apart: the job runs where it is slow."""
    scheduler = planner()
    demands = scheduler.demands(view_of(racks(2, 2), waiting((apart("a", 3), 10.0))))
    assert [space.slowdown for space in demands.spaces] == [4.0]


def test_of_many_racks_the_free_ones_are_looked_at():
    """Twelve racks, of which three that are far from each other are free."""
    names = [f"n{rack}1" for rack in range(1, 10)]
    busy = [
        running(job(f"r{at}", 1), 500.0, [name], order=at)
        for at, name in enumerate(names)
        if name not in ("n11", "n51", "n91")
    ]
    view = view_of(racks(*[1] * 9), waiting((apart("a", 3, 20.0), 10.0)), busy)
    (start,) = planner().decide(view).starts
    assert start.placement.tasks_by_node == (("n11", 1), ("n51", 1), ("n91", 1))


drawn = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.integers(1, 9)),
    min_size=1,
    max_size=3,
)


def options_of(tasks, is_apart, sizes):
    """How many tasks each rack may hold of a job."""
    count = len(sizes)
    if is_apart:
        return [
            tuple(int(rack in chosen) for rack in range(count))
            for chosen in combinations(range(count), tasks)
        ]
    return [each for each in product(range(tasks + 1), repeat=count) if sum(each) == tasks]


def best_by_hand(jobs, sizes):
    """The most that jobs are worth whose tasks may move between racks from slot to slot."""
    best = 0.0
    for starts in product(range(-1, SLOTS), repeat=len(jobs)):
        holds = [
            [at for at, start in enumerate(starts) if 0 <= start <= slot < start + jobs[at][1]]
            for slot in range(SLOTS)
        ]
        each_fits = all(
            any(
                (np.sum(placed, axis=0) <= sizes).all()
                for placed in product(*(options_of(jobs[at][0], jobs[at][2], sizes) for at in some))
            )
            for some in holds
            if some
        )
        if each_fits:
            in_time = [
                at for at, start in enumerate(starts) if start >= 0 and start + jobs[at][1] <= SLOTS
            ]
            best = max(best, sum(jobs[at][3] for at in in_time))
    return best


@quick
@given(drawn, st.sampled_from([(1, 1), (2, 1), (1, 1, 1), (2, 1, 1), (3, 2, 1)]))
def test_spread_is_never_violated_and_no_plan_is_too_good(jobs, sizes):
    """Rows hold every task to its own rack; a plan is worth no more than the best by hand."""
    deadline = SLOTS * SLOT + 1e-3
    asked = [
        (apart(f"j{at}", tasks, deadline) if spread else job(f"j{at}", tasks, 0.0, deadline), slots)
        for at, (tasks, slots, spread, _) in enumerate(jobs)
    ]
    pending = waiting(*((each, SLOT * slots) for each, slots in asked))
    view = view_of(racks(*sizes), pending)
    scheduler = planner("over_estimates=off,slo_value=1")
    demands = scheduler.demands(view)
    solved = scheduler.solved(demands)
    worth_one = [(*each[:3], 1.0) for each in jobs]
    slower = any(space.slowdown > 1.0 for space in demands.spaces)
    best = best_by_hand(worth_one, sizes)
    if not slower or all(4 * slots > SLOTS for _, slots, spread, _ in jobs if spread):
        assert solved.value <= best + 1e-3
        assert solved.value == pytest.approx(best, abs=1e-3)
    assert left_by(demands.problem, solved.choice).min(initial=0.0) >= -1e-6
    decision = scheduler.decide(view)
    for start in decision.starts:
        at = int(start.job_id[1:])
        group = solved.choice.group[at]
        if jobs[at][2] and group >= 0 and demands.spaces[group].slowdown == 1.0:
            homes = [name[1] for name, _ in start.placement.tasks_by_node]
            assert len(set(homes)) == jobs[at][0]
