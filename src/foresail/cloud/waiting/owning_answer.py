"""The answer to how many machines to own, and which jobs wait: what was tried, what is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from foresail.cloud.waiting.certainty import AdviceCertainty
from foresail.cloud.waiting.frontier import FrontierPoint, advised
from foresail.cloud.waiting.settings import Sweep, WaitingSetting
from foresail.cloud.waiting.worth import Worth
from foresail.model.errors import InputError


@dataclass(frozen=True)
class OwningAnswer:
    """All that was found."""

    points: tuple[FrontierPoint, ...]
    """The settings that last, in the order of the sweep."""
    growing: int
    """How many settings were left out because their queues only grow."""
    today: FrontierPoint | None
    """Where one is now; also in ``points`` if it lasts."""
    advised: FrontierPoint
    """What costs least with waiting at its value."""
    unaided: FrontierPoint | None
    """The same among policies that no oracle tells anything; None if none is."""
    truths: tuple[str, ...]
    """What only an oracle knows and the advised policy goes by: runtimes, waits, both or
    nothing."""
    worth: Worth
    """What the advice respects."""
    period_seconds: float
    """Of the costs."""
    jobs: float
    """In the period, on average."""
    mean_machines: float
    """Machines that the work would keep busy."""
    certainty: AdviceCertainty | None
    """None for formulas, and for logs of fewer than five days."""
    optima: tuple[FrontierPoint, ...] = ()
    """For formulas: each policy and its thresholds with the number of machines at which the price
    is lowest, waiting not counted (s* of the literature), whether it was tried or not."""

    def of(self, policy: str) -> list[FrontierPoint]:
        """The points of a policy."""
        return [point for point in self.points if point.policy == policy]

    def best_of(self, policy: str) -> FrontierPoint:
        """What costs least of a policy's points with waiting at its value."""
        return min(self.of(policy), key=lambda point: point.worth(self.worth.hour_value))


def answered(
    points: Mapping[WaitingSetting, FrontierPoint],
    sweep: Sweep,
    worth: Worth,
    period_seconds: float,
    jobs: float,
    mean_machines: float,
    truths: Callable[[str], tuple[str, ...]],
) -> OwningAnswer:
    """The best of what was tried; of how sure that is, it says nothing yet.

    ``truths`` says what a policy goes by that only an oracle knows.

    Raises
    ------
    InputError
        If no setting lasts, or none waits as little as is asked.
    """
    lasting = tuple(point for point in points.values() if point.is_lasting)
    if not lasting:
        raise InputError(
            "the queue only grows whatever is tried",
            field="fixed",
            value=max(sweep.counts),
            expected=f"more than {mean_machines:.4g} machines, or a policy that rents",
        )
    unaided = [point for point in lasting if not truths(point.policy)]
    best = advised(lasting, worth.hour_value, worth.longest_wait_seconds)
    return OwningAnswer(
        points=lasting,
        growing=len(points) - len(lasting),
        today=None if sweep.today is None else points[sweep.today],
        advised=best,
        unaided=advised(unaided, worth.hour_value) if unaided else None,
        truths=truths(best.policy),
        worth=worth,
        period_seconds=period_seconds,
        jobs=jobs,
        mean_machines=mean_machines,
        certainty=None,
    )
