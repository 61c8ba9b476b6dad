"""Losses, their slopes and the jobs' weights."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.predictors.kernels import loss
from foresail.predictors.kernels.loss import (
    CONST,
    LARGE_AREA,
    LINEAR,
    LONG_NARROW,
    SHORT_WIDE,
    SMALL_AREA,
    SQUARED,
)

error_slope = compiled(loss.error_slope)
job_weight = compiled(loss.job_weight)
pinball_slope = compiled(loss.pinball_slope)

LN10 = math.log(10.0)


def error_loss(error, over, under, over_scale, under_scale):
    """The loss whose slope the kernel gives (spec section 6)."""
    shape, scale = (over, over_scale) if error >= 0.0 else (under, under_scale)
    return scale * (error * error if shape == SQUARED else abs(error))


SHAPES = st.sampled_from([LINEAR, SQUARED])


@pytest.mark.parametrize(
    ("predicted", "log_unit", "loss"),
    [(120, LN10, 1200), (120, 1.0, 2763.102), (80, LN10, 60), (80, 1.0, 138.1551)],
)
def test_golden_e_loss(predicted, log_unit, loss):
    """Spec section 6: E-Loss of a job of 10 cpus and 100 s, 20 s too long and 20 s too short."""
    weight = job_weight(LARGE_AREA, 10.0, 100.0, log_unit, 0.1)
    assert weight * error_loss(predicted - 100.0, SQUARED, LINEAR, 1.0, 1.0) == pytest.approx(
        loss, rel=1e-6
    )


@pytest.mark.parametrize(
    ("kind", "cpus", "runtime", "log_unit", "weight"),
    [
        (CONST, 7.0, 1234.0, LN10, 1.0),
        (SHORT_WIDE, 1.0, 86_400.0, LN10, 0.0635),
        (SHORT_WIDE, 1.0, 86_400.0, 1.0, -6.37),
        (SHORT_WIDE, 1.0, 216_000.0, LN10, -0.33),
        (LONG_NARROW, 1.0, 86_400.0, LN10, 9.9365),
        (SMALL_AREA, 80_640.0, 86_400.0, LN10, 1.157),
        (SMALL_AREA, 80_640.0, 86_400.0, 1.0, -11.66),
        (LARGE_AREA, 1.0, 1.0, LN10, 0.0),
    ],
)
def test_golden_weights(kind, cpus, runtime, log_unit, weight):
    """Spec section 6: the weights of extreme jobs, and that they are raised to the smallest."""
    lenient = job_weight(kind, cpus, runtime, log_unit, -math.inf)
    assert lenient == pytest.approx(weight, abs=5e-3)
    assert job_weight(kind, cpus, runtime, log_unit, 0.1) == max(lenient, 0.1)


@given(
    st.floats(-1e6, 1e6).filter(lambda error: abs(error) > 1e-2),
    SHAPES,
    SHAPES,
    st.floats(0.1, 100),
    st.floats(0.1, 100),
)
def test_slope_is_the_derivative(error, over, under, over_scale, under_scale):
    """The slope agrees with a difference quotient of the loss, on both sides."""
    width = 1e-3
    rise = error_loss(error + width, over, under, over_scale, under_scale) - error_loss(
        error - width, over, under, over_scale, under_scale
    )
    slope = error_slope(error, over, under, over_scale, under_scale)
    assert slope == pytest.approx(rise / (2 * width), rel=1e-4, abs=1e-3)


def test_no_error_no_slope():
    """Where the prediction is right, nothing pulls."""
    assert error_slope(0.0, LINEAR, LINEAR, 100.0, 100.0) == 0.0
    assert pinball_slope(0.0, 0.9) == 0.0


def test_sides_have_their_own_shape_and_scale():
    """``over`` is the side of predictions above the runtime, whatever the source calls it."""
    assert error_slope(20.0, SQUARED, LINEAR, 3.0, 7.0) == 120.0
    assert error_slope(-20.0, SQUARED, LINEAR, 3.0, 7.0) == -7.0


def test_pinball_balances_at_its_level():
    """At the 90 % quantile, one prediction below in ten weighs as much as nine above."""
    assert 9 * pinball_slope(1.0, 0.9) == pytest.approx(-pinball_slope(-1.0, 0.9))
