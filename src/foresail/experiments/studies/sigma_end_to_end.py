"""Study ``3sigma-end-to-end``: 3Sigma against points, perfect knowledge and strict priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from foresail.experiments.studies import _sigma as sigma
from foresail.experiments.study import Claim, Mean, Study
from foresail.model.registry import register

_IDEAL: Final = "ideal cluster"
_REAL: Final = "emulated real cluster"

_TABLE_4_2: Final = {
    "3sigma": 0.2875,
    "point-perfect": 0.6784,
    "point-real": 2.025,
    "prio": 1.853,
}
"""Published difference of the share of deadlines missed, real against simulated, in points."""


@dataclass(frozen=True, slots=True)
class EndToEndParameters(sigma.SigmaParameters):
    """Parameters of ``3sigma-end-to-end``.

    Parameters
    ----------
    start_delay_seconds, runtime_noise
        Of the emulated real cluster: mean time before a job runs on its nodes, and deviation of
        the logarithm of the runtime.
    """

    QUICK: ClassVar[dict[str, str]] = sigma.QUICK
    QUICK_MINUTES: ClassVar[float] = 2.0
    FULL_MINUTES: ClassVar[float] = 15.0

    hours: float = 2.0
    start_delay_seconds: float = 3.0
    runtime_noise: float = 0.03


@register("study", "3sigma-end-to-end", parameters=EndToEndParameters)
def end_to_end(parameters: EndToEndParameters) -> Study:
    """3Sigma against point estimates, perfect knowledge and strict priority (figure 4.6)."""
    systems = sigma.named(*sigma.MAIN)
    cases = [
        case
        for setting in _settings(parameters)
        for case in sigma.cases_of(parameters, setting, systems)
    ]
    return Study(
        title="Do distributions of runtimes keep more deadlines than single estimates?",
        source="3Sigma (J. W. Park, Distribution-based cluster scheduling, 2019), figure 4.6",
        axis="",
        measures=sigma.MEASURES,
        drawn=sigma.DRAWN,
        cases=tuple(cases),
        claims=(*_claims(), *_transfer_claims()),
        notes=sigma.NOTES,
    )


def _settings(parameters: EndToEndParameters) -> list[sigma.Setting]:
    workload = sigma.recipe(parameters)
    history = sigma.history_of(workload)
    return [
        sigma.Setting(workload, history, _IDEAL),
        sigma.Setting(
            workload,
            history,
            _REAL,
            start_delay_seconds=parameters.start_delay_seconds,
            runtime_noise=parameters.runtime_noise,
        ),
    ]


def _claims() -> tuple[Claim, ...]:
    def misses(system: str) -> Mean:
        return Mean(sigma.MISSES.name, system, _IDEAL)

    return (
        Claim(
            "3Sigma misses at least 60 % fewer deadlines than PointRealEst (published: 18 % of "
            "deadlines are missed by PointRealEst, 4.0 times as many as by 3Sigma).",
            misses("3sigma"),
            misses("point-real"),
            factor=0.4,
        ),
        Claim(
            "3Sigma misses fewer deadlines than PointRealEst.",
            misses("3sigma"),
            misses("point-real"),
        ),
        Claim(
            "3Sigma nearly matches PointPerfEst in deadlines missed (taken as: within 3 points).",
            misses("3sigma"),
            misses("point-perfect"),
            margin=0.03,
        ),
        Claim(
            "3Sigma misses fewer deadlines than Prio (published: Prio 12 %, 2.3 times as many).",
            misses("3sigma"),
            misses("prio"),
        ),
        Claim(
            "Prio misses fewer deadlines than PointRealEst (12 % against 18 %).",
            misses("prio"),
            misses("point-real"),
        ),
        Claim(
            "Goodput of PointRealEst is lower than that of 3Sigma (by 5.4 %).",
            Mean(sigma.GOODPUT.name, "point-real", _IDEAL),
            Mean(sigma.GOODPUT.name, "3sigma", _IDEAL),
        ),
        Claim(
            "More work of jobs with deadlines gets done in time than under PointRealEst (36 %).",
            Mean(sigma.SLO_GOODPUT.name, "point-real", _IDEAL),
            Mean(sigma.SLO_GOODPUT.name, "3sigma", _IDEAL),
        ),
        Claim(
            "Best-effort goodput is much worse under Prio than under PointRealEst.",
            Mean(sigma.BEST_EFFORT.name, "prio", _IDEAL),
            Mean(sigma.BEST_EFFORT.name, "point-real", _IDEAL),
        ),
        Claim(
            "3Sigma completes fewer best-effort jobs than PointPerfEst.",
            Mean(sigma.BEST_EFFORT_JOBS.name, "3sigma", _IDEAL),
            Mean(sigma.BEST_EFFORT_JOBS.name, "point-perfect", _IDEAL),
        ),
        Claim(
            "Best-effort latency is similar for all (taken as: 3Sigma's within 10 % of "
            "PointRealEst's).",
            Mean(sigma.LATENCY.name, "3sigma", _IDEAL),
            Mean(sigma.LATENCY.name, "point-real", _IDEAL),
            factor=1.1,
        ),
    )


def _transfer_claims() -> tuple[Claim, ...]:
    """What is missed on a real cluster differs from a simulation by no more than published."""
    return tuple(
        Claim(
            f"On the real cluster {system} misses {points:g} points more or fewer than simulated "
            "(table 4.2; taken as: at most so many more).",
            Mean(sigma.MISSES.name, system, _REAL),
            Mean(sigma.MISSES.name, system, _IDEAL),
            margin=points / 100.0,
        )
        for system, points in _TABLE_4_2.items()
    )
