"""What tasks use in equal parts of their lives, as told to who learns it."""

from __future__ import annotations

from typing import Final

import numpy as np

from foresail.model.arrays import Floats, Integers

BY_AGE: Final = ("cpu", "memory")
"""Of quantities, those that are also known by part."""


def parts_of(quantity: str, parts: int) -> tuple[str, ...]:
    """Names of a quantity in each of so many equal parts of a task's life; none for one part."""
    if parts == 1:
        return ()
    return tuple(f"{quantity}_part_{number}_of_{parts}" for number in range(1, parts + 1))


def seconds_in_parts(seconds: Floats, of: Integers, parts: int) -> Floats:
    """Seconds of each period in each of the equal parts of its task's life; shape (periods, parts).

    Periods last ``seconds``, one after the other; ``of`` is the task of each, from 0 on, ascending.
    Both have the shape (periods,).
    """
    end = np.cumsum(seconds)
    lives = np.bincount(of, weights=seconds)
    begins = np.cumsum(lives) - lives
    share = parts / lives[of]
    first, last = (end - seconds - begins[of]) * share, (end - begins[of]) * share
    part = np.arange(parts, dtype=np.float64)
    within = np.minimum(last[:, np.newaxis], part + 1.0) - np.maximum(first[:, np.newaxis], part)
    overlap: Floats = np.maximum(within, 0.0) / share[:, np.newaxis]
    return overlap


def average_by_part(seconds: Floats, of: Integers, amounts: Floats, parts: int) -> Floats:
    """What some tasks use together in each part of their lives, weighed by time.

    Of amounts of each period, shape (periods, quantities), the averages are of shape (quantities,
    parts); the others are as of ``seconds_in_parts``.
    """
    inside = seconds_in_parts(seconds, of, parts)
    averages: Floats = amounts.T @ inside / inside.sum(axis=0)
    return averages
