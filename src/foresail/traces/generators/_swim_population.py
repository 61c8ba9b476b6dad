"""Hadoop jobs by the bytes they move: SWIM's samples, or their quantiles where no file is given.

The built-in quantiles are those of all bytes of a job (map input, shuffle, reduce output) in SWIM's
samples of Facebook's clusters: ``FB-2009_samples_24_times_1hr_1`` (6,638 jobs, the fb2009_2 of
TetriSched) and ``FB-2010_samples_24_times_1hr_0`` (24,442 jobs). Yahoo's sample (yahoo_1), which
TetriSched draws best-effort jobs from, is not public; the Facebook sample of 2010 stands for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from foresail.model.arrays import Floats
from foresail.model.errors import InputError
from foresail.traces.readers.swim import BYTES
from foresail.traces.reading import read

_LEVELS: Final = np.array([*np.arange(20) * 0.05, 0.98, 0.99, 0.999, 1.0])
_QUANTILES: Final = {
    "fb2009": np.array(
        [
            *(1e0, 1.56e3, 3.5e4, 7.83e4, 1.45e5, 2.03e5, 2.78e5, 4.05e5, 9.23e5, 4.05e6),
            *(2.33e7, 1.3e8, 3.33e8, 5.57e8, 9.89e8, 1e9, 1.58e9, 3.44e9, 7.02e9, 2.91e10),
            *(6.81e10, 1.53e11, 1.05e12, 1.78e12),
        ]
    ),
    "fb2010": np.array(
        [
            *(1e0, 4.97e2, 1.54e3, 1.21e4, 4.51e4, 9.99e4, 5.08e5, 1.55e6, 4.23e6, 1.34e7),
            *(3.35e7, 8.13e7, 2.42e8, 4.12e8, 1.5e9, 3.12e9, 4.26e9, 9e9, 4.65e10, 1.91e11),
            *(6.94e11, 1.83e12, 7.53e12, 8.52e13),
        ]
    ),
}


def draw_bytes(
    source: str | None, built_in: str, count: int, random: np.random.Generator
) -> Floats:
    """Bytes that each job moves, at least 1; shape (count,).

    ``source`` is a SWIM sample to draw jobs from; without one they come from the quantiles that
    ``built_in`` names.

    Raises
    ------
    InputError
        If the source is no SWIM sample.
    """
    if source is None:
        logs = np.interp(random.random(count), _LEVELS, np.log(_QUANTILES[built_in]))
        return np.asarray(np.exp(logs))
    jobs = read(Path(source)).jobs
    if any(name not in jobs.columns for name in BYTES):
        raise InputError("not a SWIM sample", source=source, expected=", ".join(BYTES))
    total = sum(jobs[name].cast(float).to_numpy() for name in BYTES)
    drawn: Floats = np.maximum(random.choice(np.asarray(total), count), 1.0)
    return drawn
