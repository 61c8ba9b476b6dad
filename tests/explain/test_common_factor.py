"""Common factor of runtimes: draws keep their distribution, and shares are found again."""

from __future__ import annotations

import numpy as np
import pytest

from foresail.explain.common_factor import (
    PRIOR,
    CommonFactor,
    companions,
    keys_of,
    normal_draws,
    normal_levels,
    normal_value,
)


def test_normal_numbers_are_standard_and_depend_on_nothing_but_seed_and_name() -> None:
    drawn = normal_draws(keys_of(["a", "b", ("user", 3)]), 20_000, 5)
    assert drawn.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.03)
    assert np.cov(drawn.T) == pytest.approx(np.eye(3), abs=0.04)
    np.testing.assert_array_equal(normal_draws(keys_of(["b"]), 20_000, 5)[:, 0], drawn[:, 1])
    assert not np.allclose(normal_draws(keys_of(["b"]), 20_000, 6)[:, 0], drawn[:, 1])
    # Golden: of whoever compares two outlooks on two machines.
    assert normal_draws(keys_of(["a"]), 2, 0)[:, 0] == pytest.approx(GOLDEN, abs=1e-12)


GOLDEN = (0.1894920452042567, -0.03228025477797207)


def test_levels_and_values_are_those_of_the_normal_distribution() -> None:
    assert normal_levels(np.array([-1.96, 0.0, 1.0])) == pytest.approx(
        [0.0249979, 0.5, 0.8413447], abs=1e-6
    )
    assert normal_value(0.9) == pytest.approx(1.2815516, abs=1e-4)
    assert normal_value(0.0) == -normal_value(1.0) == -2.8


def test_companions_are_those_in_flight_at_a_submission() -> None:
    random = np.random.default_rng(2)
    count = 300
    groups = random.integers(0, 5, count).astype(np.float64)
    submit = np.floor(random.uniform(0.0, 200.0, count))
    end = submit + np.floor(random.exponential(20.0, count)) + 1.0
    value = random.normal(size=count)
    order = np.argsort(submit, kind="stable")
    groups, submit, end, value = groups[order], submit[order], end[order], value[order]
    means, known = companions(groups, submit, end, value)
    for at in range(count):
        alike = (groups[:at] == groups[at]) & (end[:at] > submit[at])
        assert known[at] == alike.any()
        if alike.any():
            assert means[at] == pytest.approx(value[:at][alike].mean(), abs=1e-9)


def test_shares_are_found_in_jobs_that_have_them() -> None:
    factor = CommonFactor()
    factor.update()
    assert factor.shares == PRIOR
    random = np.random.default_rng(4)
    for session in range(300):  # ten jobs of a user's session at a time, half of it in common
        shared = random.normal()
        for job in range(10):
            groups = (), ("u",), ("u", "a"), ("u", "a", job % 3)
            value = np.sqrt(0.5) * shared + np.sqrt(0.5) * random.normal()
            factor.observe(groups, 100.0 * session + job, 100.0 * session + 90.0, value)
    factor.update()
    assert factor.shares[1:] == pytest.approx((0.5, 0.5, 0.52), abs=0.06)
    assert list(factor.shares) == sorted(factor.shares)
