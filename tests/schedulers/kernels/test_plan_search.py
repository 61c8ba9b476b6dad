"""The search of plans by chance: never worse, never overdrawn, and as good as trying everything."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.schedulers._planning.problem import PlanChoice, Problem, left_by, value_of
from foresail.schedulers._planning.solving import search_plan
from foresail.schedulers.kernels.plan_filling import take_all

SLOTS = 3


@st.composite
def questions(draw):
    """A few jobs of one or two groups each on two sets, within the row of both; two victims."""
    groups = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    count = sum(groups)
    held = draw(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3),
                         min_size=count, max_size=count))  # fmt: skip
    worth = draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3),
                          min_size=count, max_size=count))  # fmt: skip
    room = draw(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3),
                         min_size=2, max_size=2))  # fmt: skip
    share = draw(st.sampled_from([0.5, 1.0, 2.0]))
    credit = draw(st.lists(st.integers(1, 4), min_size=2, max_size=2))
    consumption = np.sort(np.array(held, np.float64), axis=1)[:, ::-1] + [1.0, 0.0, 0.0]
    question = Problem(
        first_group=np.concatenate(([0], np.cumsum(groups))).astype(np.int64),
        group_set=np.arange(count, dtype=np.int64) % 2,
        consumption=np.ascontiguousarray(consumption),
        worth=np.array(worth, np.float64),
        cover=np.array([[1.0, share], [0.0, 1.0]]),
        capacity=np.array(room, np.float64),
        victim_cost=np.array([1.5, 2.5]),
        victim_credit=np.array(credit, np.float64)[:, None, None] * np.ones((2, 2, SLOTS)),
    )
    return question, question.capacity


def worth_and_room(ask, room, options, stopped):
    """Value and what is left of a plan, counted slowly."""
    left = room + ask.victim_credit[stopped].sum(axis=0)
    value = -ask.victim_cost[stopped].sum()
    for group, slot in options:
        if group >= 0:
            value += ask.worth[group, slot]
            for row, share in ask.rows[ask.group_set[group]]:
                if row >= 0:
                    left[int(row), slot:] -= share * ask.consumption[group, : SLOTS - slot]
    return value, left


def best_by_trying(ask, room):
    """The value of the best plan."""
    of_jobs = [
        [(-1, -1), *product(range(first, end), range(SLOTS))]
        for first, end in zip(ask.first_group[:-1], ask.first_group[1:], strict=True)
    ]
    best = 0.0
    for stopped in product([False, True], repeat=2):
        for options in product(*of_jobs):
            value, left = worth_and_room(ask, room, options, np.array(stopped))
            if value > best and left.min() >= 0.0:
                best = value
    return best


def searched(ask, enough, changes, patience, seed):
    """The plan that a search from nothing finds, and what it is worth."""
    plan, _ = search_plan(ask, PlanChoice.nothing(ask), (0.0, enough, changes, patience, 2), seed)
    return plan, value_of(ask, plan)


@settings(max_examples=40, deadline=None)
@given(questions(), st.integers(0, 99))
def test_keeps_its_books(asked, seed):
    """Value and what is left are what the plan says, and no row is overdrawn."""
    ask, room = asked
    plan, value = searched(ask, np.inf, 300, 300, seed)
    options = list(zip(plan.group.tolist(), plan.slot.tolist(), strict=True))
    counted, left = worth_and_room(ask, room, options, plan.stopped)
    assert value == pytest.approx(counted, abs=1e-9)
    assert left_by(ask, plan) == pytest.approx(left, abs=1e-9)
    assert left.min() >= -1e-6


def some_question(seed):
    """Three jobs of two groups each, and two victims."""
    random = np.random.default_rng(seed)
    held = np.sort(random.integers(0, 4, (6, SLOTS)), axis=1)[:, ::-1] + [1.0, 0.0, 0.0]
    worth = random.integers(0, 10, (6, SLOTS)).astype(np.float64)
    credit = random.integers(1, 4, (2, 1, 1)) * np.ones((2, 2, SLOTS))
    room = random.integers(0, 6, (2, SLOTS)).astype(np.float64)
    question = Problem(
        first_group=np.array([0, 2, 4, 6]),
        group_set=np.arange(6) % 2,
        consumption=np.ascontiguousarray(held),
        worth=worth,
        cover=np.array([[1.0, 1.0], [0.0, 1.0]]),
        capacity=room,
        victim_cost=np.array([1.5, 2.5]),
        victim_credit=credit,
    )
    return question, room


def test_finds_what_trying_everything_finds():
    """The best of four searches from nothing is the best plan of nearly all small questions."""
    found = []
    for seed in range(25):
        ask, room = some_question(seed)
        best = best_by_trying(ask, room)
        values = [searched(ask, best, 500, 500, leg)[1] for leg in range(4)]
        assert max(values) <= best + 1e-9
        found.append(max(values) == pytest.approx(best))
    assert sum(found) >= 24


@settings(max_examples=20, deadline=None)
@given(questions(), st.integers(0, 99))
def test_searches_are_never_worse(asked, seed):
    """However long a search is, it ends no worse than it begins; equal ones end equal."""
    ask, _ = asked
    values = [searched(ask, np.inf, changes, 10**9, seed)[1] for changes in (0, 5, 50, 50, 500)]
    assert values[0] == 0.0 <= min(values)
    assert values[2] == values[3]


@settings(max_examples=20, deadline=None)
@given(questions(), st.lists(st.integers(-1, 5), min_size=3, max_size=3))
def test_taking_all_is_counting_all(asked, chosen):
    """What a plan leaves, at once and job by job; any groups may be chosen for this."""
    ask, room = asked
    jobs = ask.first_group.size - 1
    groups = [min(group, ask.group_set.size - 1) for group in chosen[:jobs]]
    slots = [at % SLOTS if group >= 0 else -1 for at, group in enumerate(groups)]
    left = room.copy()
    group, slot = np.array(groups), np.array(slots)
    take_all(group, slot, ask.group_set, ask.consumption, ask.rows, left)
    options = list(zip(groups, slots, strict=True))
    assert left == pytest.approx(worth_and_room(ask, room, options, np.zeros(2, np.bool_))[1])


def test_stops_when_it_is_good_enough():
    """Two jobs fit, but the value of one is enough: the other is not looked for."""
    ask = Problem(
        np.array([0, 1, 2]), np.array([0, 0]), np.ones((2, 1)), np.array([[5.0], [5.0]]),
        np.array([[1.0]]), np.array([[2.0]]), np.empty(0), np.empty((0, 1, 1)),
    )  # fmt: skip
    plan = PlanChoice(np.array([0, -1]), np.array([0, -1]), np.empty(0, np.bool_))
    assert search_plan(ask, plan, (5.0, 5.0, 100, 100, 2), 1)[1] == 0
    assert value_of(ask, search_plan(ask, plan, (5.0, np.inf, 100, 100, 2), 1)[0]) == 10.0


def test_a_job_without_options_is_never_planned():
    """It is not given those of the job behind it."""
    ask = Problem(
        first_group=np.array([0, 0, 1, 1]),
        group_set=np.zeros(1, np.int64),
        consumption=np.ones((1, SLOTS)),
        worth=np.full((1, SLOTS), 5.0),
        cover=np.ones((1, 1)),
        capacity=np.full((1, SLOTS), 9.0),
        victim_cost=np.zeros(0),
        victim_credit=np.zeros((0, 1, SLOTS)),
    )
    plan, tried = search_plan(ask, PlanChoice.nothing(ask), (0.0, np.inf, 200, 200, 2), 1)
    assert (value_of(ask, plan), tried) == (5.0, 200)
    assert plan.group.tolist() == [-1, 0, -1]
