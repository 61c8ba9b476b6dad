"""Basis, losses and gradient descent: golden values, a slow reference and their promises."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from foresail.predictors.kernels import linear_model
from foresail.predictors.kernels.linear_model import (
    CONST,
    LARGE_AREA,
    LINEAR,
    LONG_NARROW,
    SHORT_WIDE,
    SMALL_AREA,
    SQUARED,
    basis_size,
)

error_slope = compiled(linear_model.error_slope)
descend = compiled(linear_model.descend)
inner_product = compiled(linear_model.inner_product)
normalised_square = compiled(linear_model.normalised_square)
raise_scales = compiled(linear_model.raise_scales)
rescale_weights = compiled(linear_model.rescale_weights)
safe_inner_product = compiled(linear_model.safe_inner_product)
job_weight = compiled(linear_model.job_weight)
pinball_slope = compiled(linear_model.pinball_slope)
expand = compiled(linear_model.expand)

GOLDEN_EXAMPLES = [((1, 2), 3), ((1, -1), 0), ((1, 4), 5), ((1, 3), 2)]


class Learner:
    """One weight vector taught by the kernels."""

    def __init__(self, size, over=SQUARED, under=SQUARED, eta=1.0, l2=0.0):
        self.weights, self.scales, self.squares = np.zeros((3, size))
        self.over, self.under, self.eta, self.l2 = over, under, eta, l2
        self.examples = 0
        self.normaliser = 0.0

    def learn(self, inputs, target):
        """Learn one example; return the prediction made on the way."""
        x = np.asarray(inputs, dtype=float)
        self.examples += 1
        rescale_weights(x, self.scales, self.weights)
        raise_scales(x, self.scales)
        predicted = inner_product(x, self.weights)
        self.normaliser += normalised_square(x, self.scales)
        slope = error_slope(predicted - target, self.over, self.under)
        rate = self.eta * math.sqrt(self.examples / self.normaliser)
        descend(x, self.scales, self.weights, self.squares, slope, self.l2, rate)
        return predicted


class SlowLearner:
    """The same, written like the seven lines of the paper."""

    def __init__(self, size, eta, l2):
        self.w, self.s, self.g = [0.0] * size, [0.0] * size, [0.0] * size
        self.eta, self.l2, self.n, self.t = eta, l2, 0.0, 0

    def learn(self, x, y):
        self.t += 1
        for i, value in enumerate(x):
            if abs(value) > self.s[i]:
                self.w[i] *= self.s[i] / abs(value)
                self.s[i] = abs(value)
        predicted = sum(w * v for w, v in zip(self.w, x, strict=True))
        self.n += sum(v * v / (s * s) for v, s in zip(x, self.s, strict=True) if s > 0)
        slope = 2 * (predicted - y)
        for i, value in enumerate(x):
            gradient = slope * value + self.l2 * self.w[i]
            self.g[i] += gradient**2
            if self.g[i] > 0 and self.s[i] > 0:
                step = self.eta * math.sqrt(self.t / self.n)
                self.w[i] -= step * gradient / (self.s[i] * math.sqrt(self.g[i]))
        return predicted


@pytest.mark.parametrize(
    ("over", "under", "l2", "predictions", "weights"),
    [
        (SQUARED, SQUARED, 0.0, [0, 0.353553, 1.368544, 2.285252], [1.150252, 0.352524]),
        (SQUARED, LINEAR, 0.0, [0, 0.353553, 1.222791, 1.959604], [1.141871, 0.514916]),
        (LINEAR, LINEAR, 0.0, [0, 0.353553, 1.210337, 1.877162], [0.971973, 0.534364]),
        (LINEAR, SQUARED, 0.0, [0, 0.353553, 1.350395, 2.262169], [1.078656, 0.349655]),
        (SQUARED, SQUARED, 0.1, [0, 0.353553, 1.357208, 2.273102], [1.131893, 0.352260]),
    ],
)
def test_golden_table(over, under, l2, predictions, weights):
    """Spec section 7: predictions and final weights of every loss shape."""
    learner = Learner(2, over, under, l2=l2)
    made = [learner.learn(x, y) for x, y in GOLDEN_EXAMPLES]
    assert made == pytest.approx(predictions, abs=1e-6)
    assert learner.weights == pytest.approx(weights, abs=1e-6)
    assert learner.normaliser == 6.8125
    assert learner.scales.tolist() == [1.0, 4.0]


def test_equals_slow_reference():
    """Twelve inputs of wild scales, some always zero: the kernels do what the seven lines say."""
    random = np.random.default_rng(1)
    fast, slow = Learner(12, eta=3.0, l2=0.01), SlowLearner(12, eta=3.0, l2=0.01)
    scales = 10.0 ** random.integers(-4, 7, 12)
    scales[5] = 0.0
    for _ in range(200):
        x = random.normal(size=12) * scales * (random.random(12) > 0.3)
        y = float(random.normal(100, 20))
        assert fast.learn(x, y) == pytest.approx(slow.learn(x.tolist(), y), rel=1e-9, abs=1e-9)


def test_scale_of_an_input_does_not_matter():
    """Spec section 7: multiplying an input by a million leaves every prediction as it was."""
    plain, scaled = Learner(2), Learner(2)
    for (one, other), y in GOLDEN_EXAMPLES:
        assert scaled.learn((one, other * 1e6), y) == pytest.approx(
            plain.learn((one, other), y), abs=1e-15
        )


def test_scale_of_the_loss_does_not_matter_without_l2():
    """Steps are measured against the gradient's own history: a constant factor cancels."""
    random = np.random.default_rng(2)
    weights = np.zeros((2, 3))
    scales, squares = np.zeros(3), np.zeros((2, 3))
    for t in range(1, 50):
        x = random.normal(size=3)
        raise_scales(x, scales)
        slope = random.normal()
        for which, factor in enumerate((1.0, 100.0)):
            rate = 1.0 / math.sqrt(t)
            descend(x, scales, weights[which], squares[which], factor * slope, 0.0, rate)
    assert weights[0] == pytest.approx(weights[1], rel=1e-12)


def test_converges_on_a_linear_target():
    """Spec section 7: the error falls to the noise's scale, from inputs nine decades apart."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(20_000, 3)) * (1.0, 1e5, 1e-4)
    targets = 3 + inputs @ (2.0, -4e-5, 5e4) + random.normal(0, 0.1, 20_000)
    learner = Learner(4)
    errors = [(learner.learn((1.0, *x), y) - y) ** 2 for x, y in zip(inputs, targets, strict=True)]
    assert np.mean(errors[:100]) > 10
    assert np.mean(errors[-1000:]) < 0.05


def test_safe_output_is_the_output_after_rescaling():
    """An input never seen so large counts as it would after the next rescaling."""
    random = np.random.default_rng(3)
    scales, weights = random.random(8), random.normal(size=8)
    inputs = random.normal(size=8) * 3
    safe = safe_inner_product(inputs, scales, weights)
    rescaled = weights.copy()
    rescale_weights(inputs, scales, rescaled)
    assert safe == pytest.approx(inner_product(inputs, rescaled), rel=1e-12)
    assert abs(safe_inner_product(1e12 * inputs, scales, weights)) <= np.abs(scales * weights).sum()


def test_twenty_features_give_231_terms():
    """Spec section 5."""
    assert basis_size(20) == 231


def test_terms_are_one_features_and_products():
    """Every product of two features occurs once, squares included."""
    features = np.array([2.0, 3.0, 5.0])
    basis = np.full(basis_size(3), np.nan)
    expand(features, basis)
    assert basis.tolist() == [1, 2, 3, 5, 4, 6, 10, 9, 15, 25]


def error_loss(error, over, under):
    """The loss whose slope the kernel gives (spec section 6)."""
    return error * error if (over if error >= 0.0 else under) == SQUARED else abs(error)


SHAPES = st.sampled_from([LINEAR, SQUARED])


@pytest.mark.parametrize(("predicted", "loss"), [(120, 1200), (80, 60)])
def test_golden_e_loss(predicted, loss):
    """Spec section 6: E-Loss of a job of 10 cpus and 100 s, 20 s too long and 20 s too short."""
    weight = job_weight(LARGE_AREA, 10.0, 100.0)
    assert weight * error_loss(predicted - 100.0, SQUARED, LINEAR) == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "cpus", "runtime", "weight"),
    [
        (CONST, 7.0, 1234.0, 1.0),
        (SHORT_WIDE, 1.0, 86_400.0, 0.1),
        (SHORT_WIDE, 64.0, 3_600.0, 3.25),
        (LONG_NARROW, 1.0, 86_400.0, 9.9365),
        (SMALL_AREA, 80_640.0, 86_400.0, 1.157),
        (LARGE_AREA, 1.0, 1.0, 0.1),
    ],
)
def test_golden_weights(kind, cpus, runtime, weight):
    """Spec section 6: the weights of extreme jobs, raised to the smallest."""
    assert job_weight(kind, cpus, runtime) == pytest.approx(weight, abs=5e-3)


@given(st.floats(-1e6, 1e6).filter(lambda error: abs(error) > 1e-2), SHAPES, SHAPES)
def test_slope_is_the_derivative(error, over, under):
    """The slope agrees with a difference quotient of the loss, on both sides."""
    width = 1e-3
    rise = error_loss(error + width, over, under) - error_loss(error - width, over, under)
    slope = error_slope(error, over, under)
    assert slope == pytest.approx(rise / (2 * width), rel=1e-4, abs=1e-3)


def test_no_error_no_slope():
    """Where the prediction is right, nothing pulls."""
    assert error_slope(0.0, LINEAR, LINEAR) == 0.0
    assert pinball_slope(0.0, 0.9) == 0.0


def test_sides_have_their_own_shape():
    """``over`` is the side of predictions above the runtime, whatever the source calls it."""
    assert error_slope(20.0, SQUARED, LINEAR) == 40.0
    assert error_slope(-20.0, SQUARED, LINEAR) == -1.0


def test_pinball_balances_at_its_level():
    """At the 90 % quantile, one prediction below in ten weighs as much as nine above."""
    assert 9 * pinball_slope(1.0, 0.9) == pytest.approx(-pinball_slope(-1.0, 0.9))
