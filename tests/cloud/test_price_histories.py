"""Market histories: shares, means, lives, correlations, and the public series."""

import io
import json
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.cloud.histories import (
    MarketHistory,
    joined,
    lifetimes,
    mean_price_while_up,
)
from foresail.cloud.prices_reading import load_histories
from foresail.model.errors import InputError
from shared import shared


def history(times, end, market="z/t", **values):
    arrays = {n: np.asarray(v, float) if n in ("prices", "units") else v for n, v in values.items()}
    return MarketHistory(market, "t", "z", np.asarray(times, float), end, **arrays)


PRICES = history([0, 10, 40], 100.0, prices=[0.2, 0.6, 0.1], on_demand_per_hour=0.5)


def availability(market, bid_per_hour=None):
    return float(joined([market], bid_per_hour).availability[0])


def test_availability_is_the_share_of_time_at_or_below_the_bid():
    """Up for 10 s and 60 s of 100; all of it at a bid of 0.6; by default the on-demand price."""
    assert availability(PRICES) == pytest.approx(0.7)
    assert availability(PRICES, bid_per_hour=0.6) == 1.0
    part = joined([PRICES]).between(5.0, 20.0)
    assert part.availability[0] == pytest.approx(5 / 15)


def test_mean_prices_are_over_time():
    """Not over changes; and only while it was up."""
    assert mean_price_while_up(PRICES) == pytest.approx((2 + 6) / 70)


def test_lives_end_with_a_revocation_or_the_history():
    """Two lives, the second not ended."""
    lives = lifetimes(PRICES)
    np.testing.assert_allclose(lives.hours * 3600, [10, 60])
    assert lives.revoked.tolist() == [True, False]


def test_units_are_up_when_as_many_as_requested():
    """Four requested: three are not enough."""
    market = history([0, 1], 2.0, units=[3, 4], requested_units=4)
    assert market.up().tolist() == [False, True]


def test_correlation_of_opposite_and_constant_markets():
    """-1 for opposites, whatever the lengths of steps; nan with one that never changes."""
    a = history([0, 1], 3.0, "a", units=[0, 1])
    b = history([0, 1], 3.0, "b", units=[1, 0])
    c = history([0], 3.0, "c", units=[1])
    d = history([0, 2], 3.0, "d", units=[0, 1])
    found = joined([a, b, c, d]).correlations()
    assert found[0, 1] == pytest.approx(-1.0)
    assert found[0, 3] == pytest.approx(0.5)  # (1/3 - 2/9) / (2/9)
    assert np.isnan(found[0, 2])
    assert np.isnan(found[2, 2])
    assert np.diag(found)[[0, 1, 3]] == pytest.approx(1.0)


@given(
    steps=st.lists(st.tuples(st.floats(0.1, 50), st.booleans()), min_size=1, max_size=20),
    cut=st.floats(0.05, 0.95),
)
def test_shares_of_two_parts_make_the_whole(steps, cut):
    """Availability is additive over time, and agrees with sums of lives."""
    lengths = np.array([length for length, _ in steps])
    times = np.cumsum(lengths) - lengths
    end = float(lengths.sum())
    market = history(times, end, units=[float(up) for _, up in steps])
    middle = end * cut
    whole = joined([market])
    parts = float(
        whole.between(0, middle).availability[0] * middle
        + whole.between(middle, end).availability[0] * (end - middle)
    )
    assert parts == pytest.approx(availability(market) * end, abs=1e-6)
    assert lifetimes(market).hours.sum() * 3600 == pytest.approx(parts, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: history([0, 0], 1.0, prices=[1, 1]), "do not ascend"),
        (lambda: history([0], 0.0, prices=[1]), "do not ascend"),
        (lambda: history([0], 1.0, prices=[0]), "'prices': a value that cannot be.*above 0"),
        (lambda: history([0], 1.0, units=[2]), "'units'.*availability is 0 to 1"),
        (lambda: history([0], 1.0, units=[-1]), "'units'"),
        (lambda: history([0], 1.0), "either prices or units"),
        (lambda: history([0, 1], 2.0, prices=[1]), "not one value per time"),
        (lambda: history([0], 1.0, prices=[1]).up(), "no bid"),
        (lambda: mean_price_while_up(history([0], 1.0, units=[1])), "no prices"),
        (lambda: joined([PRICES, history([200], 300.0, prices=[1])], 1.0), "no time in common"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_histories_are_refused(make, message):
    """Each with the market or field, and what was expected."""
    with pytest.raises(InputError, match=message):
        make()


def test_an_archive_of_series(tmp_path):
    """The folder says how many were asked for and when it began, the name the market."""
    path = tmp_path / "series.tar.gz"
    body = json.dumps({"metadata": {"gap_seconds": 60}, "data": [0, 2, 4]}).encode()
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("preemption/4-node/aws-08-03-2023/us-east-2a_v100_1.json")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    (market,) = load_histories(str(path))
    assert (market.zone, market.instance_type) == ("us-east-2a", "v100_1")
    assert market.requested_units == 4
    assert market.origin_unix_seconds == 1_691_020_800
    assert market.units.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "text", ['{"gap_seconds"', '{"metadata": {"gap_seconds": 0}, "data": [1]}']
)
def test_a_damaged_series_is_refused(tmp_path, text):
    """Not JSON, or no time between ticks."""
    path = tmp_path / "zone_type.json"
    path.write_text(text)
    with pytest.raises(InputError, match="series"):
        load_histories(str(path))


CHANGES = """timestamp,az,instance_type,os,spot_price,on_demand_price
2015-03-11 16:00:00+00:00,a,big,Linux,0.1,0.5
2015-03-11 17:00:00+00:00,b,big,Linux,0.9,0.5
2015-03-11 18:00:00+00:00,a,big,Linux,0.3,0.5
2015-03-11 20:00:00+00:00,a,big,Linux,0.4,0.5
"""


def test_changes_of_spot_prices(tmp_path):
    """One clock for all markets, from the first change of any to the last."""
    path = tmp_path / "spot.csv"
    path.write_text(CHANGES)
    a, b = load_histories(str(path))
    assert (a.market, b.market) == ("a/big", "b/big")
    assert a.times_seconds.tolist() == [0, 7200]
    assert b.times_seconds.tolist() == [3600]
    assert a.end_seconds == b.end_seconds == 14_400
    assert a.prices is not None
    assert a.prices.tolist() == [0.1, 0.3]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.3,", "-0.3,", "line 4, field 'spot_price'"),
        ("0.3,", ",", "line 4, field 'spot_price'"),
        ("2015-03-11 17:00:00+00:00", "yesterday", "line 3, field 'timestamp'.*'yesterday'"),
    ],
)
def test_a_wrong_change_is_named(tmp_path, old, new, message):
    """With its line and value."""
    path = tmp_path / "spot.csv"
    path.write_text(CHANGES.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_histories(str(path))


def test_the_public_series():
    """34 series of spot availability; 15 markets of the bidding era, with sensible shares."""
    series = load_histories(str(shared("traces/skypilot-spot-traces/spot-traces.tar.gz")))
    assert len(series) == 34
    assert all(0.0 <= availability(each) <= 1.0 for each in series)
    markets = load_histories(str(shared("traces/ec2-spot-2015/ec2-spot-us-east-1-2015.csv.gz")))
    assert len(markets) == 15
    by_name = {market.market: market for market in markets}
    assert availability(by_name["us-east-1b/c3.xlarge"]) == pytest.approx(0.996, abs=0.001)
