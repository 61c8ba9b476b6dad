"""What a history of runtimes says: odds, conditions, sums, the slowest task, and what it forgets.

Run it: ``python examples/odds.py``.
"""

import numpy as np

from foresail.distributions.basic import Uniform
from foresail.distributions.histogram import Histogram
from foresail.distributions.operations import convolved, largest

# A job that takes up to ten minutes, evenly. It has run for five: how much longer?
job = Uniform(0.0, 600.0)
later = job.given(300.0)
print(f"runs beyond 450 s: {job.survival(450.0):.0%}")
print(f"once it has run 300 s: {later.survival(450.0):.0%}")
print(f"remaining: {later.mean() - 300.0:.0f} s on average")

# Two of them, one after the other, with a deadline after fifteen minutes.
print(f"two in a row miss 900 s: {convolved([job, job]).survival(900.0):.1%}")

# Forty tasks of a stage start together; the stage lasts as long as the slowest.
print(f"slowest of 40: {largest([job] * 40).mean():.0f} s on average")

# 20,000 runtimes, the largest of them thousands of times the median, kept in 80 bins: of seconds,
# and of their logarithms. How many runtimes are really at or below what each calls its median?
runtimes = np.random.default_rng(11).lognormal(6.0, 2.0, 20_000)
of_seconds = Histogram.from_values(runtimes).quantile(0.5)
of_logarithms = np.expm1(Histogram.from_values(np.log1p(runtimes)).quantile(0.5))
print(f"below the median of bins of seconds: {np.mean(runtimes <= of_seconds):.1%}")
print(f"below the median of bins of logarithms: {np.mean(runtimes <= of_logarithms):.1%}")
