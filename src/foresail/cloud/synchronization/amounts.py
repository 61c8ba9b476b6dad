"""Numbers of workers that may depend on how many there are: ``4``, ``k``, ``k-1``, ``k/2``."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.errors import InputError

_FORM: Final = re.compile(r"(\d+)|k(?:([-/])(\d+))?")


def amount(text: str, workers: NDArray[np.int64], field: str) -> NDArray[np.int64]:
    """What a text stands for at each number of workers; halves are rounded down, never below 0.

    Raises
    ------
    InputError
        If it is not of this form.
    """
    match = _FORM.fullmatch(text.replace(" ", ""))
    if match is None or (match[2] == "/" and int(match[3]) == 0):
        raise InputError(
            "no number of workers",
            field=field,
            value=text,
            expected="a whole number, k, k-1, k/2 or the like",
        )
    if match[1] is not None:
        return np.full_like(workers, int(match[1]))
    if match[2] is None:
        return workers.copy()
    other = int(match[3])
    return np.maximum(workers - other, 0) if match[2] == "-" else workers // other
