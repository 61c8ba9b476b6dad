"""The plan of a cluster too large to draw job by job: what each part of it is expected to hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from foresail.model.arrays import Floats
from foresail.reports.plan.lanes import Band
from foresail.reports.plan.view import Bar, PlanView

_MOST_BANDS: Final = 16
_ROWS: Final = 320
_SHARP: Final = 1e-3
_SMALL_PIXELS: Final = 3.0
_FEW_LANES: Final = 400


@dataclass(frozen=True)
class BandUse:
    """A part of the cluster over the view's columns of time."""

    band: Band
    """Its lanes."""
    shade: Floats
    """Probability that so much of it is in use, the rows from nothing to all; shape (rows,
    columns)."""
    with_deadline: Floats
    """Cpus that jobs with a deadline are expected to hold; shape (columns,)."""
    planned: Floats
    """Cpus that are expected to be held with what is planned; shape (columns,)."""


def is_too_dense(view: PlanView, lane_pixels: float) -> bool:
    """Return whether most jobs would be drawn too low to be discerned."""
    runs = [run for bar in (*view.running, *view.planned) for run in bar.runs]
    small = sum((end - first) * lane_pixels < _SMALL_PIXELS for first, end in runs)
    return view.lanes.count > _FEW_LANES and small > len(runs) / 2


def bands_of(view: PlanView) -> list[Band]:
    """The partitions; of many, neighbours together."""
    partitions = view.lanes.partitions
    if len(partitions) <= _MOST_BANDS:
        return list(partitions)
    edges = np.linspace(0, len(partitions), _MOST_BANDS + 1).astype(int).tolist()
    return [
        Band(f"{first.name} – {last.name}", first.first, last.end)
        for first, last in (
            (partitions[low], partitions[high - 1]) for low, high in pairwise(edges)
        )
    ]


def band_uses(view: PlanView) -> list[BandUse]:
    """Expectation of every band.

    That jobs end is taken as independent, their sum as normal.
    """
    bands = bands_of(view)
    rows = max(4, _ROWS // len(bands))
    columns = view.times.size - 1
    past, planned = (
        np.array([_share(view, bar) for bar in bars]).reshape(-1, columns)
        for bars in (view.past, view.planned)
    )
    probability = np.concatenate((view.still_running, past))
    bars = (*view.running, *view.past)
    has_deadline = np.array([bar.job.deadline_seconds is not None for bar in bars], np.float64)
    uses = []
    for band in bands:
        held = np.array([_within(bar, band) for bar in bars])
        mean = held @ probability
        variance = held**2 @ (probability * (1.0 - probability))
        more = np.array([_within(bar, band) for bar in view.planned]) @ planned
        levels = (np.arange(rows) + 0.5)[:, np.newaxis] / rows * (band.end - band.first)
        spread = np.sqrt(variance) + _SHARP * (band.end - band.first)
        uses.append(
            BandUse(
                band=band,
                shade=_normal((mean - levels) / spread),
                with_deadline=(held * has_deadline) @ probability,
                planned=np.minimum(mean + more, band.end - band.first),
            )
        )
    return uses


def _within(bar: Bar, band: Band) -> float:
    """Return how many of a bar's lanes are in a band."""
    inside = (min(end, band.end) - max(first, band.first) for first, end in bar.runs)
    return float(sum(max(0, lanes) for lanes in inside))


def _share(view: PlanView, bar: Bar) -> Floats:
    """The part of every column of time that a bar takes, up to its likely end."""
    begun = np.maximum(view.times[:-1], bar.start_seconds)
    until = np.minimum(view.times[1:], bar.likely_seconds)
    return np.clip((until - begun) / np.diff(view.times), 0.0, 1.0)


_ERF: Final = np.vectorize(math.erf, otypes=[np.float64])


def _normal(values: Floats) -> Floats:
    """The standard normal distribution function."""
    return np.asarray(0.5 * (1.0 + _ERF(np.clip(values, -6.0, 6.0) / math.sqrt(2.0))))
