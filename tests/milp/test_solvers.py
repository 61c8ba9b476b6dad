"""Programs and their solvers: HiGHS against enumeration, limits, warm starts, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enumeration import register_enumeration
from foresail.milp.solver import (
    Limits,
    Program,
    ProgramBuilder,
    SolveStatus,
    find_solver,
    relative_gap,
)
from foresail.model.errors import InputError, UnknownNameError


@pytest.fixture(autouse=True)
def _enumeration(_registry_as_shipped):
    register_enumeration()


def knapsack(worth, weights, capacity, most=1.0):
    """Take whole pieces up to a weight."""
    builder = ProgramBuilder()
    columns = builder.add_columns(0.0, most, True, worth)
    row = builder.add_rows(-math.inf, capacity)
    builder.add_entries(np.repeat(row, columns.size), columns, weights)
    return builder.build()


@st.composite
def programs(draw):
    """Two to five whole columns, up to four rows of every kind; some programs are infeasible."""
    columns = draw(st.integers(2, 5))
    rows = draw(st.integers(0, 4))
    small = st.integers(-4, 4).map(float)
    builder = ProgramBuilder()
    lower = np.array(draw(st.lists(st.integers(-2, 1), min_size=columns, max_size=columns)))
    builder.add_columns(
        lower,
        lower + draw(st.integers(0, 3)),
        True,
        draw(st.lists(small, min_size=columns, max_size=columns)),
    )
    for _ in range(rows):
        upper = draw(st.one_of(st.just(math.inf), st.integers(-3, 6).map(float)))
        low = draw(st.sampled_from([-math.inf, upper if upper < math.inf else -2.0]))
        row = builder.add_rows(low, upper)
        factors = draw(st.lists(small, min_size=columns, max_size=columns))
        builder.add_entries(np.repeat(row, columns), np.arange(columns), factors)
    return builder.build()


@settings(max_examples=150)
@given(programs())
def test_highs_agrees_with_enumeration(program):
    """The same status and optimum, and values that keep every bound and row."""
    by_highs = find_solver("highs").solve(program, Limits(relative_gap=0.0))
    by_hand = find_solver("enumeration").solve(program, Limits())
    assert by_highs.status == by_hand.status
    assert by_highs.objective == pytest.approx(by_hand.objective)
    if by_highs.status == SolveStatus.OPTIMAL:
        assert program.admits(by_highs.values)
        assert program.admits(by_hand.values)
        assert by_highs.gap == by_hand.gap == 0.0
        assert by_highs.bound == pytest.approx(by_hand.objective)


@pytest.mark.parametrize("name", ["highs", "enumeration"])
def test_a_knapsack(name):
    """Worth 10, 7 and 6 at weights 5, 4 and 3, with room for 7: the last two."""
    solution = find_solver(name).solve(knapsack([10.0, 7.0, 6.0], [5.0, 4.0, 3.0], 7.0), Limits())
    assert solution.status == SolveStatus.OPTIMAL
    assert solution.objective == pytest.approx(13.0)
    assert np.round(solution.values).tolist() == [0.0, 1.0, 1.0]


def hard_program():
    """A market-split problem, on which branch and bound takes far longer than a test may."""
    random = np.random.default_rng(3)
    weights = random.integers(1, 100, (5, 40)).astype(float)
    builder = ProgramBuilder()
    columns = builder.add_columns(0.0, 1.0, True)
    columns = np.concatenate([columns, builder.add_columns(np.zeros(39), 1.0, True)])
    rows = builder.add_rows(np.floor(weights.sum(1) / 2), np.floor(weights.sum(1) / 2))
    builder.add_entries(np.repeat(rows, 40), np.tile(columns, 5), weights.ravel())
    return builder.build()


@pytest.mark.parametrize("name", ["highs", "enumeration"])
def test_out_of_time_with_nothing(name):
    """The result says that nothing was found; no exception, and no claim of infeasibility."""
    solution = find_solver(name).solve(hard_program(), Limits(time_limit_seconds=0.3))
    assert solution.status == SolveStatus.NOTHING_FOUND
    assert solution.values is None
    assert solution.objective == -math.inf
    assert solution.gap == math.inf
    assert solution.seconds < 3.0


@pytest.mark.parametrize("name", ["highs", "enumeration"])
def test_a_start_is_kept_when_time_runs_out(name):
    """With the time of one look, the answer is at least as good as what it began from."""
    random = np.random.default_rng(4)
    weights = random.integers(1000, 9999, 60).astype(float)
    program = knapsack(weights + random.integers(0, 20, 60), weights, weights.sum() / 2 + 0.5)
    taken = np.cumsum(weights) <= weights.sum() / 2
    start = taken.astype(float)
    limits = Limits(time_limit_seconds=0.001, relative_gap=0.0)
    solution = find_solver(name).solve(program, limits, start)
    assert solution.status in (SolveStatus.STOPPED, SolveStatus.OPTIMAL)
    assert solution.objective >= program.objective_of(start)
    assert solution.bound >= solution.objective


def test_other_threads_before_do_not_make_highs_fail():
    """HiGHS's workers, started by somebody for two threads, are started anew."""
    import highspy

    other = highspy.Highs()
    other.setOptionValue("output_flag", False)
    other.setOptionValue("threads", 2)
    other.addVar(0.0, 1.0)
    other.run()
    solution = find_solver("highs").solve(knapsack([1.0], [1.0], 1.0), Limits())
    assert solution.status == SolveStatus.OPTIMAL


def test_programs_without_integers_rows_or_columns():
    """The corner cases are answered like any other."""
    builder = ProgramBuilder()
    builder.add_columns(0.0, 2.5, False, 2.0)
    smooth = builder.build()
    solution = find_solver("highs").solve(smooth, Limits())
    assert (solution.status, solution.objective, solution.bound) == (SolveStatus.OPTIMAL, 5.0, 5.0)
    empty = find_solver("highs").solve(ProgramBuilder().build(), Limits())
    assert (empty.status, empty.objective) == (SolveStatus.OPTIMAL, 0.0)


def test_unbounded():
    """No best is a status of its own."""
    builder = ProgramBuilder()
    builder.add_columns(0.0, math.inf, True, 1.0)
    solution = find_solver("highs").solve(builder.build(), Limits())
    assert solution.status == SolveStatus.UNBOUNDED


def test_the_builder_adds_up_and_sorts():
    """Entries of one place add up, zeros vanish, the objective takes later additions."""
    builder = ProgramBuilder()
    columns = builder.add_columns(0.0, [1.0, 1.0, 5.0], [True, True, False], 1.0)
    rows = builder.add_rows([0.0, -math.inf], 3.0)
    builder.add_entries(rows[[1, 0, 1, 0, 0]], columns[[2, 1, 2, 0, 0]], [1.0, 4.0, 2.0, 1.0, -1.0])
    builder.add_objective(columns[[0, 0]], [1.0, 2.0])
    program = builder.build()
    assert program.objective.tolist() == [4.0, 1.0, 1.0]
    assert program.row_starts.tolist() == [0, 1, 2]
    assert program.entry_columns.tolist() == [1, 2]
    assert program.entry_values.tolist() == [4.0, 3.0]
    size = program.size
    assert (size.columns, size.integers, size.binaries, size.rows, size.entries) == (3, 2, 2, 2, 2)
    assert program.rows_of(np.array([1.0, 1.0, 1.0])).tolist() == [4.0, 3.0]
    assert not program.admits(np.array([0.0, 1.0, 1.0]))
    assert program.admits(np.array([0.0, 0.0, 1.0]))
    assert not program.admits(np.array([0.5, 0.0, 1.0]))


def test_a_malformed_program_is_refused():
    """Entries outside of the program, and numbers that are none."""
    builder = ProgramBuilder()
    builder.add_columns(0.0, 1.0, True)
    builder.add_entries(0, 0, 1.0)
    with pytest.raises(ValueError, match="none of the 0 rows"):
        builder.build()
    good = knapsack([1.0], [1.0], 1.0)
    parts = {name: getattr(good, name) for name in Program.__dataclass_fields__}
    with pytest.raises(ValueError, match="finite"):
        Program(**parts | {"objective": np.array([math.nan])})
    with pytest.raises(ValueError, match="columns"):
        Program(**parts | {"entry_columns": np.array([7])})


def test_enumeration_says_what_it_does_not_take():
    """A column without an upper bound cannot be tried through."""
    builder = ProgramBuilder()
    builder.add_columns(0.0, math.inf, True, 1.0)
    with pytest.raises(InputError, match="finite bounds"):
        find_solver("enumeration").solve(builder.build(), Limits())


def test_a_relaxation_grows():
    """Halves of a knapsack with prices; a better column is added, and the price rises."""
    solver = find_solver("highs")
    relaxation = solver.relaxation(knapsack([10.0, 6.0], [5.0, 4.0], 7.0))
    first = relaxation.solve()
    assert first.objective == pytest.approx(13.0)
    assert first.values == pytest.approx([1.0, 0.5])
    assert first.prices == pytest.approx([1.5])
    relaxation.add_columns(
        np.array([9.0]), np.array([1.0]), np.array([0, 1]), np.array([0]), np.array([3.0])
    )
    second = relaxation.solve(10.0)
    assert second.objective == pytest.approx(9.0 + 8.0)
    assert second.values == pytest.approx([0.8, 0.0, 1.0])
    assert second.prices == pytest.approx([2.0])


def test_a_relaxation_without_values():
    """Says why, and that no bound is known."""
    relaxation = find_solver("highs").relaxation(knapsack([1.0], [1.0], -1.0))
    solution = relaxation.solve()
    assert (solution.status, solution.values, solution.prices) == (
        SolveStatus.INFEASIBLE,
        None,
        None,
    )


def test_bad_limits_and_names():
    """Each is answered with what was expected."""
    with pytest.raises(InputError, match="above 0"):
        Limits(time_limit_seconds=0.0)
    with pytest.raises(InputError, match="0 or above"):
        Limits(relative_gap=math.nan)
    with pytest.raises(UnknownNameError, match="did you mean 'highs'"):
        find_solver("high")


def test_gaps():
    """Relative to the objective; infinite where the objective is none or 0."""
    assert relative_gap(8.0, 10.0) == pytest.approx(0.25)
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, 1.0) == math.inf
    assert relative_gap(-math.inf, 1.0) == math.inf
