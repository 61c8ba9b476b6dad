"""What planning ahead computes in bulk, against one distribution or one job at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.schedulers._planning.cell_map import unions_of
from foresail.schedulers._planning.valuing import RuntimeBeliefs
from foresail.schedulers.kernels.plan_filling import fill_plan, rows_and_shares

SHARP = [Point(7.0), Uniform(2.0, 12.0), Empirical([1.0, 5.0, 5.0, 30.0])]


@pytest.mark.parametrize("slowdown", [1.0, 1.5])
def test_limited_means(slowdown):
    """E[min(T, bound)], exactly for beliefs in pieces; a negative bound is its own mean."""
    bounds = np.array([[-3.0, 0.0, 0.5, 4.0, 7.0, 11.0, 29.0, 100.0]] * len(SHARP))
    point, uniform, several = RuntimeBeliefs(SHARP).limited_means(slowdown, bounds) / slowdown
    limits = bounds[0] / slowdown
    assert point == pytest.approx(np.minimum(7.0, limits))
    inside = np.clip(limits, 2.0, 12.0)
    assert uniform == pytest.approx(np.minimum(limits, inside) - (inside - 2.0) ** 2 / 20.0)
    each = np.minimum(np.array([1.0, 5.0, 5.0, 30.0])[:, np.newaxis], limits)
    assert several == pytest.approx(each.mean(axis=0))


def test_limited_means_of_smooth_beliefs():
    """A smooth belief in fifty pieces is within half a percent."""
    belief = LogNormal(3.0, 0.8)
    bounds = np.array([[5.0, 20.0, 60.0, 200.0]])
    means = RuntimeBeliefs([belief]).limited_means(1.0, bounds)[0]
    expected = [belief.expectation(lambda t, b=b: np.minimum(t, b)) for b in bounds[0]]
    assert means == pytest.approx(expected, rel=5e-3)


@given(st.floats(-20.0, 80.0), st.sampled_from([1.0, 2.0]), st.integers(1, 12))
def test_done_by_a_moment(seconds, slowdown, slots):
    """The probability to end within what is left of the time at every start."""
    done = RuntimeBeliefs(SHARP).done_by(slowdown, np.full(len(SHARP), seconds), 2.5, slots)
    left = seconds + 1e-6 - 2.5 * np.arange(slots)
    for row, belief in zip(done, SHARP, strict=True):
        expected = belief.cumulative(np.maximum(left, 0.0) / slowdown)
        assert row == pytest.approx(np.where(left >= 0.0, expected, 0.0), abs=1e-6)


def slowly_filled(order, first_group, group_set, consumption, score, cover, left):
    """The best fitting option of each job in turn, slot by slot."""
    jobs, slots = first_group.size - 1, left.shape[1]
    group, slot = np.full((2, jobs), -1)
    for job in order:
        best = 0.0
        for g in range(first_group[job], first_group[job + 1]):
            for s in range(slots):
                need = np.concatenate((np.zeros(s), consumption[g, : slots - s]))
                taken = cover[group_set[g]][:, np.newaxis] * need
                if score[g, s] > best and ((taken <= left + 1e-7) | (taken == 0.0)).all():
                    best, group[job], slot[job] = score[g, s], g, s
        if group[job] >= 0:
            s, g = slot[job], group[job]
            left[:, s:] -= cover[group_set[g]][:, np.newaxis] * consumption[g, : slots - s]
    return group, slot


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_filling_is_the_obvious_filling(seed):
    """The kernel and the slow reference choose the same options and leave the same."""
    random = np.random.default_rng(seed)
    jobs, sets, rows, slots = 6, 3, 4, 5
    first_group = np.concatenate(([0], np.cumsum(random.integers(0, 3, jobs))))
    groups = int(first_group[-1])
    group_set = random.integers(0, sets, groups)
    consumption = -np.sort(-random.integers(0, 4, (groups, slots)).astype(float), axis=1)
    score = random.integers(-1, 9, (groups, slots)).astype(float)
    cover = random.choice([0.0, 0.0, 0.5, 1.0, 2.0], (sets, rows))
    left = random.integers(0, 6, (rows, slots)).astype(float)
    order = random.permutation(jobs)
    after = left.copy()
    expected = slowly_filled(order, first_group, group_set, consumption, score, cover, after)
    group, slot = np.full((2, jobs), -1, np.int64)
    rows = rows_and_shares(cover)
    fill_plan(order, first_group, group_set, consumption, score, rows, left, group, slot)
    assert group.tolist() == expected[0].tolist()
    assert slot.tolist() == expected[1].tolist()
    assert left.tolist() == after.tolist()


@pytest.mark.parametrize(
    ("sets", "unions"),
    [
        ([0b1, 0b10, 0b11], [0b1, 0b10, 0b11]),
        ([0b11, 0b1100], [0b11, 0b1100]),
        ([0b011, 0b110, 0b101], [0b011, 0b110, 0b101, 0b111]),
    ],
    ids=["nested", "apart", "overlapping"],
)
def test_unions_of_sets(sets, unions):
    """Only sets that overlap make rows of their own; sets that nest make none."""
    assert unions_of(sets) == unions
