"""What TetriSched's job classes are worth when nobody says: the internal value functions.

Source: TetriSched (EuroSys 2016), section 6.2.2; spec tetrisched section 2 and T-1, T-5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from foresail.model.errors import InputError
from foresail.model.value import DeadlineValue, DecayingValue, ValueFunction

ACCEPTED_SLO: Final = 1000.0
"""Units that a job with a deadline and an accepted reservation is worth."""
UNRESERVED_SLO: Final = 25.0
"""Units that a job with a deadline whose reservation was rejected is worth."""


def accepted_slo_value(deadline_seconds: float, unit: float = 1.0) -> DeadlineValue:
    """A thousand units up to the deadline, nothing after it.

    ``unit`` is what a best-effort job is worth at first (v0).
    """
    return DeadlineValue(deadline_seconds, ACCEPTED_SLO * unit)


def unreserved_slo_value(deadline_seconds: float, unit: float = 1.0) -> DeadlineValue:
    """Twenty-five units up to the deadline, nothing after it; ``unit`` as above."""
    return DeadlineValue(deadline_seconds, UNRESERVED_SLO * unit)


def best_effort_value(
    submit_seconds: float, decay_seconds: float, unit: float = 1.0
) -> DecayingValue:
    """``unit`` at submission, falling linearly to nothing ``decay_seconds`` later.

    Raises
    ------
    InputError
        If ``decay_seconds`` is not above 0.
    """
    if not decay_seconds > 0.0:
        problem = "a value cannot fall in no time"
        raise InputError(problem, field="decay_seconds", value=decay_seconds, expected="above 0")
    return DecayingValue(submit_seconds, submit_seconds + decay_seconds, unit)


@dataclass(frozen=True, slots=True)
class SoonerValue:
    """A value function that is worth very slightly less the later the job completes.

    Without it a job whose value does not fall before its deadline may be put off on an idle
    cluster (spec T-5).

    Parameters
    ----------
    value
        The value function proper.
    now_seconds, horizon_seconds
        The value is untouched at ``now_seconds``; a completion ``horizon_seconds`` after it costs
        ``share`` of it (one later, more; one earlier gains none).
    share
        Far below a thousandth, so that it never puts one class before another.
    """

    value: ValueFunction
    now_seconds: float
    horizon_seconds: float
    share: float = 1e-6

    def at(self, completion_seconds: float) -> float:
        """Value of completing at this time (seconds from the workload's origin)."""
        late = max(0.0, completion_seconds - self.now_seconds) / self.horizon_seconds
        return self.value.at(completion_seconds) * max(0.0, 1.0 - self.share * late)
