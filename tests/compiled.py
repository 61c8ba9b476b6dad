"""Parts and steps of kernels, which have no wrapper of their own, as Python can call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from foresail.kernels.borrowed import Places
from foresail.kernels.steps import fill_belief, step_address, take_predictor_step


@cache
def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that calls the part with what it is called with."""
    return numba.njit(lambda *arguments: part(*arguments), error_model="numpy")


def take(step: Any, slot: int, now: float, runtime: float, *arrays: Any) -> None:
    """Take a predictor's step; ``arrays`` are specs, model, users, jobs and summaries."""
    places = Places(*arrays)
    slots = np.array([slot], np.int64)
    take_predictor_step(step_address(step), slots, float(now), float(runtime), places.numbers)


def believe(step: Any, slot: int, *arrays: Any) -> None:
    """Take a belief step; ``arrays`` as above, and the row to fill."""
    fill_belief(step_address(step), slot, *arrays)
