"""The estimate error in the study's buckets: golden values G23 and shares by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.analysis.prediction_errors import (
    BUCKETS,
    TAIL,
    error_bucket,
    error_histogram,
    error_shares,
    percentage_errors,
)

GOLDEN = {-100: -100, -5.1: -10, -5: 0, -4.9: 0, 4.9: 0, 5: 10, 94.9: 90, 95: 90, 95.1: TAIL}


def test_golden_buckets():
    """G23: every error falls where the study counts it."""
    assert error_bucket(list(GOLDEN)).tolist() == list(GOLDEN.values())


@given(st.floats(-100.0, 95.0))
def test_nearest_decile(error):
    """Below the tail a bucket is at most 5 away from its errors."""
    bucket = int(error_bucket([error])[0])
    assert bucket in BUCKETS
    assert abs(bucket - error) <= 5.0 + 1e-9


def test_errors_in_per_cent():
    """Estimate less truth, in per cent of the truth."""
    assert percentage_errors([50.0, 300.0, 0.0], [100.0, 100.0, 7.0]).tolist() == [-50, 200, -100]


def test_shares_by_hand():
    """Half and double are within a factor of two; zero truths are counted and left out."""
    estimate = [50.0, 200.0, 49.0, 100.0, 250.0, 195.0, 5.0]
    actual = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 0.0]
    shares = error_shares(estimate, actual)
    assert (shares.jobs, shares.zero_jobs) == (6, 1)
    assert shares.within_factor_two == pytest.approx(4 / 6)
    assert shares.under == pytest.approx(2 / 6)
    assert shares.under_by_half == pytest.approx(1 / 6)
    assert shares.over == pytest.approx(3 / 6)
    assert shares.tail == pytest.approx(2 / 6)


def test_histogram_counts_every_job_once():
    """A row per bucket, in order; shares add up to one."""
    table = error_histogram([50.0, 200.0, 49.0, 100.0, 250.0, 195.0, 5.0], [100.0] * 6 + [0.0])
    assert table["bucket_percent"].to_list() == list(range(-100, 101, 10))
    found = dict(table.filter(table["jobs"] > 0).select("bucket_percent", "jobs").iter_rows())
    assert found == {-50: 2, 0: 1, 90: 1, TAIL: 2}
    assert table["share"].sum() == pytest.approx(1.0)


def test_nothing_above_zero():
    """Without a truth above zero there are no shares, and no job in the histogram."""
    shares = error_shares([1.0], [0.0])
    assert (shares.jobs, shares.zero_jobs) == (0, 1)
    assert math.isnan(shares.within_factor_two)
    assert np.all(error_histogram([1.0], [0.0])["share"].to_numpy() == 0.0)
