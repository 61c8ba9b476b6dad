"""Solved expressions: brute force on small ones, the published examples, limits and bad input."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from enumeration import register_enumeration
from foresail.milp.solver import Limits, Solution, Solver, SolveStatus, find_solver
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.registry import NoParameters, register
from foresail.strl.compiling import compile_expression, worths
from foresail.strl.expression import (
    Barrier,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    Supply,
    leaves,
)
from foresail.strl.solving import quick_plan, solve, trimmed
from long_series import of_a_series
from slow_evaluation import conflicts, evaluate
from strl.random_expressions import NODES, best_value, expressions

EXACT = Limits(relative_gap=0.0)
busy_nodes = st.dictionaries(st.sampled_from(NODES), st.integers(0, 4).map(float), max_size=3)


@pytest.fixture(autouse=True)
def _enumeration(_registry_as_shipped):
    register_enumeration()


def nodes(text):
    return frozenset(text.split())


def best(expression, supply, quantum=1.0, **options):
    return solve(expression, supply, quantum, limits=EXACT, **options)


def check_plan(solved, expression, supply):
    """What was solved can be carried out, is worth what it says, and gives nothing for nothing."""
    found = evaluate(expression, solved.allocation)
    assert found.value == pytest.approx(solved.value)
    assert conflicts(expression, solved.allocation, supply.busy_until) == ()
    assert found.counting == solved.allocation.keys()
    assert solved.bound >= solved.value >= solved.quick_value


@settings(max_examples=of_a_series(400, short=100))
@given(expressions(2), busy_nodes)
def test_the_best_plan_is_that_of_brute_force(expression, busy):
    """All seven operators, five nodes, some of them busy."""
    supply = Supply(frozenset(NODES), busy)
    expected = best_value(expression, busy)
    solved = best(expression, supply)
    assert solved.value == pytest.approx(expected)
    assert solved.gap < 1e-5  # rows are kept to a millionth
    check_plan(solved, expression, supply)


@settings(max_examples=100)
@given(expressions(3, most_children=2), busy_nodes)
def test_deep_expressions_are_solved_like_brute_force(expression, busy):
    """Operators three levels deep, whichever way the program is written."""
    supply = Supply(frozenset(NODES), busy)
    expected = best_value(expression, busy)
    assume(expected > 0.0)
    for formulation in ("tight", "published"):
        solved = best(expression, supply, formulation=formulation)
        assert solved.value == pytest.approx(expected)
        check_plan(solved, expression, supply)


@settings(max_examples=60)
@given(expressions(2, most_children=2), busy_nodes)
def test_enumeration_finds_the_same(expression, busy):
    """A second solver, which shares nothing with the first one."""
    supply = Supply(frozenset(NODES), busy)
    solved = best(expression, supply, solver="enumeration")
    assert solved.value == pytest.approx(best(expression, supply).value)
    check_plan(solved, expression, supply)


@settings(max_examples=150)
@given(expressions(3), busy_nodes)
def test_the_quick_plan_is_one(expression, busy):
    """Its columns keep all rows, and the program values them as the expression does."""
    compiled = compile_expression(expression, Supply(frozenset(NODES), busy), 1.0)
    values = compiled.values(quick_plan(compiled))
    assert compiled.program.admits(values)
    solved = solve(expression, Supply(frozenset(NODES), busy), 1.0)
    assert compiled.program.objective_of(values) == pytest.approx(solved.quick_value)


@settings(max_examples=200)
@given(expressions(3), st.lists(st.integers(0, 3), min_size=27, max_size=27))
def test_the_clean_up_keeps_the_worth(expression, amounts):
    """Whatever leaves were given: no more, worth the same, nothing to spare."""
    root = compile_expression(expression, Supply(frozenset(NODES)), 1.0).root
    asked = leaves(expression)
    given_ = [min(most, leaf.count) for most, leaf in zip(amounts, asked, strict=False)]
    kept = trimmed(root, given_)
    assert all(left <= had for left, had in zip(kept, given_, strict=True))
    before, after = worths(root, given_), worths(root, kept)
    assert after.get(root.number, 0.0) == pytest.approx(before.get(root.number, 0.0))
    assert trimmed(root, kept) == kept
    if not before.get(root.number):
        assert not any(kept)
    for number in range(len(kept)):
        if kept[number]:
            less = [*kept[:number], kept[number] - 1, *kept[number + 1 :]]
            assert worths(root, less).get(root.number, 0.0) < after[root.number]


A_AND_B = nodes("a b")


@pytest.mark.parametrize(
    "hopeless",
    [
        Minimum(tuple(NChooseK(nodes(each), 2, 0.0, 1.0, 10.0) for each in ("a b", "b c"))),
        Barrier(Sum((NChooseK(A_AND_B, 2, 0.0, 1.0, 5.0),) * 2), 10.0),
    ],
)
def test_the_quick_plan_gives_back_what_is_not_enough(hopeless):
    """Nodes tried for a job that cannot be served are free for the next one."""
    asked = Sum((hopeless, NChooseK(A_AND_B, 2, 0.0, 1.0, 1.0)))
    assert best(asked, Supply(nodes("a b c"))).quick_value == 1.0


# The published examples: spec tetrisched section 11.


def figure_4(starts_2=(0, 10, 20), starts_3=(0, 10)):
    """H1: three jobs on three nodes."""
    every = nodes("M1 M2 M3")
    return Sum(
        (
            NChooseK(every, 2, 0.0, 10.0, 1.0),
            Maximum(tuple(NChooseK(every, 1, float(s), 20.0, 1.0) for s in starts_2)),
            Maximum(tuple(NChooseK(every, 3, float(s), 10.0, 1.0) for s in starts_3)),
        )
    )


def test_figure_4():
    """H1: the model's published size, and the only plan that runs all three jobs."""
    expression, supply = figure_4(), Supply(nodes("M1 M2 M3"))
    solved = best(expression, supply, 10.0, formulation="published")
    assert (solved.size.columns, solved.size.rows) == (15, 13)
    compiled = compile_expression(expression, supply, 10.0, "published")
    assert (compiled.part_column >= 9).all()
    assert compiled.part_leaf.size == 6  # the published integers; the other 9 are indicators
    assert compiled.program.integer.all()
    assert solved.value == pytest.approx(3.0)
    held = {leaves(expression)[leaf].start_seconds for leaf in solved.allocation}
    assert list(solved.allocation) == [0, 3, 5]
    assert held == {0.0, 10.0, 20.0}
    assert len(solved.allocation[5]) == 3
    check_plan(solved, expression, supply)


def test_figure_4_without_planning_ahead():
    """H1, NP: with starts now alone, the first two jobs run and the third waits."""
    solved = best(figure_4((0,), (0,)), Supply(nodes("M1 M2 M3")), 10.0)
    assert solved.value == pytest.approx(2.0)
    assert list(solved.allocation) == [0, 1]


def test_slots_after_the_last_start_are_supplied():
    """Two long leaves with the last start must not both hold the only node."""
    one = nodes("a")
    expression = Sum(tuple(NChooseK(one, 1, 10.0, 50.0, 1.0) for _ in range(2)))
    for formulation in ("tight", "published"):
        assert best(expression, Supply(one), 10.0, formulation=formulation).value == 1.0


MACHINES = nodes("M1 M2 M3 M4")
RACK_1, RACK_2 = nodes("M1 M2"), nodes("M3 M4")


@pytest.mark.parametrize(
    ("busy", "value", "given"),
    [
        ("", 4.0, {0: RACK_1}),
        ("M1", 3.0, None),
        ("M1 M2", 3.0, {1: RACK_2}),
        ("M1 M2 M3", 0.0, {}),
    ],
)
def test_soft_constraint(busy, value, given):
    """H2: the GPU rack is worth 4, anywhere 3."""
    expression = Maximum((NChooseK(RACK_1, 2, 0.0, 2.0, 4.0), NChooseK(MACHINES, 2, 0.0, 3.0, 3.0)))
    supply = Supply(MACHINES, dict.fromkeys(busy.split(), 100.0))
    solved = best(expression, supply)
    assert solved.value == pytest.approx(value)
    assert given is None or solved.allocation == given
    check_plan(solved, expression, supply)


@pytest.mark.parametrize(
    ("busy", "until", "equal", "declining"),
    [
        ("", 0.0, 1.0, 0.998),
        ("M1 M2", 1.0, 1.0, 0.997),
        ("M1 M2 M3", 1.0, 1.0, 0.997),
        ("M1 M2 M3", 2.0, 0.0, 0.0),
    ],
)
def test_reservation(busy, until, equal, declining):
    """H3: a window of 3 for two nodes, 2 on the GPU rack or 3 anywhere."""

    def asked(value):
        wait = Maximum(tuple(NChooseK(RACK_1, 2, s, 2.0, value(s + 2.0)) for s in (0.0, 1.0)))
        return Maximum((NChooseK(MACHINES, 2, 0.0, 3.0, value(3.0)), wait))

    supply = Supply(MACHINES, dict.fromkeys(busy.split(), until))
    assert best(asked(lambda end: 1.0), supply).value == pytest.approx(equal)
    solved = best(asked(lambda end: 1.0 - 0.001 * end), supply)
    assert solved.value == pytest.approx(declining)
    if not busy:
        assert solved.allocation == {1: RACK_1}
    if busy == "M1 M2 M3" and equal:
        assert solved.allocation == {2: RACK_1}


@pytest.mark.parametrize(("busy", "value"), [("", 1.0), ("M3 M4", 0.0), ("M1 M3", 1.0)])
def test_one_task_per_rack(busy, value):
    """H4: availability."""
    expression = Minimum(tuple(NChooseK(rack, 1, 0.0, 3.0, 1.0) for rack in (RACK_1, RACK_2)))
    supply = Supply(MACHINES, dict.fromkeys(busy.split(), 9.0))
    solved = best(expression, supply)
    assert solved.value == pytest.approx(value)
    assert len(solved.allocation) == 2 * value
    if busy == "M1 M3":
        assert solved.allocation == {0: nodes("M2"), 1: nodes("M4")}


def three_jobs(starts):
    """H5: availability, MPI and GPU, each worth 10 less its end."""

    def leaf(where, count, start, duration):
        return NChooseK(where, count, float(start), float(duration), 10.0 - start - duration)

    available = Maximum(
        tuple(Minimum((leaf(RACK_1, 1, s, 3), leaf(RACK_2, 1, s, 3))) for s in starts)
    )
    mpi = [
        leaf(where, 2, s, time)
        for s in starts
        for where, time in ((RACK_1, 2), (RACK_2, 2), (MACHINES, 3))
    ]
    gpu = [leaf(where, 2, s, time) for s in starts for where, time in ((RACK_1, 2), (MACHINES, 3))]
    return available, Maximum(tuple(mpi)), Maximum(tuple(gpu))


@pytest.mark.parametrize(("starts", "value"), [(1, 16.0), (2, 16.0), (3, 21.0), (4, 21.0)])
def test_figure_1(starts, value):
    """H5: waiting for two slots lets all three jobs run where they like it."""
    solved = best(Sum(three_jobs(range(starts))), Supply(MACHINES), formulation="published")
    assert solved.value == pytest.approx(value)
    if starts == 4:
        assert (solved.size.columns, solved.size.rows) == (68, 52)


def test_figure_1_one_job_at_a_time():
    """H5: what each job is worth alone."""
    alone = [best(job, Supply(MACHINES)).value for job in three_jobs(range(4))]
    assert alone == pytest.approx([7.0, 8.0, 8.0])


@pytest.mark.parametrize(("slow", "starts", "value"), [(3, 7, 7.0), (5, 7, 6.0), (5, 1, 5.0)])
def test_wait_or_fall_back(slow, starts, value):
    """H6: the GPU rack is busy until 2; waiting pays only if the fallback is slow enough."""
    options = tuple(
        NChooseK(where, 2, float(s), float(time), 10.0 - s - time)
        for s in range(starts)
        for where, time in ((RACK_1, 2), (MACHINES, slow))
        if s + time <= 9
    )
    supply = Supply(MACHINES, {"M1": 2.0, "M2": 2.0})
    assert best(Maximum(options), supply).value == pytest.approx(value)


@pytest.mark.parametrize(("free", "value"), [(4, 8.0), (3, 6.0), (0, 0.0)])
def test_elastic_width(free, value):
    """H7: two for each node, up to four."""
    supply = Supply(MACHINES, dict.fromkeys(sorted(MACHINES)[free:], 5.0))
    solved = best(LinearNChooseK(MACHINES, 4, 0.0, 2.0, 8.0), supply)
    assert solved.value == pytest.approx(value)
    widths = Maximum(tuple(NChooseK(MACHINES, k, 0.0, 2.0, 2.0 * k) for k in range(1, 5)))
    assert best(widths, supply).value == pytest.approx(value)


RACKS = [frozenset(f"r{rack}n{node}" for node in range(3)) for rack in range(3)]


@pytest.mark.parametrize(
    ("free", "value"),
    [((2, 1, 1), 4.0), ((2, 2, 0), 4.0), ((3, 3, 0), 4.0), ((3, 1, 0), 0.0), ((3, 3, 3), 4.0)],
)
def test_at_most_so_many_per_rack(free, value):
    """H8: four servers, at most two in each rack; never more than four are given."""
    each = tuple(LinearNChooseK(rack, 2, 0.0, 1.0, 2.0) for rack in RACKS)
    expression = Barrier(Sum(each), 4.0)
    busy = {
        node: 9.0 for rack, left in zip(RACKS, free, strict=True) for node in sorted(rack)[left:]
    }
    supply = Supply(frozenset().union(*RACKS), busy)
    solved = best(expression, supply)
    assert solved.value == pytest.approx(value)
    assert sum(map(len, solved.allocation.values())) == value
    assert best(Scale(expression, 10.0), supply).value == pytest.approx(10.0 * value)
    check_plan(solved, expression, supply)


@pytest.mark.parametrize(("free_a", "free_b", "value"), [(2, 2, 2.0), (1, 2, 1.0), (1, 1, 0.0)])
def test_nodes_that_add_nothing_are_taken_back(free_a, free_b, value):
    """H9: where the first half of a ``min`` cannot be had, the second is not given either."""
    rack_a, rack_b, rack_c = nodes("a1 a2"), nodes("b1 b2"), nodes("c1")
    either = Maximum((NChooseK(rack_a, 2, 0.0, 1.0, 3.0), NChooseK(rack_b, 2, 0.0, 1.0, 1.0)))
    expression = Minimum((either, NChooseK(rack_c, 1, 0.0, 1.0, 2.0)))
    busy = dict.fromkeys([*sorted(rack_a)[free_a:], *sorted(rack_b)[free_b:]], 9.0)
    supply = Supply(rack_a | rack_b | rack_c, busy)
    solved = best(expression, supply)
    assert solved.value == pytest.approx(value)
    check_plan(solved, expression, supply)


# Time, supply, limits, bad input.


def test_durations_are_rounded_up():
    """A leaf of 11 s holds two slots of 10 s, one of exactly 10 s holds one."""
    one = nodes("a")

    def pair(duration):
        return Sum((NChooseK(one, 1, 0.0, duration, 1.0), NChooseK(one, 1, 10.0, 10.0, 1.0)))

    assert best(pair(10.0), Supply(one), 10.0).value == 2.0
    assert best(pair(11.0), Supply(one), 10.0).value == 1.0


def test_running_jobs_hold_their_nodes_to_the_end_of_the_slot():
    """A node that is free from 11 s on is not to be had in the slot from 10 s to 20 s."""
    one = nodes("a")
    asked = NChooseK(one, 1, 10.0, 10.0, 1.0)
    assert best(asked, Supply(one, {"a": 10.0}), 10.0).value == 1.0
    assert best(asked, Supply(one, {"a": 11.0}), 10.0).value == 0.0
    assert best(asked, Supply(one, {"a": math.inf}), 10.0).value == 0.0


def test_nodes_that_left_are_not_given():
    """A set may name nodes that are gone; the rest of it counts."""
    asked = LinearNChooseK(nodes("a b gone"), 3, 0.0, 1.0, 3.0)
    solved = best(asked, Supply(nodes("a b c")))
    assert solved.allocation == {0: nodes("a b")}
    assert best(NChooseK(nodes("gone"), 1, 0.0, 1.0, 1.0), Supply(nodes("a"))).allocation == {}


def test_named_nodes_are_kept_to_the_end():
    """A leaf in between takes nodes that neither an earlier nor a later leaf holds then."""
    every = nodes("a b c")
    asked = Sum(
        (
            NChooseK(every, 1, 0.0, 3.0, 1.0),
            NChooseK(every, 1, 0.0, 1.0, 1.0),
            NChooseK(every, 1, 1.0, 3.0, 1.0),
            NChooseK(every, 2, 3.0, 1.0, 1.0),
        )
    )
    supply = Supply(every, {"c": 2.0})
    solved = best(asked, supply)
    assert solved.value == pytest.approx(4.0)
    check_plan(solved, asked, supply)


def test_the_order_of_jobs_does_not_matter():
    """The best value is the same for every order of the sum's children."""
    jobs = three_jobs(range(3))
    values = {best(Sum(order), Supply(MACHINES)).value for order in permutations(jobs)}
    assert values == {21.0}


class _OutOfTime(Solver):
    """Never finds anything."""

    def __init__(self, parameters):
        pass

    def solve(self, program, limits, start=None):
        return Solution(SolveStatus.NOTHING_FOUND, None, -math.inf, math.inf, 0.0)


def test_a_solver_that_finds_nothing_leaves_the_quick_plan():
    """The answer says so, and its bound is what each job is worth alone."""
    register("solver", "out-of-time", NoParameters)(_OutOfTime)
    expression, supply = Sum(three_jobs(range(4))), Supply(MACHINES)
    solved = solve(expression, supply, 1.0, solver="out-of-time")
    assert solved.status == SolveStatus.NOTHING_FOUND
    assert solved.value == solved.quick_value > 0.0
    assert solved.bound == pytest.approx(7.0 + 8.0 + 8.0)
    check_plan(solved, expression, supply)


class _FarOff(Solver):
    """Says that giving nothing is best."""

    def __init__(self, parameters):
        pass

    def solve(self, program, limits, start=None):
        return Solution(SolveStatus.STOPPED, np.zeros(program.objective.size), 0.0, math.inf, 0.0)


def test_what_a_solver_leaves_over_is_filled():
    """A solver's plan is never worth less than the quick one, and free nodes are given away."""
    register("solver", "far-off", NoParameters)(_FarOff)
    expression, supply = Sum(three_jobs(range(4))), Supply(MACHINES)
    solved = solve(expression, supply, 1.0, solver="far-off")
    assert solved.value >= solved.quick_value > 0.0
    check_plan(solved, expression, supply)


def test_bad_input():
    """Each is answered with what was expected."""
    good = NChooseK(nodes("a"), 1, 0.0, 1.0, 1.0)
    with pytest.raises(InputError, match="starts before"):
        solve(NChooseK(nodes("a"), 1, -1.0, 1.0, 1.0), Supply(nodes("a")), 1.0)
    with pytest.raises(InputError, match="slot"):
        solve(good, Supply(nodes("a")), 0.0)
    with pytest.raises(UnknownNameError, match="solver"):
        solve(good, Supply(nodes("a")), 1.0, solver="none")


def test_no_nodes_at_all():
    """An empty cluster gives nothing, and says so with certainty."""
    solved = best(NChooseK(nodes("a"), 1, 0.0, 1.0, 1.0), Supply(frozenset()))
    assert (solved.value, solved.bound, solved.gap, solved.allocation) == (0.0, 0.0, 0.0, {})


def test_highs_takes_the_start():
    """Stopped at once, HiGHS still returns something at least as good as the quick plan."""
    expression = Sum(three_jobs(range(8)) * 12)
    compiled = compile_expression(expression, Supply(MACHINES), 1.0)
    start = compiled.values(quick_plan(compiled))
    found = find_solver("highs").solve(compiled.program, Limits(1e-6), start)
    assert found.objective >= compiled.program.objective_of(start) > 0.0
