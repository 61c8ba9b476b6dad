"""Goldens of the analytical waiting models, and what must hold of all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError, UnknownNameError
from foresail_studies.waiting.formulas import (
    POLICIES,
    Load,
    all_jobs_wait,
    all_jobs_wait_up_to,
    blocking,
    cheapest_servers,
    compound,
    delayed,
    expected,
    long_jobs_wait,
    marginal_use,
    no_jobs_wait,
    short_waits_wait,
    with_patience,
)
from foresail_studies.waiting.models import short_waits_wait_conserving

BASELINE = Load(0.2, 0.002)


def test_erlang_goldens():
    """B and C of section 10."""
    assert blocking([108, 100], 100) == pytest.approx([0.0349440090, 0.0757004527], abs=1e-10)
    assert float(delayed(108, 100)) == pytest.approx(0.3283296800, abs=1e-10)
    assert float(delayed([100], 100)[0]) == 1.0


@pytest.mark.parametrize(
    ("system", "golden"),
    [
        ((2, 1, 1, 1), (0.2, 0.0653181048, 0.0938336156, 0.1591517204)),
        ((2, 2, 1, 1), (0.4, 0.2222222222, 0.2222222222, 0.4444444444)),
        ((1, 0.5, 1, 2), (0.3333333333, 0.1012850304, 0.2910047873, 0.4935748481)),
    ],
)
def test_small_threshold_systems(system, golden):
    """The systems of section 10: (s, lambda, mu, b) to B, r and both waits."""
    servers, arrivals, services, threshold = system
    queue = with_patience(arrivals, services, servers, threshold)
    bounded = all_jobs_wait_up_to(Load(arrivals, services), servers, threshold)
    found = (
        blocking(servers, arrivals / services),
        queue.leaving,
        queue.wait_seconds,
        bounded.wait_seconds,
    )
    assert [float(each) for each in found] == pytest.approx(golden, abs=1e-9)


@pytest.mark.parametrize(
    ("servers", "threshold", "leaving", "told", "not_told"),
    [
        (100, 900, 0.0051757, 419.233, 423.891),
        (93, 900, 0.0700001, 770.573, 833.573),
        (101, 300, 0.0092298, 103.531, 106.299),
        (103, 60, 0.0256732, 10.773, 12.313),
    ],
)
def test_threshold_baseline(servers, threshold, leaving, told, not_told):
    """The table of section 5."""
    sww = short_waits_wait(BASELINE, servers, threshold)
    ajw_t = all_jobs_wait_up_to(BASELINE, servers, threshold)
    assert float(sww.rented_jobs) == pytest.approx(leaving, abs=1e-7)
    assert float(sww.wait_seconds) == pytest.approx(told, abs=1e-3)
    assert float(ajw_t.wait_seconds) == pytest.approx(not_told, abs=1e-3)
    assert float(ajw_t.price) == float(sww.price)


def test_the_longest_waits():
    """The wait of SWW at b=900 is longest with 93 servers (figure 6.5)."""
    servers = np.arange(50, 140)
    waits = short_waits_wait(BASELINE, servers, 900).wait_seconds
    assert servers[np.argmax(waits)] == 93


def test_no_jobs_wait_golden():
    """The cheapest fleet without waiting: 108 servers at 0.466944; AJW is 7.48 % cheaper there."""
    assert cheapest_servers("no-jobs-wait", BASELINE) == 108
    price = no_jobs_wait(BASELINE, [107, 108, 109]).price
    assert price == pytest.approx([0.467106, 0.466944, 0.467063], abs=1e-6)
    assert marginal_use("njw", BASELINE, [108, 109]) == pytest.approx([0.41620, 0.38811], abs=1e-5)
    waiting = all_jobs_wait(BASELINE, 108)
    assert float(waiting.price) == pytest.approx(0.432)
    assert float(waiting.wait_seconds) == pytest.approx(20.52, abs=0.005)


@pytest.mark.parametrize(
    ("threshold", "servers", "price"),
    [(60, 103, 0.437673), (300, 101, 0.413230), (900, 100, 0.405176), (3600, 100, 0.401364)],
)
def test_cheapest_with_threshold(threshold, servers, price):
    """The optima of AJW-T, by bisection and by looking at every number of servers."""
    limit = {"waiting_seconds": threshold}
    assert cheapest_servers("all-jobs-wait-threshold", BASELINE, **limit) == servers
    prices = all_jobs_wait_up_to(BASELINE, np.arange(200), threshold).price
    assert int(np.argmin(prices)) == servers
    assert prices[servers] == pytest.approx(price, abs=1e-6)


def test_cheapest_where_nothing_but_short_jobs_is_rented():
    """AJW and LJW want the fewest servers that keep waits finite."""
    assert cheapest_servers("all-jobs-wait", BASELINE) == 101
    assert cheapest_servers("long-jobs-wait", BASELINE, short_seconds=180) == 95
    with pytest.raises(InputError, match="fixed_price"):
        cheapest_servers("no-jobs-wait", Load(0.2, 0.002, 0.0))


def test_all_jobs_wait_goldens():
    """Waits of AJW against servers."""
    waits = all_jobs_wait(BASELINE, [100, 101, 102, 104, 105, 110, 120]).wait_seconds
    assert waits == pytest.approx([np.inf, 441.66, 194.27, 74.23, 51.57, 11.85, 0.83], abs=0.005)


def test_wrong_waits():
    """Section 5.1: over-predicted waits, both senses, and under-predicted ones."""
    over = short_waits_wait(BASELINE, [95, 100], 900, over=[0.05, 0.03])
    assert over.price == pytest.approx([0.435166, 0.430089], abs=1e-6)
    assert over.wait_seconds[1] == pytest.approx(106.6, abs=0.05)
    under = short_waits_wait(BASELINE, 93, 900, under=0.5)
    assert float(under.wait_seconds) == pytest.approx(802.07, abs=0.005)
    nobody = short_waits_wait_conserving(BASELINE, 108, 900, over=1.0)
    assert float(nobody.price) == pytest.approx(float(no_jobs_wait(BASELINE, 108).price))
    assert float(nobody.wait_seconds) == 0.0


def test_long_jobs_wait_goldens():
    """Section 5.2."""
    one = long_jobs_wait(BASELINE, 101, 180)
    assert float(one.rented_jobs) == pytest.approx(0.3023236739, abs=1e-10)
    assert float(one.price) == pytest.approx(0.4551601965, abs=1e-9)
    assert float(one.wait_seconds) == pytest.approx(25.5750, abs=1e-4)
    more = long_jobs_wait(BASELINE, [98, 101, 101], [180, 60, 600])
    assert more.wait_seconds == pytest.approx([77.76, 217.40, 0.00026], rel=2e-2)
    assert more.price[1:] == pytest.approx([0.41065, 0.74137], abs=1e-5)


@pytest.mark.parametrize(
    ("over", "under", "price", "wait"),
    [(0.3, 0.0, 0.43981, 48.1), (0.0, 0.05, 0.5026, 5.94), (0.0, 0.3, 0.7398, 0.0)],
)
def test_wrong_runtimes(over, under, price, wait):
    """Short jobs taken for long ones wait; long ones taken for short ones cost."""
    found = long_jobs_wait(BASELINE, 101, 180, over, under)
    assert float(found.price) == pytest.approx(price, abs=5e-5)
    assert float(found.wait_seconds) == pytest.approx(wait, abs=0.05)


def test_compound_waits():
    """The table of section 5.3."""
    found = compound(BASELINE, [90, 95, 98, 101], 180, 900)
    assert found.wait_seconds == pytest.approx([524.7, 279.3, 75.7, 25.6], abs=0.06)


def test_compound_rented_work():
    """The scaled form's share of work on demand."""
    found = compound(BASELINE, [90, 95, 98, 101], 180, 900)
    assert found.rented_work == pytest.approx([0.10001, 0.05599, 0.05126, 0.05116], abs=1e-5)


@pytest.mark.parametrize(
    ("servers", "costs"),
    [
        (
            98,
            {
                "ajw-t": 278.8,
                "sww": 271.2,
                "ljw": 34.46,
                "compound": 33.55,
            },
        ),
        (
            101,
            {
                "ajw": 178.4,
                "ajw-t": 113.1,
                "sww": 112.5,
                "ljw": 11.64,
                "compound": 11.64,
            },
        ),
        (
            108,
            {
                "ajw": 8.865,
                "ajw-t": 8.865,
                "sww": 8.865,
                "ljw": 1.729,
                "compound": 1.729,
            },
        ),
    ],
)
def test_opportunity_costs(servers, costs):
    """Section 5.4."""
    for policy, cost in costs.items():
        found = expected(policy, BASELINE, servers, 900, 180).opportunity_cost
        assert float(found) == pytest.approx(cost, rel=1e-3)


def test_without_limits_policies_agree():
    """With endless patience and no short jobs, all that wait are AJW; without patience, NJW."""
    servers = np.array([101, 105, 120])
    ajw = all_jobs_wait(BASELINE, servers)
    for policy in ("ajw-t", "sww", "ljw", "compound"):
        found = expected(policy, BASELINE, servers)
        assert found.wait_seconds == pytest.approx(ajw.wait_seconds)
        assert found.price == pytest.approx(ajw.price)
    impatient = all_jobs_wait_up_to(BASELINE, servers, 0.0)
    assert impatient.price == pytest.approx(no_jobs_wait(BASELINE, servers).price)


@given(
    st.sampled_from(POLICIES),
    st.integers(0, 300),
    st.floats(0, 1e6),
    st.floats(0, 5000),
    st.floats(0.01, 1.0),
)
def test_price_is_what_is_owned_and_what_is_rented(policy, servers, waiting, short, fixed_price):
    """Also in overload, and without a server at all: no number is lost."""
    load = Load(0.2, 0.002, fixed_price)
    found = expected(policy, load, servers, waiting, short)
    assert float(found.price) == pytest.approx(
        fixed_price * servers / 100 + float(found.rented_work)
    )
    assert 0.0 <= float(found.rented_work) <= 1.0 + 1e-12
    assert 0.0 <= float(found.rented_jobs) <= 1.0 + 1e-12
    assert float(found.wait_seconds) >= 0.0


@given(st.integers(1, 200), st.floats(0, 1e5), st.floats(1.0, 1e5))
def test_more_patience_rents_less(servers, threshold, more):
    """In any load."""
    short, long = with_patience(0.2, 0.002, servers, [threshold, threshold + more]).leaving
    assert long <= short + 1e-12


def test_wrong_arguments():
    """Each is named."""
    for load, field in (((0.0, 1.0), "arrivals_per_second"), ((1.0, 0.0), "services_per_second")):
        with pytest.raises(InputError, match=field):
            Load(*load)
    with pytest.raises(InputError, match="fixed_price"):
        Load(1.0, 1.0, -0.1)
    with pytest.raises(UnknownNameError, match="did you mean 'compound'"):
        expected("compund", BASELINE, 1)
    with pytest.raises(InputError, match="no formula for wrong predictions"):
        expected("compound", BASELINE, 1, under=0.1)
