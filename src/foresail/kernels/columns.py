"""The columns of the arrays that kernels share: job specifications and prediction summaries."""

from __future__ import annotations

from typing import Final

# A specification row per job slot: what was known at submission.
SUBMIT: Final = 0
CPUS: Final = 1
REQUESTED: Final = 2
USER: Final = 3
GROUP: Final = 4
QUEUE: Final = 5
EXECUTABLE: Final = 6
SPEC_COLUMNS: Final = 7
"""Seconds, cpus, seconds (infinite where not given), then codes (-1 where unknown)."""

SPEC_NAMES: Final = ("submit", "cpus", "requested", "user", "group", "queue", "executable")

# A summary row per job slot: what a predictor believed at submission.
PREDICTED: Final = 0
Q10: Final = 1
Q25: Final = 2
Q50: Final = 3
Q75: Final = 4
Q90: Final = 5
URGENCY: Final = 6
SUMMARY_COLUMNS: Final = 7
"""Mean and quantiles in seconds; urgency = E[1 / max(runtime, 10 s)], the rate at which
waiting adds to the expected bounded slowdown."""

SUMMARY_NAMES: Final = ("predicted", "q10", "q25", "q50", "q75", "q90", "urgency")
QUANTILE_LEVELS: Final = (0.10, 0.25, 0.50, 0.75, 0.90)
SLOWDOWN_BOUND_SECONDS: Final = 10.0
