"""Plans with memory and gpus: by hand, against all that could be planned, and on real nodes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.distributions.empirical import Empirical
from foresail.model.cluster import Resources
from foresail.schedulers._planning.problem import left_by, value_of
from planning_problems import built, job, nodes, outcome, racks, running, view_of, waiting

SLOTS, SLOT = 4, 10.0
EXACT = (
    f"window_slots={SLOTS},slot_seconds={SLOT},relative_gap=0,hopeless_jobs=drop,cycle_seconds=60"
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
beliefs = st.one_of(
    st.integers(1, 50).map(float),
    st.lists(st.integers(1, 50).map(float), min_size=2, max_size=4).map(Empirical),
)
requests = st.builds(
    Resources,
    st.integers(1, 3).map(float),
    st.integers(0, 4).map(float),
    st.integers(0, 2).map(float),
)
asked = st.lists(
    st.tuples(st.integers(1, 3), st.one_of(st.none(), st.integers(10, 90)), requests, beliefs),
    min_size=1,
    max_size=4,
)


def scheduler(more="preemption=no"):
    """3Sigma's scheduler, planning until nothing better is left."""
    return built(f"3sigma({EXACT},{more})")


def gang(name, tasks, *request, deadline=None):
    """Tasks that ask for cpus, memory and gpus."""
    return job(name, tasks, deadline=deadline, request=Resources(*map(float, request)))


def jobs_of(drawn):
    """Waiting jobs as drawn."""
    return waiting(
        *(
            (job(f"j{at}", tasks, deadline=deadline, request=request), belief)
            for at, (tasks, deadline, request, belief) in enumerate(drawn)
        )
    )


@pytest.mark.parametrize(
    ("node", "task"),
    [((8, 16, 1), (1, 0, 1)), ((8, 16, 0), (1, 12, 0)), ((8, 16, 2), (1, 9, 1))],
    ids=["gpus", "memory", "both"],
)
def test_jobs_that_share_no_node_follow_each_other(node, task):
    """For cpus alone there would be room for both at once."""
    view = view_of(
        nodes(a=node),
        waiting((gang("first", 1, *task), 20.0), (gang("next", 1, *task), 20.0)),
    )
    assert outcome(scheduler(), view)[0] == {"first": 0.0, "next": 20.0}


def test_a_gpu_waits_for_the_job_that_has_it():
    """Who holds the only gpu is expected to do so until it ends, whatever cpus are free."""
    busy = running(gang("r", 1, 1, 0, 1), 25.0, ["a"])
    asking = waiting((gang("gpu", 1, 1, 0, 1), 5.0), (gang("cpu", 1, 4, 0, 0), 5.0))
    starts, _ = outcome(scheduler(), view_of(nodes(a=(8, 0, 1)), asking, [busy]))
    assert starts == {"cpu": 0.0, "gpu": 30.0}


def test_gpus_come_with_the_cpus_of_their_nodes():
    """Two cpus are free beside the gpu and two elsewhere: not four for a job that wants the gpu."""
    view = view_of(
        nodes(a=(2, 0, 1), b=(2, 0, 0)),
        waiting((gang("wide", 2, 2, 0, 0), 10.0), (gang("gpu", 1, 2, 0, 1), 10.0)),
    )
    starts, _ = outcome(scheduler(), view)
    assert starts == {"wide": 0.0, "gpu": 10.0} or starts == {"gpu": 0.0, "wide": 10.0}


def test_memory_of_large_nodes_goes_to_who_needs_it():
    """The small job leaves the large node to the one that fits nowhere else."""
    view = view_of(
        nodes(a=(1, 64, 0), b=(1, 8, 0)),
        waiting((gang("small", 1, 1, 8, 0), 20.0), (gang("large", 1, 1, 60, 0), 20.0)),
    )
    decision = scheduler().decide(view)
    placed = {each.job_id: each.placement.tasks_by_node for each in decision.starts}
    assert placed == {"small": (("b", 1),), "large": (("a", 1),)}


def test_gpus_on_two_nodes_are_not_those_of_one():
    """Four and four are free: no task of eight starts now, and another takes four of them."""
    busy = [running(gang(f"r{name}", 1, 1, 0, 4), 15.0, [name], order=at) for at, name in
            enumerate("ab")]  # fmt: skip
    asking = waiting((gang("whole", 1, 1, 0, 8), 10.0), (gang("half", 1, 1, 0, 4), 10.0))
    starts, _ = outcome(scheduler(), view_of(nodes(a=(8, 0, 8), b=(8, 0, 8)), asking, busy))
    assert starts["half"] == 0.0 < starts["whole"]


def test_a_job_is_stopped_for_its_memory():
    """Cpus are free; the memory is given back by the one that is stopped."""
    busy = running(gang("be", 1, 1, 60, 0), 300.0, ["a"], start=-5.0)
    asking = waiting((gang("slo", 1, 1, 60, 0, deadline=30.0), 20.0))
    view = view_of(nodes(a=(8, 64, 0)), asking, [busy])
    assert outcome(built(f"3sigma({EXACT})"), view)[1] == ["be"]
    other = view_of(nodes(a=(8, 128, 0)), asking, [busy])
    assert outcome(built(f"3sigma({EXACT})"), other) == ({"slo": 0.0}, [])


def test_only_rows_that_are_asked_for():
    """Memory and gpus of the cluster alone make no rows."""
    cluster = nodes(a=(4, 8, 1), b=(4, 8, 0))
    asking = waiting((gang("a", 1, 1, 0, 0), 5.0))
    assert scheduler().demands(view_of(cluster, asking)).resources == (0,)
    asking = waiting((gang("a", 1, 1, 1, 0), 5.0), (gang("b", 1, 1, 0, 1), 5.0))
    assert scheduler().demands(view_of(cluster, asking)).resources == (0, 1, 2)


def overlapping(starts, runtimes, slot):
    """Jobs that hold their nodes in a slot."""
    return [at for at, start in enumerate(starts) if 0 <= start <= slot
            and (start == slot or slot - start < runtimes[at] / SLOT)]  # fmt: skip


def best_on_one_node(problem, jobs, room):
    """The most that starts are worth, by trying all that leave every resource in every slot."""
    runtimes = [each.prediction.mean() for each in jobs]
    needs = np.array([[each.job.total.cpus, each.job.total.memory_bytes, each.job.total.gpus]
                      for each in jobs])  # fmt: skip
    best = 0.0
    for starts in product(range(-1, SLOTS), repeat=len(jobs)):
        groups = problem.first_group[:-1]
        options = [
            (group, start) for group, start, end in zip(groups, starts, problem.first_group[1:],
                                                         strict=True) if start >= 0 and end > group
        ]  # fmt: skip
        if len(options) < sum(start >= 0 for start in starts):
            continue
        holds = [overlapping(starts, runtimes, slot) for slot in range(SLOTS)]
        if all((needs[each].sum(axis=0) <= room).all() for each in holds):
            best = max(best, sum(problem.worth[group, start] for group, start in options))
    return best


@quick
@given(
    st.lists(
        st.tuples(
            st.just(1),
            st.one_of(st.none(), st.integers(10, 90)),
            requests,
            st.integers(1, 50).map(float),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_plans_of_one_node_are_the_best_there_are(drawn):
    """Value and bound meet at the best of all schedules in which cpus, memory and gpus suffice."""
    view = view_of(nodes(a=(4, 5, 2)), jobs_of(drawn))
    planner = scheduler()
    asking = planner.demands(view)
    best = best_on_one_node(asking.problem, view.pending, np.array([4.0, 5.0, 2.0]))
    solved = planner.solved(asking)
    assert solved.value == pytest.approx(best, rel=1e-4, abs=1e-6)
    assert solved.bound >= best - 1e-6 * max(best, 1.0)


CLUSTERS = [
    nodes(a=(4, 5, 2), b=(4, 5, 2), c=(4, 5, 2)),
    nodes(a=(4, 8, 2), b=(4, 2, 0), c=(2, 16, 1), d=(8, 4, 0)),
    nodes(a=(2, 4, 0), b=(6, 4, 3)),
]


def drawn_view(drawn, cluster, held):
    """A view in which a few jobs run that hold as much as fits where they are."""
    each = [node for partition in cluster.partitions for node in partition.nodes]
    busy = [
        running(job(f"r{at}", 1, request=request), belief, [node.name], order=at)
        for at, ((request, belief), node) in enumerate(zip(held, each, strict=False))
        if request.fits_in(node.total)
    ]
    return view_of(cluster, jobs_of(drawn), busy)


@quick
@given(asked, st.sampled_from(CLUSTERS), st.lists(st.tuples(requests, beliefs), max_size=4))
def test_nothing_is_held_twice(drawn, cluster, held):
    """In every slot, jobs and running jobs are expected to hold no more than there is of anything.

    Starts now get nodes with enough of it, all of them.
    """
    view = drawn_view(drawn, cluster, held)
    planner = scheduler()
    asking = planner.demands(view)
    choice = planner.solved(asking).choice
    assert left_by(asking.problem, choice).min(initial=0.0) >= -1e-6
    whole = cluster.total
    for slot in range(SLOTS):
        expected = np.zeros(3)
        for at in choice.planned.tolist():
            if choice.slot[at] <= slot:
                total = view.pending[at].job.total
                consumption = asking.problem.consumption[choice.group[at]]
                share = consumption[slot - choice.slot[at]] / total.cpus
                expected += share * np.array([total.cpus, total.memory_bytes, total.gpus])
        for each in view.running:
            share = each.prediction.survival(slot * SLOT) if slot else 1.0
            total = each.job.total
            expected += share * np.array([total.cpus, total.memory_bytes, total.gpus])
        assert (expected <= np.array([whole.cpus, whole.memory_bytes, whole.gpus]) + 1e-6).all()
    decision = planner.decide(view)
    free = dict(view.free_nodes)
    for start in decision.starts:
        request = next(each.job for each in view.pending if each.job.job_id == start.job_id)
        for name, tasks in start.placement.tasks_by_node:
            free[name] -= request.stages[0].request * tasks
    assert all(min(room.cpus, room.memory_bytes, room.gpus) >= -1e-6 for room in free.values())
    assert all(each.start_seconds > view.now for each in decision.plan)


@quick
@given(asked, st.sampled_from(CLUSTERS))
def test_search_and_program_agree(drawn, cluster):
    """A plan is worth no more than its bound, and no less than greedy's."""
    planner = scheduler()
    asking = planner.demands(drawn_view(drawn, cluster, []))
    solved = planner.solved(asking)
    assert solved.greedy_value - 1e-9 <= solved.value <= solved.bound * (1 + 1e-9) + 1e-9
    assert solved.value == pytest.approx(value_of(asking.problem, solved.choice))


def test_placing_in_order_knows_them_too():
    """One by one: the second gpu job follows the first."""
    asking = waiting((gang("first", 1, 1, 4, 1), 20.0), (gang("next", 1, 1, 4, 1), 20.0))
    for size in ((8, 64, 1), (8, 6, 2)):
        view = view_of(nodes(a=size), asking)
        assert outcome(scheduler("placing=in_order"), view)[0] == {"first": 0.0, "next": 20.0}


def test_a_job_without_cpus_is_planned():
    """It holds its gpu only."""
    asking = waiting((gang("first", 1, 0, 0, 1), 20.0), (gang("next", 1, 0, 0, 1), 20.0))
    starts, _ = outcome(scheduler(), view_of(nodes(a=(8, 0, 1)), asking))
    assert starts == {"first": 0.0, "next": 20.0}


def test_pools_have_memory_too():
    """Partitions without named nodes are held to their memory as a whole."""
    cluster = racks(4)
    whole = Resources(4.0, 10.0)
    pool = type(cluster)((type(cluster.partitions[0])("all", whole),))
    asking = waiting((gang("first", 2, 1, 4, 0), 20.0), (gang("next", 2, 1, 4, 0), 20.0))
    assert outcome(scheduler(), view_of(pool, asking))[0] == {"first": 0.0, "next": 20.0}
