"""How many machines to own, in figures: cost against waiting, and against machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from foresail.cloud.waiting.owning import FrontierPoint, OwningAnswer, pareto
from foresail.model.arrays import Floats
from foresail.model.words import count, duration, percent
from foresail.reports.curve_figure import Curve, curve_figure
from foresail.reports.figure import Figure
from foresail.reports.plot_axes import AxisScale, scale_of
from foresail.reports.renting.rent_or_wait_tables import points_table
from foresail.reports.style import PolicyStyle, named_styles

_ROOM: Final = 4.0
"""Times the longest wait that its axis reaches: for what is written beside the last point."""
_RENTING: Final = (1.0, "renting for every job")
_TODAY: Final = PolicyStyle("today", "today", "today", "@ink", "solid", "star")


def frontier_figure(answer: OwningAnswer) -> Figure:
    """Price against mean wait, a line for each policy; today and the advice are marked."""
    names = list(dict.fromkeys(point.policy for point in answer.points))
    curves = []
    for style, name in zip(named_styles(names), names, strict=True):
        # Owning nothing is the level; a line to it would cross what nothing was tried for.
        own = [each for each in answer.of(name) if each.machines or name == "no-jobs-wait"]
        points = pareto(own, lambda each: (each.mean_wait_seconds, each.cost))
        marked = [at for at, point in enumerate(points) if point is answer.advised]
        words = [f"advised: {answer.advised.machines:,}"] * len(marked)
        curves.append(_curve(style, points, [p.mean_wait_seconds for p in points], marked, words))
    if answer.today is not None:
        today = answer.today
        curves.append(_curve(_TODAY, [today], [today.mean_wait_seconds], [0], ["today"]))
    waits = np.concatenate([curve.x for curve in curves])
    across = scale_of("mean wait", "duration", waits, log=True, longest=_ROOM * float(waits.max()))
    up = scale_of("price", "share", np.concatenate([c.y for c in curves]), log=False)
    up.axis["rangemode"] = "normal"
    findings = [_finding(answer, name) for name in names]
    banded = answer.certainty is not None
    return curve_figure(
        "frontier",
        "What does less waiting cost?",
        findings,
        curves,
        across,
        up,
        table=points_table(answer),
        note="A line joins a policy's numbers of machines (and thresholds), without those that are "
        "both dearer and slower than another of its own; waits below a second are drawn there."
        + (" Band: 95 % interval of the price." if banded else ""),
        level=_RENTING,
    )


def price_by_machines(answer: OwningAnswer) -> Figure:
    """Price against the machines owned, at each policy's best thresholds."""
    curves, findings = [], []
    for style, points in _best_by_machines(answer):
        curves.append(_line(style, points, [p.price for p in points], [p.prices for p in points]))
        least = min(points, key=lambda point: point.price)
        findings.append(
            f"{least.policy}: cheapest with {count(least.machines, 'machine')}, "
            f"{percent(least.price)}."
        )
    return curve_figure(
        "price-by-machines",
        "What does each further machine bring?",
        findings,
        curves,
        *_machines_axes(curves, "price", "share"),
        table=points_table(answer),
        note=_by_machines_note(answer),
        level=_RENTING,
    )


def wait_by_machines(answer: OwningAnswer) -> Figure:
    """Mean wait against the machines owned, at each policy's best thresholds."""
    curves, findings = [], []
    for style, points in _best_by_machines(answer):
        waits = [point.mean_wait_seconds for point in points]
        curves.append(_line(style, points, waits, [point.waits for point in points]))
        most = max(points, key=lambda point: point.mean_wait_seconds)
        findings.append(
            f"{most.policy}: longest with {count(most.machines, 'machine')}, "
            f"{duration(most.mean_wait_seconds)}."
        )
    return curve_figure(
        "wait-by-machines",
        "How long do jobs wait?",
        findings,
        curves,
        *_machines_axes(curves, "mean wait", "duration"),
        table=points_table(answer),
        note=_by_machines_note(answer),
    )


def _best_by_machines(answer: OwningAnswer) -> list[tuple[PolicyStyle, list[FrontierPoint]]]:
    """Of each policy the best point for each number of machines, by rising number."""
    policies = list(dict.fromkeys(point.policy for point in answer.points))
    found = []
    for style, policy in zip(named_styles(policies), policies, strict=True):
        best: dict[int, FrontierPoint] = {}
        for point in answer.of(policy):
            other = best.get(point.machines)
            value = answer.worth.hour_value
            if other is None or point.worth(value) < other.worth(value):
                best[point.machines] = point
        found.append((style, [best[machines] for machines in sorted(best)]))
    return found


def _machines_axes(
    curves: Sequence[Curve], title: str, kind: Literal["share", "duration"]
) -> tuple[AxisScale, AxisScale]:
    """Machines across, and upwards what they come to: durations on a log axis."""
    across, up = (np.concatenate([getattr(each, axis) for each in curves]) for axis in "xy")
    return (
        scale_of("machines owned", "number", across, log=False),
        scale_of(title, kind, up, log=kind == "duration"),
    )


def _by_machines_note(answer: OwningAnswer) -> str:
    band = "" if answer.certainty is None else " Band: 95 % interval."
    return f"At each policy's best thresholds for the value of waiting.{band}"


def _line(
    style: PolicyStyle,
    points: Sequence[FrontierPoint],
    values: Sequence[float],
    bands: Sequence[tuple[float, float] | None],
) -> Curve:
    machines = np.array([point.machines for point in points], dtype=np.float64)
    return Curve(style, machines, np.array(values), (), (), *_band(bands))


def _curve(
    style: PolicyStyle,
    points: Sequence[FrontierPoint],
    across: Sequence[float],
    marked: Sequence[int],
    words: Sequence[str],
) -> Curve:
    prices = np.array([point.price for point in points])
    band = _band([point.prices for point in points])
    return Curve(style, np.array(across), prices, marked, words, *band)


def _band(
    intervals: Sequence[tuple[float, float] | None],
) -> tuple[Floats | None, Floats | None]:
    known = [each for each in intervals if each is not None]
    if len(known) < len(intervals):
        return None, None
    return np.array([low for low, _ in known]), np.array([high for _, high in known])


def _finding(answer: OwningAnswer, policy: str) -> str:
    best = answer.best_of(policy)
    return (
        f"{policy}: {percent(best.price)} at {duration(best.mean_wait_seconds)} with "
        f"{count(best.machines, 'machine')}, its best for the value of waiting."
    )
