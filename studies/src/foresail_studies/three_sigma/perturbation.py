"""Study ``3sigma-perturbation``: beliefs that are off, narrow or wide, against points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foresail.model.registry import register
from foresail_studies.policies import dropping
from foresail_studies.study import Bound, Study, published
from foresail_studies.three_sigma import _shared as three_sigma
from foresail_studies.trial_grid import TrialSetting, cases_of

_SMALL_SHIFT = 20.0


@dataclass(frozen=True, slots=True)
class PerturbationParameters(three_sigma.E2EStudyParameters):
    """Parameters of ``3sigma-perturbation``."""

    QUICK: ClassVar[dict[str, str]] = {**three_sigma.QUICK, "shift_percents": "[-50,0,50]"}
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 60.0

    shift_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    """By how much of the runtime beliefs are off on average."""
    spread_percents: tuple[float, ...] = (10.0, 20.0, 50.0)
    """Standard deviations of beliefs in per cent of the runtime, the narrowest first."""


@register("study", "3sigma-perturbation", parameters=PerturbationParameters)
def perturbation(parameters: PerturbationParameters) -> Study:
    """Beliefs that are off, narrow or wide, against points (figure 4.9)."""
    workload = three_sigma.recipe(parameters)
    cases = [
        case
        for shift in parameters.shift_percents
        for case in cases_of(
            parameters,
            [TrialSetting(workload, None, "perturbed E2E", shift)],
            _policies(parameters, shift),
        )
    ]
    return Study(
        title="How wrong may a distribution be, and how wide?",
        source=f"{three_sigma.SOURCE}, figure 4.9",
        axis="mean shift of beliefs (%)",
        measures=three_sigma.MEASURES,
        drawn=three_sigma.DRAWN,
        cases=tuple(cases),
        claims=published(_claims(parameters)),
        notes=(
            *three_sigma.notes_of(parameters),
            "Each job's shift is normal about the target with a deviation of 10 points; beliefs "
            "are truncated to positive runtimes. The grid and the spreads are chosen; points are "
            "the same scheduler with the mean alone.",
        ),
    )


def _policies(parameters: PerturbationParameters, shift: float) -> dict[str, str]:
    told = f"shift_percent={shift:g},seed={{seed}}"
    policies = {
        _system(spread): dropping(
            f"3sigma,perturbed({told},spread_percent={spread:g}),exponential_increment"
        )
        for spread in parameters.spread_percents
    }
    point = f"3sigma(distribution=no),perturbed({told},spread_percent=0)"
    return {**policies, "point": dropping(f"{point},exponential_increment")}


def _system(spread: float) -> str:
    return f"CoV {spread:g} %"


def _claims(parameters: PerturbationParameters) -> dict[str, Bound]:
    narrow, wide = _system(parameters.spread_percents[0]), _system(parameters.spread_percents[-1])
    shifts = parameters.shift_percents
    small = tuple(shift for shift in shifts if abs(shift) <= _SMALL_SHIFT)
    large = tuple(shift for shift in shifts if abs(shift) > _SMALL_SHIFT)

    misses = three_sigma.misses
    better = {
        f"Distributions miss fewer deadlines than points ({_system(spread)}).": misses(
            _system(spread)
        ).against("point")
        for spread in parameters.spread_percents
    }
    return {
        **better,
        "At shift 0 distributions miss half as many deadlines as points.": misses(
            narrow, 0.0
        ).against("point", factor=0.5),
        "At small shifts (within 20 %) narrow distributions miss fewer than wide ones.": misses(
            narrow, *small
        ).against(wide),
        "At larger shifts wide distributions miss fewer than narrow ones.": misses(
            wide, *large
        ).against(narrow),
    }
