"""What is known of the work of a task that begins anew."""

from __future__ import annotations

from foresail.model.distribution import Distribution


def work_knowing(work: Distribution, done: float) -> float:
    """Expected cpu seconds of a task that has once done so much without being through.

    Where nothing that is known takes longer, as much again is taken to be left (paper 000, section
    5.3.2).
    """
    if done <= 0.0:
        return work.mean()
    if float(work.survival(done)) <= 0.0:
        return 2.0 * done
    return work.given(done).mean()
