"""What a campaign keeps of a replay, against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.campaigns.results import QUANTILE_LEVELS, mean_e_loss, measure
from foresail.control.policy import parse_policy
from foresail.metrics.summary import summary
from foresail.traces.generating import generate
from foresail_studies.generators.lublin import LublinParameters
from made_scenarios import simulate

WORKLOAD = generate("lublin", LublinParameters(jobs=400, processors=32), 7)


def test_agrees_with_the_summary_of_a_comparison():
    """A campaign and a comparison say the same of the same schedule."""
    schedule = simulate(WORKLOAD, parse_policy("easy++"))
    measured, whole = measure(schedule), summary(schedule)
    for name in (
        "jobs",
        "average_bounded_slowdown",
        "median_bounded_slowdown",
        "mean_wait_seconds",
        "median_wait_seconds",
        "p99_wait_seconds",
        "max_wait_seconds",
        "utilization",
        "makespan_seconds",
        "mean_absolute_error_seconds",
        "under_predicted_share",
        "corrections",
    ):
        assert getattr(measured, name) == getattr(whole, name), name
    assert measured.delayed_heads == schedule.meta.counters["delayed_heads"]


def test_tail_and_quantiles():
    """Extremes are counted per job, and the quantiles are those of errors and predictions."""
    schedule = simulate(WORKLOAD, parse_policy("easy,recent"))
    measured = measure(schedule)
    slowdowns = []
    for row in schedule.jobs.iter_rows(named=True):
        wait = row["start_seconds"] - row["submit_seconds"]
        runtime = row["end_seconds"] - row["start_seconds"]
        slowdowns.append(max(1.0, (wait + runtime) / max(runtime, 10.0)))
    assert measured.extreme_share == sum(s >= 1000 for s in slowdowns) / len(slowdowns)
    assert measured.worst_thousandth_share == pytest.approx(max(slowdowns) / sum(slowdowns))
    predicted = schedule.jobs["predicted_seconds"].to_numpy()
    assert len(measured.prediction_quantiles) == len(QUANTILE_LEVELS)
    assert measured.prediction_quantiles[100] == pytest.approx(np.median(predicted), rel=1e-5)
    runtime = (schedule.jobs["end_seconds"] - schedule.jobs["start_seconds"]).to_numpy()
    assert measured.error_quantiles[0] == pytest.approx((predicted - runtime).min(), rel=1e-5)


@pytest.mark.parametrize(("predicted", "expected"), [(120.0, 1200.0), (80.0, 60.0), (100.0, 0.0)])
def test_e_loss_golden(predicted, expected):
    """The spec's golden values for 10 processors and 100 s, base 10 (section 6)."""
    loss = mean_e_loss(np.array([predicted - 100.0]), np.array([1000.0]))
    assert loss == pytest.approx(expected)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(1.0, 1e9)), min_size=1, max_size=20),
)
def test_e_loss_against_a_loop(pairs):
    """Weight times square above, weight times distance below; small weights are raised to 0.1."""
    total = 0.0
    for error, area in pairs:
        weight = max(math.log10(area), 0.1)
        total += weight * (error**2 if error >= 0 else -error)
    errors, areas = (np.array(column) for column in zip(*pairs, strict=True))
    assert mean_e_loss(errors, areas) == pytest.approx(total / len(pairs), rel=1e-9)
