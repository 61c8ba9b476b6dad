"""Requested times for generated jobs: users ask for a few round times, well above the runtime.

A simple form of the findings of D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime
estimates", JSSPP 2005: twenty or so round values make up nearly all estimates, the longest
allowed is the most frequent of all, and accuracy (runtime over estimate) of the others is about
uniform.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.model.arrays import Floats, Integers

MINUTE: Final = 60.0
HOUR: Final = 3600.0
POPULAR_SECONDS: Final = np.array(
    [
        *(m * MINUTE for m in (5, 10, 15, 20, 30, 45)),
        *(h * HOUR for h in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 30, 36, 48)),
    ]
)
"""The values users ask for; the last is the machine's limit, above every runtime of the model."""
LEAST_ACCURACY: Final = 0.02


def draw_requests(
    runtimes: Floats,
    habit: Integers,
    session: Integers,
    longest_share: float,
    random: np.random.Generator,
) -> Floats:
    """Requested seconds of each job, never below its runtime; all shapes are (jobs,).

    Jobs of one habit (a number from zero) either all ask for the longest time or, but for a share
    ``longest_share`` of habits, none does. Jobs of one session (as well) ask for the same time,
    enough for all of them.
    """
    sessions = int(session.max()) + 1
    longest_runtime = np.zeros(sessions)
    np.maximum.at(longest_runtime, session, runtimes)
    accuracy = random.uniform(LEAST_ACCURACY, 1.0, sessions)
    wished = np.minimum(longest_runtime / accuracy, POPULAR_SECONDS[-1])
    asked = POPULAR_SECONDS[np.searchsorted(POPULAR_SECONDS, wished)]
    always_longest = random.random(int(habit.max()) + 1) < longest_share
    requests: Floats = np.where(always_longest[habit], POPULAR_SECONDS[-1], asked[session])
    return requests
