"""Sums of jobs that may have ended: against all that can happen."""

from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.schedulers.kernels.plan_filling import add_job, add_running, fill_within_risk

add = numba.njit(lambda *given: add_job(*given))
jobs = st.lists(st.tuples(st.integers(0, 40).map(lambda n: n / 8), st.floats(0.0, 1.0)), max_size=6)


def slow_cumulative(some, most):
    """Probability of a sum of at most 0, 1, ..., by going through all that can happen.

    What is held of part of a unit is one unit more with the chance of that part.
    """
    outcomes = []
    for held, chance in some:
        whole, part = divmod(held, 1.0)
        outcomes.append(
            [(0, 1.0 - chance), (whole, chance * (1.0 - part)), (whole + 1, chance * part)]
        )
    total = np.zeros(most + 1)
    for each in product(*outcomes):
        units = int(sum(held for held, _ in each))
        total[units:] += np.prod([chance for _, chance in each])
    return total


@settings(max_examples=60, deadline=None)
@given(jobs, st.integers(0, 12))
def test_sums_are_exact(some, most):
    """A sum of independent jobs, whatever part of a unit they hold."""
    cumulative = np.ones(most + 1)
    for held, chance in some:
        add(cumulative, most, held, chance)
    assert cumulative == pytest.approx(slow_cumulative(some, most), abs=1e-9)


def test_a_part_of_a_unit_keeps_the_mean():
    """Half a unit held for sure is one unit or none."""
    cumulative = np.ones(3)
    add(cumulative, 2, 0.5, 1.0)
    assert cumulative == pytest.approx([0.5, 1.0, 1.0])


def test_running_jobs_count_in_the_rows_that_they_hold():
    """Two jobs in one row each, and one in both."""
    cumulative = np.ones((2, 2, 5))
    held = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    chance = np.array([[1.0, 0.5], [1.0, 0.25], [1.0, 0.0]])
    add_running(held, chance, np.array([4, 4]), np.ones(2), cumulative)
    assert cumulative[0, 0] == pytest.approx([0, 0, 0, 1, 1])
    assert cumulative[0, 1] == pytest.approx([0.5, 0.5, 1, 1, 1])
    assert cumulative[1, 0] == pytest.approx([0, 0, 1, 1, 1])
    assert cumulative[1, 1] == pytest.approx([0.75, 1, 1, 1, 1])


@pytest.mark.parametrize(("risk", "slot"), [(0.0, 3), (0.25, 2), (0.5, 1), (1.0, 0)])
def test_a_start_waits_until_the_risk_is_small_enough(risk, slot):
    """Beside a job that still runs with probability 1, 0.5, 0.25 and 0, on a row for one."""
    cumulative = np.ones((1, 4, 2))
    chance = np.array([[1.0, 0.5, 0.25, 0.0]])
    most, units = np.array([1]), np.ones(1)
    add_running(np.ones((1, 1)), chance, most, units, cumulative)
    group, start = np.array([-1]), np.array([-1])
    fill_within_risk(
        np.array([0]),
        np.array([0, 1]),
        np.array([0]),
        np.ones(1),
        np.ones((1, 4)),
        np.array([[4.0, 3.0, 2.0, 1.0]]),
        np.ones((1, 1), np.bool_),
        most,
        units,
        risk,
        cumulative,
        group,
        start,
    )
    assert (group[0], start[0]) == (0, slot)


def slow_fill(order, options, held, still, score, cover, most, risk, running):
    """Each job its best option with which no row is overdrawn more likely, by enumeration."""
    rows, slots = len(most), still.shape[1]
    chosen = []
    for job in order:
        best = (0.0, -1, -1)
        for group in options[job]:
            for slot in range(slots):
                if score[group, slot] <= best[0]:
                    continue
                fits = all(
                    1.0 - slow_cumulative(asked, most[row])[-1] <= risk + 1e-9
                    for row in range(rows)
                    if cover[group, row]
                    for at in range(slot, slots)
                    if still[group, at - slot] > 0.0
                    for asked in [
                        [
                            *((h[row], c[at]) for h, c in running),
                            *(
                                (held[g] * cover[g, row], still[g, at - s])
                                for _, g, s in [*chosen, (job, group, slot)]
                                if g >= 0 and cover[g, row] and s <= at
                            ),
                        ]
                    ]
                )
                if fits:
                    best = (score[group, slot], group, slot)
        chosen.append((job, *best[1:]))
    return {job: (group, slot) for job, group, slot in chosen}


@pytest.mark.parametrize("seed", range(10))
def test_filling_is_that_of_the_definition(seed):
    """Two options a job on a row within another, beside running jobs, at some risk."""
    random = np.random.default_rng(seed)
    jobs, slots = 3, 3
    risk = float(random.choice([0.0, 0.1, 0.3, 0.5]))
    held = np.repeat(random.integers(1, 4, jobs), 2).astype(float)
    still = np.sort(random.random((2 * jobs, slots)), axis=1)[:, ::-1].copy()
    still[:, 0] = 1.0
    score = random.random((2 * jobs, slots))
    cover = np.array([[1.0, 1.0], [0.0, random.choice([1.0, 2.0])]])
    most = np.array([3, 6])
    running = [
        (np.array([row, 1.0]), np.sort(random.random(slots))[::-1])
        for row in random.integers(0, 2, 3).astype(float)
    ]
    cumulative = np.ones((2, slots, 7))
    add_running(
        np.array([h for h, _ in running]),
        np.array([c for _, c in running]),
        most,
        np.ones(2),
        cumulative,
    )
    order = random.permutation(jobs)
    group_set = np.tile([0, 1], jobs)
    group, slot = np.full(jobs, -1), np.full(jobs, -1)
    fill_within_risk(
        order,
        np.arange(0, 2 * jobs + 1, 2),
        group_set,
        held,
        still,
        score,
        cover,
        most,
        np.ones(2),
        risk,
        cumulative,
        group,
        slot,
    )
    options = {job: (2 * job, 2 * job + 1) for job in range(jobs)}
    expected = slow_fill(
        order.tolist(), options, held, still, score, cover[group_set], most, risk, running
    )
    assert {job: (group[job], slot[job]) for job in range(jobs)} == expected
