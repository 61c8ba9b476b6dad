"""How far jobs run past their limits: counts, shares of classes, and beliefs that reach there."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from foresail.kernels.columns import BELIEF_COLUMNS, BELIEF_LEVELS
from foresail.predictors import calibrated as overruns

LEVELS = np.array(BELIEF_LEVELS)


@numba.njit
def counted(runtimes, limit, counts):
    """Count jobs of one limit."""
    for runtime in runtimes:
        overruns.count_overrun(runtime, limit, counts)


@numba.njit
def shared(everyone, queue, user, shares):
    """Shares of the bins for one class."""
    overruns.overrun_shares(everyone, queue, user, shares)


@numba.njit
def reached(limit, shares, belief):
    """Spread a belief past the limit."""
    return overruns.reach_past(limit, shares, belief)


def shares_after(runtimes, limit):
    """Shares for a user whose queue and log know nothing but the user's own jobs."""
    user = np.zeros(overruns.OVERRUN_BINS)
    counted(np.array(runtimes, dtype=float), float(limit), user)
    shares = np.empty_like(user)
    shared(np.zeros_like(user), np.zeros_like(user), user, shares)
    return user, shares


def test_only_jobs_at_their_limit_count():
    """Jobs below 97 % of the limit say nothing of it, nor do those without one."""
    user, _ = shares_after([10.0, 969.0, 970.0, 1000.0, 1000.5, 1050.0, 10**9], 1000.0)
    assert user.sum() == 5
    assert (user[0], user[1], user[-1]) == (2, 1, 1)
    without = np.zeros_like(user)
    counted(np.array([1e9]), math.inf, without)
    assert without.sum() == 0


def test_an_atom_where_limits_bind():
    """Killed at the limit: a belief that comes to it stays there, whatever its other half is."""
    _, shares = shares_after([1000.0] * 50, 1000.0)
    belief = np.minimum(2000.0 * LEVELS, 1000.0)
    assert reached(1000.0, shares, belief) == 1000.0
    assert np.allclose(belief, np.minimum(2000.0 * LEVELS, 1000.0))


def test_as_far_as_jobs_ran():
    """Of the half at the limit all ended within 40 to 45 s after it: so does the belief."""
    _, shares = shares_after([1000.0 + 42.0] * 5000, 1000.0)
    belief = np.minimum(2000.0 * LEVELS, 1000.0)
    furthest = reached(1000.0, shares, belief)
    assert 1040.0 <= furthest <= 1045.0
    below = LEVELS < 0.45
    assert np.allclose(belief[below], 2000.0 * LEVELS[below])
    above = LEVELS >= 0.55
    assert ((belief[above] >= 1040.0) & (belief[above] <= 1045.0)).all()
    assert (np.diff(belief) >= 0.0).all()


def test_a_user_without_history_is_like_the_queue():
    """Counts of the wider class stand in, the less the more is known."""
    queue = np.zeros(overruns.OVERRUN_BINS)
    queue[7] = 95.0
    none = np.zeros_like(queue)
    shares = np.empty_like(queue)
    shared(none, queue, none, shares)
    assert shares[7] == pytest.approx(0.95)
    own = none.copy()
    own[0] = 5.0
    shared(none, queue, own, shares)
    assert shares[7] == pytest.approx(0.475)
    assert shares.sum() == pytest.approx(1.0)


def test_no_limit_no_reach():
    """Without a limit nothing is spread or cut."""
    belief = np.linspace(0.0, 1e6, BELIEF_COLUMNS)
    before = belief.copy()
    assert math.isinf(reached(math.inf, np.full(overruns.OVERRUN_BINS, 1.0), belief))
    assert (belief == before).all()
