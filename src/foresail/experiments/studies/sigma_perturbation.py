"""Study ``3sigma-perturbation``: beliefs that are off, narrow or wide, against points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foresail.experiments.studies import _sigma as sigma
from foresail.experiments.study import Claim, Mean, Study
from foresail.model.registry import register

_SMALL_SHIFT = 20.0


@dataclass(frozen=True, slots=True)
class PerturbationParameters(sigma.SigmaParameters):
    """Parameters of ``3sigma-perturbation``.

    Parameters
    ----------
    shift_percents
        By how much of the runtime beliefs are off on average.
    spread_percents
        Standard deviations of beliefs in per cent of the runtime, the narrowest first.
    """

    QUICK: ClassVar[dict[str, str]] = {**sigma.QUICK, "shift_percents": "[-50,0,50]"}
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 60.0

    hours: float = 2.0
    shift_percents: tuple[float, ...] = (-50.0, -20.0, 0.0, 20.0, 50.0, 100.0)
    spread_percents: tuple[float, ...] = (10.0, 20.0, 50.0)


@register("study", "3sigma-perturbation", parameters=PerturbationParameters)
def perturbation(parameters: PerturbationParameters) -> Study:
    """Beliefs that are off, narrow or wide, against points (figure 4.9)."""
    workload = sigma.recipe(parameters)
    cases = [
        case
        for shift in parameters.shift_percents
        for case in sigma.cases_of(
            parameters,
            sigma.Setting(workload, None, "perturbed E2E", shift),
            _policies(parameters, shift),
        )
    ]
    return Study(
        title="How wrong may a distribution be, and how wide?",
        source="3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019), figure 4.9",
        axis="mean shift of beliefs (%)",
        measures=sigma.MEASURES,
        drawn=sigma.DRAWN,
        cases=tuple(cases),
        claims=_claims(parameters),
        notes=(
            *sigma.NOTES,
            "Each job's shift is normal about the target with a deviation of 10 points; beliefs "
            "are truncated to positive runtimes. The grid and the spreads are chosen; points are "
            "the same scheduler with the mean alone.",
        ),
    )


def _policies(parameters: PerturbationParameters, shift: float) -> dict[str, str]:
    told = f"shift_percent={shift:g},seed={{seed}}"
    policies = {
        _system(spread): f"three_sigma,perturbed({told},spread_percent={spread:g}),"
        "exponential_increment"
        for spread in parameters.spread_percents
    }
    point = f"three_sigma(distribution=no),perturbed({told},spread_percent=0)"
    return {**policies, "point": f"{point},exponential_increment"}


def _system(spread: float) -> str:
    return f"CoV {spread:g} %"


def _claims(parameters: PerturbationParameters) -> tuple[Claim, ...]:
    narrow, wide = _system(parameters.spread_percents[0]), _system(parameters.spread_percents[-1])
    shifts = parameters.shift_percents
    small = tuple(shift for shift in shifts if abs(shift) <= _SMALL_SHIFT)
    large = tuple(shift for shift in shifts if abs(shift) > _SMALL_SHIFT)

    def misses(system: str, *x: float) -> Mean:
        return Mean(sigma.MISSES.name, system, x=x)

    better = tuple(
        Claim(
            f"Distributions miss fewer deadlines than points ({_system(spread)}).",
            misses(_system(spread)),
            misses("point"),
        )
        for spread in parameters.spread_percents
    )
    return (
        *better,
        Claim(
            "At shift 0 distributions miss half as many deadlines as points.",
            misses(narrow, 0.0),
            misses("point", 0.0),
            factor=0.5,
        ),
        Claim(
            "At small shifts (within 20 %) narrow distributions miss fewer than wide ones.",
            misses(narrow, *small),
            misses(wide, *small),
        ),
        Claim(
            "At larger shifts wide distributions miss fewer than narrow ones.",
            misses(wide, *large),
            misses(narrow, *large),
        ),
    )
