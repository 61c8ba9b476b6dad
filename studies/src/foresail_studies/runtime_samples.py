"""Samples of a job's own runtime distribution, carried by the job as a feature (E2E-SAMPLE-n)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foresail.model.errors import InputError

FEATURE: Final = "runtime_samples"
"""Name of the feature: seconds, comma-separated."""


def as_text(samples: NDArray[np.float64]) -> list[str]:
    """The feature of each job from samples in seconds; shape (jobs, samples of each)."""
    return [",".join(f"{value:.3f}" for value in row) for row in samples.tolist()]


def samples_of(attributes: Mapping[str, str]) -> NDArray[np.float64]:
    """The samples, in seconds, that a job carries among its attributes; shape (samples,).

    A scheduler with distributions takes their empirical distribution for the job's belief, one with
    points their mean.

    Raises ``InputError`` if the job carries none, or something else than numbers.
    """
    text = attributes.get(FEATURE)
    expected = "a workload of the generator e2e_sample"
    if not text:
        raise InputError("the job carries no samples", field=FEATURE, expected=expected)
    try:
        return np.array([float(value) for value in text.split(",")])
    except ValueError as error:
        raise InputError("not numbers", field=FEATURE, value=text, expected=expected) from error
