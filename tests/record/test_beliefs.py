"""Quantiles that a log keeps of beliefs: all at once what they were one by one, and shared."""

from __future__ import annotations

import math

import pytest

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.record.beliefs import LEVELS, belief_of, kept
from foresail.record.records import Predicted

LONG = LogNormal(7.3, 1.7)
BELIEFS = [
    LONG,
    *(LogNormal(0.37 * step, 0.05 + 0.21 * step, 3_000.0 * step) for step in range(1, 12)),
    LogNormal(6.0, 1.0, 3600.0, 41.7),
    Uniform(1.0, 7.0),
    Quantiles([0.0, 0.3, 1.0], [1 / 3, 2e4 / 7, 1e7 / 3]),
    Empirical([1 / 3, 2 / 3, 1e6 / 7]),
    Point(77.7),
    Empirical([5.0, 5.0]),
]


@pytest.mark.parametrize("belief", BELIEFS, ids=str)
def test_quantiles_are_those_asked_for_one_by_one(belief):
    alone = [belief.quantile(level) for level in LEVELS]
    if math.isinf(alone[-1]):
        alone[-1] = belief.quantile(0.9999)
    one_by_one = tuple(float(f"{value:.4g}") for value in alone)
    expected = () if alone[1] == belief.quantile(0.9999) else one_by_one
    assert kept(belief) == expected
    assert kept(belief) is kept(belief)


def _predicted(job_id: str, belief: LogNormal) -> Predicted:
    low, median, high = (belief.quantile(level) for level in (0.1, 0.5, 0.9))
    return Predicted(0, 0.0, job_id, belief.mean(), low, median, high, 9.0, kept(belief))


def test_jobs_of_which_a_log_records_the_same_share_one_belief():
    first, second = (belief_of(_predicted(each, LogNormal(5.0, 1.0))) for each in "12")
    other = belief_of(_predicted("3", LogNormal(5.0, 1.001)))
    assert first is second
    assert other is not first
    assert kept(first) == kept(LogNormal(5.0, 1.0)) != kept(other)
