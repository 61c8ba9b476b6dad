"""Study ``3sigma-load``: deadlines and best-effort work as the load grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foresail.experiments.studies import _sigma as sigma
from foresail.experiments.study import Claim, Mean, Study
from foresail.model.registry import register


@dataclass(frozen=True, slots=True)
class LoadParameters(sigma.SigmaParameters):
    """Parameters of ``3sigma-load``.

    Parameters
    ----------
    loads
        Offered loads, half of each from jobs with deadlines.
    """

    QUICK: ClassVar[dict[str, str]] = {**sigma.QUICK, "loads": "[1,1.4,1.6]"}
    QUICK_MINUTES: ClassVar[float] = 3.0
    FULL_MINUTES: ClassVar[float] = 60.0

    loads: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6)


@register("study", "3sigma-load", parameters=LoadParameters)
def load(parameters: LoadParameters) -> Study:
    """Deadlines and best-effort work as the load grows (figure 4.10)."""
    cases = [
        case
        for each in parameters.loads
        for case in sigma.cases_of(parameters, _setting(parameters, each), sigma.named(*sigma.MAIN))
    ]
    return Study(
        title="What happens as the load grows?",
        source="3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019), figure 4.10",
        axis="offered load",
        measures=sigma.MEASURES,
        drawn=sigma.DRAWN,
        cases=tuple(cases),
        claims=_claims(min(parameters.loads), max(parameters.loads)),
        notes=sigma.NOTES,
    )


def _setting(parameters: LoadParameters, each: float) -> sigma.Setting:
    workload = sigma.recipe(parameters, "e2e", f",load={each:g}")
    return sigma.Setting(workload, sigma.history_of(workload), "E2E-LOAD", each)


def _claims(least: float, most: float) -> tuple[Claim, ...]:
    def misses(system: str, *x: float) -> Mean:
        return Mean(sigma.MISSES.name, system, x=x)

    def best_effort(system: str, *x: float) -> Mean:
        return Mean(sigma.BEST_EFFORT.name, system, x=x)

    return (
        *(
            Claim(
                f"More deadlines are missed at a higher load ({system}).",
                misses(system, least),
                misses(system, most),
            )
            for system in sigma.MAIN
        ),
        *(
            Claim(
                f"3Sigma misses fewer deadlines than {system} over all loads.",
                misses("3sigma"),
                misses(system),
            )
            for system in ("point-real", "prio")
        ),
        Claim(
            "3Sigma matches PointPerfEst closely (taken as: within 3 points).",
            misses("3sigma"),
            misses("point-perfect"),
            margin=0.03,
        ),
        *(
            Claim(
                f"Best-effort goodput falls with the load ({system}).",
                best_effort(system, most),
                best_effort(system, least),
            )
            for system in sigma.MAIN
        ),
        Claim(
            "At the highest load 3Sigma does less best-effort work than PointPerfEst.",
            best_effort("3sigma", most),
            best_effort("point-perfect", most),
        ),
    )
