"""Study ``tetrisched-assumptions``: where TetriSched's claims hold, by what is left open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from foresail.model.registry import register
from foresail_studies.study import Bound, Study, published
from foresail_studies.tetrisched import _shared as tetrisched
from foresail_studies.trial_grid import TrialSetting, cases_of, named

_SLACK: Final = "deadline slack (%)"
_SLOWDOWN: Final = "times longer on other nodes"
_LOAD: Final = "offered load"


@dataclass(frozen=True, slots=True)
class TetriSchedAssumptionsParameters(tetrisched.TetriSchedStudyParameters):
    """Parameters of ``tetrisched-assumptions``; each list is tried with the others at defaults."""

    QUICK: ClassVar[dict[str, str]] = {
        **tetrisched.QUICK,
        "seeds": "3",
        "slacks": "[20,60,140,275]",
        "slowdowns": "[1.5,2]",
        "loads": "[0.7,1.4]",
    }
    QUICK_MINUTES: ClassVar[float] = 4.0
    FULL_MINUTES: ClassVar[float] = 120.0

    slacks: tuple[float, ...] = (20.0, 60.0, 140.0, 275.0)
    """Slacks of the deadlines in per cent, each for all jobs of a run."""
    slowdowns: tuple[float, ...] = (1.0, 1.5, 2.0)
    """Values of ``slowdown``."""
    loads: tuple[float, ...] = (0.7, 1.0, 1.4)
    """Values of ``load``."""


@register("study", "tetrisched-assumptions", parameters=TetriSchedAssumptionsParameters)
def assumptions(parameters: TetriSchedAssumptionsParameters) -> Study:
    """Find where TetriSched's claims hold: slack, slowdown and load (figures 9 and 10)."""
    settings = _settings(parameters)
    systems = named(
        tetrisched.GLOBAL, tetrisched.NO_SOFT_CONSTRAINTS, tetrisched.ONE_BY_ONE, tetrisched.OURS
    )
    return Study(
        title="Where do TetriSched's claims hold?",
        source=f"{tetrisched.SOURCE}, figures 9 and 10",
        axis="assumed",
        measures=tetrisched.MEASURES,
        drawn=tetrisched.DRAWN,
        cases=tuple(cases_of(parameters, settings, {**systems, **tetrisched.STACKS})),
        claims=published(*(_claims(each.group, each.x) for each in settings)),
        notes=(
            *tetrisched.notes_of(parameters),
            "A slack of 275 % stands for the 250 and 300 % that 3Sigma's publication tells of.",
        ),
    )


def _settings(parameters: TetriSchedAssumptionsParameters) -> list[TrialSetting]:
    tried = [
        *((_SLACK, x, replace(parameters, slack_percents=(x,))) for x in parameters.slacks),
        *((_SLOWDOWN, x, replace(parameters, slowdown=x)) for x in parameters.slowdowns),
        *((_LOAD, x, replace(parameters, load=x)) for x in parameters.loads),
    ]
    return [
        replace(tetrisched.setting(changed, "gs_het", x), group=group)
        for group, x, changed in tried
    ]


def _claims(group: str, x: float | None) -> dict[str, Bound]:
    assert x is not None
    where, met = f"{group}: {x:g}", tetrisched.met
    best = met(tetrisched.GLOBAL, x, group=group)
    return {
        f"With soft constraints twice as many deadlines are met ({where}).": Bound(
            met(tetrisched.NO_SOFT_CONSTRAINTS, x, group=group), best, factor=0.5
        ),
        f"With soft constraints more deadlines are met ({where}).": Bound(
            met(tetrisched.NO_SOFT_CONSTRAINTS, x, group=group), best
        ),
        f"Placing all together meets more deadlines than one by one ({where}).": Bound(
            met(tetrisched.ONE_BY_ONE, x, group=group), best
        ),
        **{
            f"TetriSched meets more deadlines than Rayon/CS ({stack}; {where}).": Bound(
                met(stack, x, group=group), best
            )
            for stack in tetrisched.STACKS
        },
    }
