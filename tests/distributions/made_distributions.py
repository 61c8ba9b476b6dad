"""Distributions of every kind, drawn by Hypothesis."""

import numpy as np
from hypothesis import strategies as st

from foresail.distributions.basic import Point, Uniform
from foresail.distributions.empirical import Empirical
from foresail.distributions.histogram import Histogram
from foresail.distributions.kernels.streaming_histogram import merge
from foresail.distributions.log_normal import LogNormal
from foresail.distributions.quantiles import Quantiles
from foresail.distributions.truncated_normal import TruncatedNormal

SECONDS = st.floats(0.0, 1e6).map(lambda value: round(value, 3))


@st.composite
def quantiles(draw):
    inner = draw(st.lists(st.integers(1, 99), unique=True, max_size=8).map(sorted))
    levels = [0.0, *(level / 100 for level in inner), 1.0]
    values = draw(st.lists(SECONDS, min_size=len(levels), max_size=len(levels)))
    return Quantiles(levels, values)


@st.composite
def empiricals(draw):
    values = draw(st.lists(SECONDS, min_size=1, max_size=12))
    weights = draw(st.lists(st.floats(0.01, 10), min_size=len(values), max_size=len(values)))
    return Empirical(values, weights)


@st.composite
def log_normals(draw):
    cap = draw(st.one_of(st.just(np.inf), st.floats(1.0, 1e6)))
    mu, sigma = draw(st.floats(0.0, 12.0)), draw(st.floats(0.01, 4.0))
    elapsed = draw(st.one_of(st.just(0.0), st.floats(0.0, min(0.9 * cap, np.exp(mu + sigma)))))
    return LogNormal(mu, sigma, cap, elapsed)


@st.composite
def uniforms(draw):
    low = draw(SECONDS)
    return Uniform(low, low + draw(st.floats(0.01, 1e6)))


@st.composite
def truncated_normals(draw):
    sigma = draw(st.floats(0.1, 1e5))
    mu = sigma * draw(st.floats(-5.0, 20.0))
    low = max(mu + sigma * draw(st.floats(-20.0, 5.0)), 0.0)
    return TruncatedNormal(mu, sigma, low)


@st.composite
def histograms(draw):
    """Before and after the first merge, whole and conditioned, with ties."""
    values = draw(st.lists(SECONDS, min_size=1, max_size=30))
    histogram = Histogram.from_values([*values, *values[:2]], draw(st.integers(1, 12)))
    elapsed = draw(st.one_of(st.just(0.0), st.sampled_from(values)))
    left = float(histogram.survival(elapsed))
    return histogram.given(elapsed) if left > 1e-3 else histogram


CLOSED = st.one_of(
    SECONDS.map(Point),
    quantiles(),
    empiricals(),
    uniforms(),
    truncated_normals(),
    histograms(),
)
SIMPLE = st.one_of(CLOSED, log_normals())


DISTRIBUTIONS = SIMPLE
BOUNDED = DISTRIBUTIONS.filter(lambda belief: np.isfinite(belief.quantile(1.0)))


def merged(one, other):
    """The histogram of both streams."""
    row = one.row.copy()
    merge(row, other.row.copy(), np.empty(2 * row.size + other.row.size))
    return Histogram(row)
