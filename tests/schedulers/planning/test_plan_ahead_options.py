"""Jobs with STRL of their own: planned in their options, and nowhere else."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foresail.model.event import Submitted
from foresail.model.free_resources import Slowdowns
from foresail.model.job import DecayingValue
from foresail.model.preference import Preference, PreferenceKind, option_of
from foresail.record.log_text import parse_record, record_line
from foresail.record.records import EventTaken
from foresail.schedulers._planning.valuing import PlanAheadParameters
from foresail.strl.expression import (
    Barrier,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Sum,
    Supply,
    leaves,
)
from foresail.strl.own_requests import RequestPlaces, own_options
from foresail.strl.solving import solve
from planning_problems import built, job, outcome, racks, running, view_of, waiting
from strl.printed import format_expression
from strl.slow_evaluation import evaluate
from strl_shapes import Gang, StartWindow, either, unconstrained, within

SLOTS, SLOT = 4, 10.0
EXACT = f"window_slots={SLOTS},slot_seconds={SLOT},relative_gap=0,cycle_seconds=60"
CLUSTER = racks(2, 2, gpu=(1,))
NAMES = ("n11", "n12", "n21", "n22")
PLACES = RequestPlaces.on(CLUSTER)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def asking(name, text, tasks, deadline=None, submit=0.0):
    """A job of one-cpu tasks with a request of its own on the cluster of four nodes."""
    return replace(job(name, tasks, submit, deadline), options=own_options(text, tasks, PLACES))


def planner(more="preemption=no"):
    """TetriSched, planning until nothing better is left."""
    return built(f"tetrisched({EXACT},{more})")


def started_on(decision):
    """The nodes of every job that starts, by name."""
    return {
        each.job_id: {name for name, _ in each.placement.tasks_by_node} for each in decision.starts
    }


def test_three_jobs_by_hand():
    """Four nodes, n11 and n12 with a gpu; the runtimes are 20, 20 and 10 s where they are quickest.

    ======  ========  ========  ===========
    node    0 to 10   10 to 20  20 s on
    ======  ========  ========  ===========
    n11     a         a         c
    n12     a         a
    n21     b         b
    n22     b         b         c
    ======  ========  ========  ===========

    ``a`` has gpus for 4 (slower anywhere for 1), ``b`` may only run outside them; ``c`` has one
    task on each side, which both hold until 20 s.
    """
    a = asking("a", "max(nCk(gpu, 2, 0, 20, 4), nCk(all, 2, 0, 40, 1))", 2)
    b = asking("b", "nCk(all - gpu, 2, 0, 20, 3)", 2)
    c = asking("c", "min(nCk(gpu, 1, 0, 10, 2), nCk(rack.r2, 1, 0, 10, 2))", 2)
    view = view_of(CLUSTER, waiting((a, 20.0), (b, 20.0), (c, 10.0)))
    decision = planner().decide(view)
    assert started_on(decision) == {"a": {"n11", "n12"}, "b": {"n21", "n22"}}
    (later,) = decision.plan
    assert (later.job_id, later.start_seconds) == ("c", 20.0)
    assert later.placement.tasks_by_partition == (("r1", 1), ("r2", 1))
    then = planner().decide(view_of(CLUSTER, waiting((c, 10.0)), now=20.0))
    (start,) = then.starts
    assert start.placement.tasks_by_partition == (("r1", 1), ("r2", 1))


def test_a_job_waits_for_its_nodes_though_others_are_free():
    """Its two nodes are busy until 15 s, the two others are free and worth nothing to it."""
    one = asking("a", "nCk({n11, n12}, 2, 0, 10, 1)", 2)
    busy = running(job("r", 2), 15.0, ["n11", "n12"])
    assert outcome(planner(), view_of(CLUSTER, waiting((one, 10.0)), [busy]))[0] == {"a": 20.0}


def test_sets_within_a_kind_of_node_are_kept_to():
    """All nodes of a rack are alike but for their names, which is what two jobs ask for."""
    jobs = [(asking(f"j{at}", f"nCk({{n1{at}, n2{at}}}, 2, 0, 10, 1)", 2), 10.0) for at in (1, 2)]
    decision = planner().decide(view_of(CLUSTER, waiting(*jobs)))
    assert started_on(decision) == {"j1": {"n11", "n21"}, "j2": {"n12", "n22"}}


def test_starts_are_earliest_starts_and_hold_until_the_next():
    """Nothing before 20 s after submission, and from 30 s on nothing again: then it is dropped."""
    text = "max(nCk(all, 1, 20, 10, 5), nCk(all, 1, 30, 10, 0))"
    one = asking("a", text, 1, submit=100.0)
    decisions = {
        now: planner().decide(view_of(CLUSTER, waiting((one, 10.0)), now=now))
        for now in (100.0, 115.0, 120.0, 129.0, 130.0)
    }
    assert [len(each.starts) for each in decisions.values()] == [0, 0, 1, 1, 0]
    assert decisions[100.0].plan[0].start_seconds == 120.0
    assert [each.time for each in decisions[115.0].ticks] == [120.0]
    assert [each.job_id for each in decisions[130.0].withdrawals] == ["a"]


def test_a_start_beyond_the_window_is_waited_for():
    """It is not hopeless, though no slot of the plan is worth anything."""
    one = asking("a", "nCk(all, 1, 1h, 10, 5)", 1)
    for hopeless in ("drop", "run_on_leftovers"):
        decision = planner(f"hopeless_jobs={hopeless}").decide(
            view_of(CLUSTER, waiting((one, 10.0)))
        )
        assert not decision.starts
        assert not decision.withdrawals
        assert [each.time for each in decision.ticks] == [3600.0]


def test_a_deadline_is_kept_to():
    """The slow option would end too late: the job waits for the quick one, as long as that does."""
    one = asking("a", "max(nCk(gpu, 1, 0, 10, 1), nCk(all, 1, 0, 30, 1))", 1, deadline=25.0)
    busy, late = (
        running(job("r", 2), seconds, ["n11", "n12"], end=seconds) for seconds in (8.0, 18.0)
    )
    view = view_of(CLUSTER, waiting((one, 10.0)), [busy])
    assert outcome(planner(), view)[0] == {"a": 10.0}
    view = view_of(CLUSTER, waiting((one, 10.0)), [late])
    decision = planner("hopeless_jobs=drop").decide(view)
    assert not decision.plan
    assert not decision.starts


@pytest.mark.parametrize("kind", ["tetrisched", "3sigma"])
@pytest.mark.parametrize("deadline", [None, 45.0])
def test_what_would_have_been_generated_gets_the_same_plan(kind, deadline):
    """A job that says itself what is made of another's preference is planned as that is."""
    horizon = PlanAheadParameters().best_effort_horizon_seconds
    likes = Preference(PreferenceKind.ATTRIBUTE, ("gpu",), 2.0)
    value = DecayingValue(0.0, horizon) if deadline is None else DecayingValue(0.0, 1e12, 1000.0)
    gang = Gang(2, 20.0, value, StartWindow(0.0, (SLOTS - 1) * SLOT, SLOT))
    gpus, nodes = PLACES.sets["gpu"], PLACES.sets["all"]
    generated = either((within(gang, [gpus]), unconstrained(gang.slower(2.0), nodes)))
    own = asking("a", format_expression(generated), 2, deadline)
    told = job("a", 2, 0.0, deadline, likes)
    other = job("b", 2, 0.0, 60.0)
    scheduler = f"{kind}({EXACT},preemption=no,reservations=off,over_estimates=off)"
    for busy in (
        [],
        [running(job("r", 1), 15.0, ["n11"])],
        [running(job("r", 2), 35.0, ["n11", "n21"])],
    ):
        plans = [
            outcome(
                built(scheduler),
                view_of(CLUSTER, waiting((each, 20.0), (other, 20.0)), busy),
            )
            for each in (own, told)
        ]
        assert plans[0] == plans[1]


spots = st.sampled_from(["gpu", "all", "rack.r2", "{n11, n21}", "{n12}", "{n12, n21, n22}"])
leaf = st.tuples(spots, st.sampled_from([0, 10, 20]), st.integers(1, 9))
requests = st.lists(
    st.tuples(
        st.integers(1, 2),
        st.booleans(),
        st.lists(leaf, min_size=1, max_size=3, unique_by=lambda each: each[0]),
    ),
    min_size=1,
    max_size=3,
)


def text_of(tasks, is_apart, alternatives):
    """A request: one of the places, or a task in the first of them and the others in the second.

    Of two tasks that may be in more than two places, there is at most one in each.
    """
    if is_apart and tasks == 2 and len(alternatives) > 2:
        _, start, value = alternatives[0]
        parts = [f"LnCk({where}, 1, {start}, 20, {value})" for where, _, _ in alternatives]
        return f"sum({', '.join(parts)})"
    if is_apart and tasks == 2 and len(alternatives) > 1:
        (one, start, value), (other, _, less) = alternatives[:2]
        return f"min(nCk({one}, 1, {start}, 20, {value}), nCk({other}, 1, {start}, 20, {less}))"
    texts = [f"nCk({where}, {tasks}, {start}, 20, {value})" for where, start, value in alternatives]
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"


def spelled_out(options):
    """The options with a leaf for every start of the plan: what the language means by them."""
    choices = []
    for option, slot in product(options, range(SLOTS)):
        start = slot * SLOT
        value = option.value_at(start)
        if value and len(option.parts) > 2:
            parts = tuple(
                LinearNChooseK(frozenset(part.nodes), part.tasks, start, 20.0, value / 2)
                for part in option.parts
            )
            choices.append(Barrier(Sum(parts), value))
        elif value:
            parts = tuple(
                NChooseK(frozenset(part.nodes), part.tasks, start, 20.0, value)
                for part in option.parts
            )
            choices.append(parts[0] if len(parts) == 1 else Minimum(parts))
    return Maximum(tuple(choices))


@quick
@given(requests, st.sets(st.sampled_from(NAMES), max_size=2))
def test_plans_are_worth_what_the_language_says(asked, busy):
    """No less than the best allocation of all requests, and each start is one that counts there."""
    jobs = [asking(f"j{at}", text_of(*each), each[0]) for at, each in enumerate(asked)]
    held = [running(job(f"r{name}", 1), 15.0, [name], order=at) for at, name in enumerate(busy)]
    view = view_of(CLUSTER, waiting(*((each, 20.0) for each in jobs)), held)
    scheduler = planner()
    solved = scheduler.solved(scheduler.demands(view))
    trees = [spelled_out(each.options) for each in jobs]
    best = solve(Sum(tuple(trees)), Supply(frozenset(NAMES), dict.fromkeys(busy, 15.0)), SLOT)
    assert solved.value >= best.value * (1.0 - 1e-4)
    found = planner().decide(view)
    for start in found.starts:
        at = int(start.job_id[1:])
        nodes = [name for name, _ in start.placement.tasks_by_node]
        worth_something = [each for each in jobs[at].options if each.value_at(0.0) > 0.0]
        option = option_of(worth_something, start.placement.places)
        assert option is not None
        assert worth_now(trees[at], nodes) >= option.value_at(0.0)


def worth_now(tree, nodes):
    """What the language makes of nodes that are given at once, whichever leaf is given which."""
    numbers = [at for at, each in enumerate(leaves(tree)) if each.start_seconds == 0.0]
    ways = product(*[[None, *numbers]] * len(nodes))
    allocations = (
        {
            number: frozenset(node for node, leaf in zip(nodes, way, strict=True) if leaf == number)
            for number in numbers
            if number in way
        }
        for way in ways
    )
    return max(evaluate(tree, each).value for each in allocations)


def test_a_job_runs_as_long_as_its_option_says():
    """Three times as long where it says so; the quickest of the options that a placement is of."""
    one = asking("a", "max(nCk(gpu, 1, 0, 10, 4), nCk(all, 1, 0, 30, 1))", 1)
    slow, fast = (running(one, 10.0, [node]).placement for node in ("n21", "n11"))
    assert [Slowdowns(CLUSTER).factor(one, each) for each in (slow, fast)] == [3.0, 1.0]


def test_what_a_log_tells_of_options_is_read_back():
    """A job with options, as a recovered run finds it; one without says nothing of them."""
    event = Submitted(3.0, asking("a", "min(nCk(gpu, 1, 0, 10, 4), nCk(r2, 1, 0, 10, 2))", 2))
    line = record_line(EventTaken(1, 3.0, event))
    assert parse_record(line, "log", 1).event == event
    assert "options" not in record_line(EventTaken(1, 3.0, Submitted(3.0, job("b", 1))))


def test_a_scheduler_goes_on_from_what_it_remembers():
    """What tells nodes apart goes into the memory: another one decides the same from there."""
    jobs = waiting((asking("a", "nCk({n11, n21}, 2, 0, 10, 1)", 2), 10.0), (job("b", 4), 30.0))
    busy = [running(job("r", 1), 15.0, ["n11"])]
    first = planner()
    first.decide(view_of(CLUSTER, jobs, busy))
    later = replace(view_of(CLUSTER, jobs, busy, now=4.0), cluster=CLUSTER)
    second = planner()
    second.remember(first.memory(), CLUSTER)
    assert second.decide(later) == first.decide(later)
    assert second.memory() == first.memory()


def test_at_most_so_many_tasks_a_rack():
    """Three tasks, at most two a rack: three free nodes in one rack do not do.

    The other rack's node is free from 15 s on; from then on there is one way only.
    """
    cluster = racks(3, 1)
    text = "sum(LnCk(r1, 2, 0, 10, 2), LnCk(r2, 2, 0, 10, 2))"
    options = own_options(text, 3, RequestPlaces.on(cluster))
    one = replace(job("a", 3), options=options)
    busy = running(job("r", 1), 15.0, ["n21"])
    assert outcome(planner(), view_of(cluster, waiting((one, 10.0)), [busy]))[0] == {"a": 20.0}
    (start,) = planner().decide(view_of(cluster, waiting((one, 10.0)), now=20.0)).starts
    assert start.placement.tasks_by_partition == (("r1", 2), ("r2", 1))


def test_of_many_racks_those_with_room_are_looked_at():
    """At most two tasks in each of twelve racks of three, of which three have two, one, one."""
    cluster = racks(*[3] * 12)
    racks_of_two = ", ".join(f"LnCk(r{rack}, 2, 0, 10, 2)" for rack in range(1, 13))
    options = own_options(f"sum({racks_of_two})", 4, RequestPlaces.on(cluster))
    free = {"n21", "n22", "n71", "n121"}
    busy = [
        running(job(f"r{at}", 1), 500.0, [name], order=at)
        for at, name in enumerate(sorted(set(RequestPlaces.on(cluster).names) - free))
    ]
    one = replace(job("a", 4), options=options)
    (start,) = planner().decide(view_of(cluster, waiting((one, 10.0)), busy)).starts
    assert {name for name, _ in start.placement.tasks_by_node} == free
